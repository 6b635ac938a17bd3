"""The OpenAPI document of the gateway describes its real answers, all of them and nothing else."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from tests.unit.gateway.http.requests import Reply, ask
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import open_app
from toolscript.gateway.approvals import Decision, Review, Status
from toolscript.gateway.model import DEFAULT_LIMIT
from toolscript.gateway.openapi import openapi_document

pytestmark = pytest.mark.requirement("TS-008")

Json = dict[str, Any]
DOCUMENT: Json = json.loads(json.dumps(openapi_document(2, 0.35)))
OPERATIONS: dict[tuple[str, str], Json] = {
    (method.upper(), path): operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SEARCH, CALL, TOOL = "/api/v1/tools/search", "/api/v1/tools/call", "/api/v1/tools/{tool_id}"
# Path with its query string, body, and the status of the answer, by operation.
REQUESTS: list[tuple[str, str, str, Json | None, int]] = [
    ("POST", SEARCH, SEARCH, {"query": "file", "explain": True, "include_schemas": True}, 200),
    ("POST", SEARCH, SEARCH, {"query": "sum up", "kind": "any", "search_type": "semantic"}, 200),
    ("POST", SEARCH, SEARCH, {"query": "zzz", "threshold": 1, "search_type": "keyword"}, 200),
    ("POST", SEARCH, SEARCH, {"query": " "}, 400),
    ("POST", SEARCH, SEARCH, {"query": "x", "limit": 0}, 422),
    ("POST", CALL, CALL, {"id": "files__read_file", "arguments": {"path": "a"}}, 200),
    ("POST", CALL, CALL, {"id": "files__absent"}, 404),
    ("POST", CALL, CALL, {}, 422),
    ("POST", CALL, CALL, {"id": "demo__reject"}, 502),
    ("POST", CALL, CALL, {"id": "demo__vanish"}, 503),
    ("GET", "/api/v1/tools", "/api/v1/tools?limit=2", None, 200),
    ("GET", "/api/v1/tools", "/api/v1/tools?include_schemas=true", None, 200),
    ("GET", "/api/v1/tools", "/api/v1/tools?limit=0", None, 422),
    ("GET", TOOL, "/api/v1/tools/files__read_file", None, 200),
    ("GET", TOOL, "/api/v1/tools/files__absent", None, 404),
    ("GET", TOOL, "/api/v1/tools/nothing", None, 422),
    ("GET", "/api/v1/servers", "/api/v1/servers", None, 200),
    ("GET", "/api/v1/servers", "/api/v1/servers?cursor=x", None, 422),
    ("GET", "/api/v1/activity", "/api/v1/activity?limit=2", None, 200),
    ("GET", "/api/v1/activity", "/api/v1/activity", None, 200),
    ("GET", "/api/v1/activity", "/api/v1/activity?outcome=fine", None, 422),
    ("GET", "/search", "/search?q=file&explain=true&schemas=true", None, 200),
    ("GET", "/search", "/search?q=zzz&threshold=1", None, 200),
    ("GET", "/search", "/search?q=", None, 400),
    ("GET", "/search", "/search?q=x&limit=0", None, 422),
    ("GET", "/tools", "/tools?schemas=true", None, 200),
    ("GET", "/tools", "/tools?offset=x", None, 422),
    ("POST", "/tools/{tool_id}", "/tools/files__read_file", {"path": "a"}, 200),
    ("POST", "/tools/{tool_id}", "/tools/files__absent", {}, 404),
    ("POST", "/tools/{tool_id}", "/tools/nothing", {}, 422),
    ("POST", "/tools/{tool_id}", "/tools/demo__reject", {}, 502),
    ("POST", "/tools/{tool_id}", "/tools/demo__vanish", {}, 503),
    ("GET", "/servers", "/servers", None, 200),
    ("GET", "/health", "/health", None, 200),
    ("GET", "/livez", "/livez", None, 200),
    ("GET", "/runtime/tools.ts", "/runtime/tools.ts?filter=files", None, 200),
    ("GET", "/runtime/tools.ts", "/runtime/tools.ts?filter=nobody", None, 404),
    ("GET", "/runtime/tools.ts", f"/runtime/tools.ts?filter={'a,' * 1001}", None, 422),
]
REVIEWS = "/api/v1/reviews"
REVIEW = Review(
    "0" * 32, "files__a", "tool", "files", "a", Status.NEW, held=True, seen_at=0.0, difference="+name: a"
)
# Of a gateway with this review, with its token.
REVIEW_REQUESTS: list[tuple[str, str, str, Json | None, int]] = [
    ("GET", REVIEWS, f"{REVIEWS}?limit=2", None, 200),
    ("GET", REVIEWS, f"{REVIEWS}?status=odd", None, 422),
    *(
        ("POST", f"{REVIEWS}/{decision}", f"{REVIEWS}/{decision}", {"digests": digests}, status)
        for decision in Decision
        for digests, status in (([REVIEW.digest], 200), (["1" * 32], 409), ([], 422))
    ),
]


def closed(schema: Any) -> Any:
    """The same schema, whose objects have no other properties than those it describes."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    is_open = schema.get("type") == "object" and "properties" in schema and "additionalProperties" not in schema
    return {**parts, "additionalProperties": False} if is_open else parts


