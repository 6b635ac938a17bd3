"""The document routes, their authentication, and their health."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from tests.unit.documents.http.builders import Client, Json, Parts, app_of, client_of
from toolscript.core.health import Health, PartHealth

WITH_TOKEN = [
    ("POST", "/search"),
    ("PUT", "/documents"),
    ("DELETE", "/documents"),
    ("GET", "/documents/one"),
    ("DELETE", "/documents/one"),
    ("POST", "/api/v1/documents/search"),
    ("PUT", "/api/v1/documents"),
    ("GET", "/api/v1/documents"),
    ("POST", "/api/v1/documents/delete"),
    ("GET", "/api/v1/documents/one"),
    ("DELETE", "/api/v1/documents/one"),
]


@pytest.fixture
def openapi(parts: Parts) -> Json:
    return app_of(parts.routes()).openapi()


def described(openapi: Json) -> Iterator[tuple[str, str, Json]]:
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if "documents" in operation.get("tags", []):
                yield method.upper(), path, operation


@pytest.mark.requirement("DOC-004")
async def test_no_body_is_read_before_authentication(parts: Parts) -> None:
    read = []

    async def noted() -> AsyncIterator[bytes]:
        read.append(True)
        yield b"{}"

    async with client_of(app_of(parts.routes()), token="") as anonymous:
        for method, path in WITH_TOKEN:
            headers = {"content-type": "application/json"}
            answer = await anonymous.http.request(method, path, content=noted(), headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert read == []


async def test_every_document_route_except_health_requires_a_token(openapi: Json) -> None:
    listed = {(method, path) for method, path, operation in described(openapi) if operation["security"]}
    assert listed == {(method, path.replace("one", "{document_id}")) for method, path in WITH_TOKEN}
    assert openapi["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    everything = {(method, path) for method, path, _ in described(openapi)}
    assert everything - listed == {("GET", "/search/health")}


async def test_every_operation_has_a_summary_and_documents_its_errors(openapi: Json) -> None:
    for method, path, operation in described(openapi):
        assert operation["summary"], (method, path)
        if operation["security"]:
            assert {"401", "403", "422", "429", "500", "503"} <= operation["responses"].keys(), (method, path)
            assert ("404" in operation["responses"]) == ("{" in path), (method, path)
    schemas = openapi["components"]["schemas"]
    for model in ("DocumentSearchRequest", "SearchAliasRequest"):
        properties = schemas[model]["properties"]
        assert [name for name, field in properties.items() if not field.get("description")] == []


async def test_the_openapi_description_mentions_plan_and_interrupted_writes(openapi: Json) -> None:
    operation = openapi["paths"]["/documents/{document_id}"]["get"]
    assert "plan allows" in operation["description"]
    assert "its write was interrupted" in operation["responses"]["503"]["description"]


async def test_a_service_without_documents_says_what_is_missing() -> None:
    async with client_of(app_of(None)) as client:
        for method, path in WITH_TOKEN:
            error = (await client.ask(method, path, 503)).json()["error"]
            assert error["code"] == "UNAVAILABLE"
            assert "TOOLSCRIPT_JWT_KEYS" in error["details"]["hint"]
        health = (await client.ask("GET", "/search/health", 503)).json()
    assert health["status"] == "unready"
    assert "TOOLSCRIPT_JWT_KEYS" in health["parts"]["documents"]


@pytest.mark.states("S2-058", "S2-082")
@pytest.mark.requirement("DOC-005")
@pytest.mark.parametrize(
    ("health", "status", "expected"),
    [
        ({"index": (True, True), "embedding": (True, False)}, 200, {"status": "ok"}),
        ({"index": (False, True)}, 503, {"status": "unready", "parts": {"index": "gone"}}),
        (
            {"index": (True, True), "embedding": (False, False)},
            200,
            {"status": "degraded", "parts": {"embedding": "gone"}},
        ),
    ],
)
async def test_health_needs_no_token_and_names_the_part_that_does_not_respond(
    parts: Parts, health: dict[str, tuple[bool, bool]], status: int, expected: Json
) -> None:
    parts.health = Health(
        {name: PartHealth(ok, needed, "" if ok else "gone") for name, (ok, needed) in health.items()}
    )
    async with client_of(app_of(parts.routes()), token="") as anonymous:
        assert (await anonymous.ask("GET", "/search/health", status)).json() == expected


async def test_an_unknown_method_gets_405_with_the_allowed_methods(api: Client) -> None:
    for path, methods in (("/documents", {"PUT", "DELETE"}), ("/documents/a/b", {"GET", "DELETE"})):
        answer = await api.ask("POST", path, 405)
        assert set(answer.headers["allow"].split(", ")) == methods


@pytest.mark.states("S2-068")
@pytest.mark.requirement("DOC-005")
async def test_responses_carry_a_request_id_and_a_valid_one_is_kept(api: Client) -> None:
    answer = await api.ask("POST", "/search", 200, {"query": "x"}, **{"x-request-id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"


async def test_the_size_limit_of_a_request_is_per_operation(api: Client) -> None:
    """An upload is a stream without a limit here; a removal is not."""
    answer = await _sent(api, "DELETE", b'{"ids": ["' + b"x" * 5_000_000)
    assert answer.status_code == 413
    answer = await _sent(api, "PUT", b'{"documents": ["' + b"x" * 5_000_000)
    assert answer.status_code == 413
    assert "application/x-ndjson may be longer" in answer.json()["error"]["message"]


async def test_413_and_415_responses_have_rate_limit_headers(parts: Parts) -> None:
    kinds = (("DELETE", "application/json", 413), ("PUT", "application/json", 413), ("PUT", "text/plain", 415))
    async with client_of(app_of(parts.routes()), "token-of-limited") as client:
        left = []
        for method, kind, status in kinds:
            headers = {"content-type": kind}
            answer = await client.http.request(method, "/documents", content=b"x" * 5_000_000, headers=headers)
            assert answer.status_code == status
            left.append(answer.headers["ratelimit-remaining"])
    assert left == ["2", "1", "0"]


async def _sent(api: Client, method: str, content: Any) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return await api.http.request(method, "/documents", content=content, headers=headers)