def objects(schema: Any, where: str) -> Iterator[tuple[str, Json]]:
    """All object schemas with properties, with their places."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield where, schema
        for name, part in schema.items():
            yield from objects(part, f"{where}.{name}")
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part, where)


def is_as_documented(reply: Reply, operation: Json) -> None:
    (response,) = [found for status, found in operation["responses"].items() if status == str(reply.status)]
    (media_type,) = response["content"]
    assert reply.headers["content-type"].partition(";")[0] == media_type
    assert {name.lower() for name in response["headers"]} <= reply.headers.keys()
    if media_type == "application/json":
        schema = {**response["content"][media_type]["schema"], "components": DOCUMENT["components"]}
        jsonschema.validate(reply.json, closed(schema), jsonschema.Draft202012Validator)


@pytest.mark.parametrize(("method", "path", "target", "body", "status"), REQUESTS)
async def test_an_answer_is_as_documented(
    app: Starlette, method: str, path: str, target: str, body: Json | None, status: int
) -> None:
    operation = OPERATIONS[method, path]
    sent = b"" if body is None else json.dumps(body).encode()
    reply = await ask(app, target, method=method, body=sent)
    assert reply.status == status
    is_as_documented(reply, operation)


@pytest.mark.requirement("TR-002")
@pytest.mark.parametrize(("method", "path", "target", "body", "status"), REVIEW_REQUESTS)
async def test_an_answer_about_reviews_is_as_documented(
    method: str, path: str, target: str, body: Json | None, status: int
) -> None:
    app = open_app(GatewayDouble(waiting=[REVIEW]), token="secret")
    sent = b"" if body is None else json.dumps(body).encode()
    reply = await ask(app, target, ("authorization", "Bearer secret"), method=method, body=sent)
    assert reply.status == status
    is_as_documented(reply, OPERATIONS[method, path])


def test_every_operation_is_asked_for_its_answer_and_each_of_its_own_errors() -> None:
    asked = {(method, path, str(status)) for method, path, _, _, status in (*REQUESTS, *REVIEW_REQUESTS)}
    # Refused before a route is reached (see test_api.py), by a fault, or while no server has answered.
    elsewhere = {"401", "403", "413", "500"}
    documented = {
        (method, path, status)
        for (method, path), operation in OPERATIONS.items()
        for status in operation["responses"]
        if status not in elsewhere
    }
    assert documented - asked == {("POST", SEARCH, "503"), ("GET", "/search", "503")}


async def test_what_is_refused_before_a_route_is_as_documented() -> None:
    locked = open_app(GatewayDouble(), token="secret")
    for (method, path), operation in OPERATIONS.items():
        refused = [await ask(locked, path, ("host", "evil.example"), method=method, host=False)]
        if path != "/livez":
            refused.append(await ask(locked, path, method=method))
        assert [reply.status for reply in refused] == [403, 401][: len(refused)]
        for reply in refused:
            is_as_documented(reply, operation)


async def test_a_search_before_the_first_server_has_answered_is_as_documented(starting: Starlette) -> None:
    reply = await ask(starting, SEARCH, method="POST", body=b'{"query": "x"}')
    assert reply.status == 503
    is_as_documented(reply, OPERATIONS["POST", SEARCH])
    is_as_documented(await ask(starting, "/search?q=x"), OPERATIONS["GET", "/search"])


async def test_the_document_is_served_with_the_gateways_defaults() -> None:
    app = open_app(GatewayDouble(), limit=DEFAULT_LIMIT, threshold=0.5)
    reply = await ask(app, "/openapi.json")
    assert reply.json["openapi"] == "3.1.0"
    fields = reply.json["components"]["schemas"]["ToolSearchRequest"]["properties"]
    assert (fields["limit"]["default"], fields["threshold"]["default"]) == (DEFAULT_LIMIT, 0.5)


async def test_every_route_but_the_document_is_described(app: Starlette) -> None:
    routes = {
        (method, re.sub(r":\w+}", "}", route.path).replace("{tool}", "{tool_id}"))
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert routes - {("GET", "/openapi.json")} == OPERATIONS.keys()


def test_every_operation_has_an_own_id_a_summary_and_a_known_tag() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert len(set(names)) == len(names)
    assert {tag for operation in OPERATIONS.values() for tag in operation["tags"]} == tags
    assert all(operation["summary"] for operation in OPERATIONS.values())


def test_every_field_and_parameter_is_described_and_every_body_has_an_example() -> None:
    undescribed = [
        f"{where}.{name}"
        for where, schema in objects(DOCUMENT, "")
        for name, field in schema["properties"].items()
        if "description" not in field
    ]
    assert undescribed == []
    for operation in OPERATIONS.values():
        assert all(parameter["description"] for parameter in operation.get("parameters", ()))
    schemas = DOCUMENT["components"]["schemas"]
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for operation in OPERATIONS.values()
        if "requestBody" in operation
    ]
    assert len(bodies) == 5
    for body in bodies:
        schema = schemas[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
        for example in schema["examples"]:
            jsonschema.validate(example, schema)


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    names = DOCUMENT["components"]["schemas"].keys()
    references = {*re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT))}
    assert references == names
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
