"""The routes under /api/v1: their answers, their errors, and who may use them."""

import json
import logging
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import Reply, ask
from tests.unit.gateway.http.test_fuzz import LENIENT, Bodies, is_documented
from tests.unit.gateway.mcp.gateway_double import GatewayDouble, down, tool
from tests.unit.gateway.runtime.serving import open_app
from toolscript.core.errors import OutcomeUnknown
from toolscript.core.items import CLIENT_PREFIX, Item, ItemKind
from toolscript.core.mcp_client.model import ServerState, ServerStatus, Transport
from toolscript.gateway.http import create_gateway_app

pytestmark = pytest.mark.requirement("TS-008")

TOOLS = "/api/v1/tools"
SERVERS = "/api/v1/servers"
SEARCH, CALL = f"{TOOLS}/search", f"{TOOLS}/call"
TOKEN = "s3cret token/+="
ROUTES = [
    ("POST", SEARCH, b'{"query": "read a file"}'),
    ("POST", CALL, b'{"id": "files__read_file"}'),
    ("GET", TOOLS, b""),
    ("GET", f"{TOOLS}/files__read_file", b""),
    ("GET", SERVERS, b""),
    ("GET", "/openapi.json", b""),
]


async def post(app: Starlette, path: str, **body: object) -> Reply:
    return await ask(app, path, method="POST", body=json.dumps(body).encode())


async def pages(app: Starlette, path: str) -> list[list[dict[str, Any]]]:
    """All pages of a list; `path` has a query string."""
    page = (await ask(app, path)).json
    found = [page["results"]]
    while page["next_cursor"]:
        page = (await ask(app, f"{path}&cursor={page['next_cursor']}")).json
        found.append(page["results"])
    return found


async def test_a_search_has_an_id_results_and_metadata(app: Starlette) -> None:
    reply = await post(app, SEARCH, query="read a file", limit=1, threshold=0.2)
    assert (reply.status, [*reply.json]) == (200, ["query_id", "results", "steps", "metadata"])
    assert reply.json["steps"] == []
    assert str(uuid.UUID(reply.json["query_id"])) == reply.json["query_id"]
    (hit,), metadata = reply.json["results"], reply.json["metadata"]
    assert hit.pop("confidence") > 0.2
    assert hit.pop("reason")
    assert hit == {
        "id": "files__read_file",
        "kind": "tool",
        "server": "files",
        "name": "read_file",
        "description": "Read the contents of a file",
        "input_schema": None,
        "output_schema": None,
        "annotations": None,
        "signature": "read_file(path?)",
        "also": [],
        "deprecated": False,
        "paths": {},
        "risk": {"level": "destructive", "basis": "no_claim"},
        "explanation": None,
    }
    assert metadata.pop("took_ms") > 0
    assert metadata.pop("candidate_count") >= 1
    assert [len(metadata.pop(name)) for name in ("index_version", "weights_version")] == [12, 12]
    assert metadata == {
        "query": "read a file",
        "kind": "tool",
        "search_type": "hybrid",
        "limit": 1,
        "threshold": 0.2,
        "degraded": [],
        "model": "hash",
        "good_match": True,
        "unmatched_words": [],
        "near_misses": [],
        "hint": None,
        "read_as": None,
        "rules": None,
    }


async def test_a_search_finds_what_the_alias_finds(app: Starlette) -> None:
    new = (await post(app, SEARCH, query="file", explain=True, include_schemas=True)).json
    old = (await ask(app, "/search?q=file&explain=true&schemas=true")).json
    assert [(hit["id"], hit["confidence"], hit["explanation"], hit["input_schema"]) for hit in new["results"]] == [
        (hit["toolId"], hit["confidence"], hit["parts"], hit["inputSchema"]) for hit in old["results"]
    ]
    assert (new["metadata"]["candidate_count"], new["metadata"]["limit"]) == (old["totalResults"], 2)
    assert new["metadata"]["threshold"] == old["threshold"] == 0.0


async def test_the_metadata_has_the_nearest_and_a_hint_where_nothing_is_found(app: Starlette) -> None:
    answer = (await post(app, SEARCH, query="file zzz", threshold=1)).json
    metadata = answer["metadata"]
    assert (answer["results"], metadata["candidate_count"], metadata["unmatched_words"]) == ([], 0, ["zzz"])
    assert metadata["near_misses"][0]["id"].startswith("files__")
    assert metadata["hint"] == "try other words"


async def test_a_lower_threshold_is_suggested_only_where_something_fits(app: Starlette) -> None:
    found = (await post(app, SEARCH, query="file")).json["results"][0]
    answer = (await post(app, SEARCH, query=found["name"].replace("_", " "), threshold=1)).json
    assert not answer["results"]
    assert "a lower threshold" in answer["metadata"]["hint"]


@pytest.mark.parametrize(
    ("search_type", "has_weights"), [("semantic", True), ("keyword", False), ("hybrid", True)]
)
async def test_the_metadata_names_the_search_type_and_its_weights(
    app: Starlette, search_type: str, has_weights: bool
) -> None:
    metadata = (await post(app, SEARCH, query="file", search_type=search_type)).json["metadata"]
    assert (metadata["search_type"], metadata["degraded"]) == (search_type, [])
    assert (metadata["weights_version"] is not None) is has_weights


async def test_keyword_search_alone_is_a_degraded_answer() -> None:
    app = open_app(GatewayDouble(semantic=False))
    metadata = (await post(app, SEARCH, query="file")).json["metadata"]
    assert (metadata["search_type"], metadata["degraded"]) == ("keyword", ["embedding"])


async def test_a_search_can_ask_for_other_kinds_or_any(app: Starlette) -> None:
    found = (await post(app, SEARCH, query="sum", kind="prompt")).json
    assert [(hit["id"], hit["kind"]) for hit in found["results"]] == [("files__sum_up", "prompt")]
    assert found["metadata"]["kind"] == "prompt"
    anything = (await post(app, SEARCH, query="sum_up", kind="any")).json
    assert (anything["results"][0]["kind"], anything["metadata"]["kind"]) == ("prompt", "any")


INVALID: list[tuple[dict[str, Any], int, str | None]] = [
    ({}, 422, "query"),
    ({"query": " \t"}, 400, None),
    ({"query": 3}, 422, "query"),
    ({"query": "x" * 1001}, 422, "query"),
    ({"q": "x"}, 422, "q"),
    ({"query": "x", "limit": 0}, 422, "limit"),
    ({"query": "x", "limit": 101}, 422, "limit"),
    ({"query": "x", "limit": 1.5}, 422, "limit"),
    ({"query": "x", "limit": "3"}, 422, "limit"),
    ({"query": "x", "limit": True}, 422, "limit"),
    ({"query": "x", "limit": None}, 422, "limit"),
    ({"query": "x", "threshold": 1.1}, 422, "threshold"),
    ({"query": "x", "threshold": "half"}, 422, "threshold"),
    ({"query": "x", "kind": "skill"}, 422, "kind"),
    ({"query": "x", "search_type": "magic"}, 422, "search_type"),
    ({"query": "x", "explain": "yes"}, 422, "explain"),
    ({"query": "x", "include_schemas": 1}, 422, "include_schemas"),
]


async def test_an_invalid_search_is_refused_by_the_name_of_the_field(
    app: Starlette, subtests: pytest.Subtests
) -> None:
    for body, status, field in INVALID:
        with subtests.test(body=body, status=status, field=field):
            reply = await post(app, SEARCH, **body)
            assert (reply.status, reply.error["code"]) == (status, "VALIDATION_ERROR")
            assert reply.error["details"].get("field") == field


async def test_a_whole_number_may_be_written_with_a_fraction_of_zero(app: Starlette) -> None:
    reply = await ask(app, SEARCH, method="POST", body=b'{"query": "file", "limit": 1.0, "threshold": 0}')
    assert len(reply.json["results"]) == 1


@pytest.mark.parametrize("path", [SEARCH, CALL])
@pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"\xff", b"[" * 100000, b'{"query": "\\ud800"}'])
async def test_a_body_other_than_a_json_object_is_refused(app: Starlette, path: str, body: bytes) -> None:
    reply = await ask(app, path, method="POST", body=body)
    assert (reply.status, reply.error["code"]) == (422, "VALIDATION_ERROR")


async def test_the_id_of_a_search_is_in_the_log_line_of_its_request(
    app: Starlette, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="toolscript.http"):
        query_id = (await post(app, SEARCH, query="file")).json["query_id"]
    assert [vars(record)["query_id"] for record in caplog.records if record.message == "request"] == [query_id]


async def test_until_a_server_has_answered_a_search_is_503_and_the_list_is_empty(starting: Starlette) -> None:
    reply = await post(starting, SEARCH, query="x")
    assert (reply.status, reply.error["code"]) == (503, "UNAVAILABLE")
    assert (await ask(starting, TOOLS)).json == {"results": [], "next_cursor": None}


async def test_tools_are_listed_page_by_page_in_one_order(app: Starlette) -> None:
    whole = (await ask(app, TOOLS)).json
    keys = [(item["server"], item["name"], item["kind"]) for item in whole["results"]]
    assert (len(keys), keys, whole["next_cursor"]) == (7, sorted(keys), None)
    for limit in (1, 3, 7):
        found = await pages(app, f"{TOOLS}?limit={limit}")
        assert [item for page in found for item in page] == whole["results"]
        assert {len(page) for page in found[:-1]} <= {limit}
        assert found[-1]


async def test_a_prompt_and_a_tool_of_one_name_are_both_listed_and_read() -> None:
    twins = [
        Item("files__read", kind, "files", "read", f"Of kind {kind}") for kind in (ItemKind.TOOL, ItemKind.PROMPT)
    ]
    app = open_app(GatewayDouble(found=twins))
    listed = [item for page in await pages(app, f"{TOOLS}?limit=1") for item in page]
    assert [item["kind"] for item in listed] == ["prompt", "tool"]
    for kind, expected in (("", "tool"), ("?kind=tool", "tool"), ("?kind=prompt", "prompt")):
        assert (await ask(app, f"{TOOLS}/files__read{kind}")).json["kind"] == expected
    assert (await ask(app, f"{TOOLS}/files__read?kind=resource")).status == 404


async def test_two_resources_of_one_name_are_both_listed_on_pages_of_one() -> None:
    resources = [
        Item(uri, ItemKind.RESOURCE, "files", "a.txt", uri) for uri in ("file:///a.txt", "file:///b/a.txt")
    ]
    app = open_app(GatewayDouble(found=resources))
    listed = [[item["description"] for item in page] for page in await pages(app, f"{TOOLS}?limit=1")]
    assert listed == [["file:///a.txt"], ["file:///b/a.txt"]]


async def test_a_tool_that_vanishes_between_pages_hides_no_other() -> None:
    double = GatewayDouble(found=[tool("files", f"tool_{number}", "Does it.") for number in range(5)])
    app = open_app(double)
    first = (await ask(app, f"{TOOLS}?limit=3")).json
    double.found = [item for item in double.found if item.name not in ("tool_0", "tool_2")]
    rest = (await ask(app, f"{TOOLS}?limit=3&cursor={first['next_cursor']}")).json
    assert [item["name"] for item in rest["results"]] == ["tool_3", "tool_4"]


async def test_the_list_can_be_filtered_and_have_schemas(app: Starlette) -> None:
    listed = (await ask(app, f"{TOOLS}?server=mail&server=files&kind=tool&include_schemas=true")).json["results"]
    assert [item["id"] for item in listed] == ["files__read_file", "files__write_file", "mail__send_mail"]
    assert listed[0]["input_schema"]["properties"]["path"]["type"] == "string"
    assert [item["input_schema"] for item in (await ask(app, f"{TOOLS}?server=files")).json["results"]] == [
        None
    ] * 3
    assert (await ask(app, f"{TOOLS}?server=nobody")).json["results"] == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        *((f"{TOOLS}?limit={limit}", "limit") for limit in ("0", "201", "x", "-1", "", "1.0", "9" * 5000)),
        *((f"{path}?cursor=nonsense", "cursor") for path in (TOOLS, SERVERS)),
        (f"{TOOLS}?cursor=Mw", "cursor"),
        (f"{TOOLS}?kind=skill", "kind"),
        (f"{TOOLS}?include_schemas=maybe", "include_schemas"),
        (f"{TOOLS}/files__read_file?kind=any", "kind"),
        (f"{SERVERS}?limit=0", "limit"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_invalid_parameter_is_refused_by_its_name(app: Starlette, path: str, field: str) -> None:
    reply = await ask(app, path)
    assert (reply.status, reply.error["code"], reply.error["details"]["field"]) == (422, "VALIDATION_ERROR", field)


async def test_one_tool_has_its_schemas(app: Starlette) -> None:
    shown = (await ask(app, f"{TOOLS}/files__read_file")).json
    listed = (await ask(app, f"{TOOLS}?include_schemas=true&server=files&kind=tool&limit=1")).json["results"]
    assert [shown] == listed
    assert (await ask(app, f"{TOOLS}/{CLIENT_PREFIX}files__read_file")).json == shown


@pytest.mark.parametrize("name", ["a/b", "with space", "ü#%", "line\nend", "..", "search", "call"])
async def test_a_tool_of_any_name_has_a_path(name: str) -> None:
    app = open_app(GatewayDouble(found=[tool("files", name, "Does it.")]))
    assert (await ask(app, f"{TOOLS}/files__{name}")).json["name"] == name


@pytest.mark.parametrize(
    ("tool_id", "status", "code"),
    [
        ("files__red_file", 404, "NOT_FOUND"),
        ("nobody__read_file", 404, "NOT_FOUND"),
        ("files__sum_up", 404, "NOT_FOUND"),
        ("no-tool", 422, "VALIDATION_ERROR"),
        ("", 422, "VALIDATION_ERROR"),
    ],
)
async def test_a_tool_that_does_not_exist_is_refused(app: Starlette, tool_id: str, status: int, code: str) -> None:
    reply = await ask(app, f"{TOOLS}/{tool_id}")
    assert (reply.status, reply.error["code"]) == (status, code)
    if status == 404:
        assert "files__read_file" in reply.error["details"]["nearest"]
        assert f"GET {TOOLS}" in reply.error["details"]["hint"]


@pytest.mark.requirement("TS-010")
async def test_a_call_passes_on_the_arguments_and_the_result(app: Starlette) -> None:
    arguments = {"path": "a", "n": [1, None, {"ü": "💥"}]}
    reply = await post(app, CALL, id="files__read_file", arguments=arguments)
    assert (reply.status, reply.json) == (
        200,
        {
            "content": [{"type": "text", "text": "read_file"}],
            "structured_content": arguments,
            "is_error": False,
        },
    )
    failed = await post(app, CALL, id="demo__fails")
    assert (failed.status, failed.json["is_error"], failed.json["structured_content"]) == (200, True, {})


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"id": "files__absent"}, 404, "NOT_FOUND"),
        ({"id": "files__sum_up"}, 404, "NOT_FOUND"),
        ({"id": "no-tool"}, 422, "VALIDATION_ERROR"),
        ({"id": 3}, 422, "VALIDATION_ERROR"),
        ({}, 422, "VALIDATION_ERROR"),
        ({"tool": "files__read_file"}, 422, "VALIDATION_ERROR"),
        ({"id": "files__read_file", "arguments": []}, 422, "VALIDATION_ERROR"),
        ({"id": "files__read_file", "arguments": None}, 422, "VALIDATION_ERROR"),
        ({"id": "demo__reject"}, 502, "UNAVAILABLE"),
        ({"id": "demo__vanish"}, 503, "UNAVAILABLE"),
    ],
)
async def test_a_call_that_cannot_be_made_says_why(
    app: Starlette, body: dict[str, Any], status: int, code: str
) -> None:
    reply = await post(app, CALL, **body)
    assert (reply.status, reply.error["code"]) == (status, code)


async def test_the_hint_of_a_server_that_is_down_names_a_route() -> None:
    app = open_app(GatewayDouble(replies={"files__read_file": down("files")}))
    reply = await post(app, CALL, id="files__read_file")
    assert (reply.status, reply.error["message"]) == (503, "files is not connected")
    assert reply.error["details"]["hint"] == f"`GET {SERVERS}` shows the state of every server"


async def test_a_call_without_an_answer_says_that_it_may_have_had_its_effect() -> None:
    app = open_app(GatewayDouble(replies={"files__read_file": OutcomeUnknown("no answer within 60 seconds")}))
    reply = await post(app, CALL, id="files__read_file")
    details = reply.error["details"]
    assert (reply.status, details["outcome"], details["retryable"]) == (503, "unknown", False)
    assert details["hint"] == "it may have had its effect: check before you repeat it"


class Servers(GatewayDouble):
    """Two servers, one of which has failed."""

    async def servers(self) -> list[ServerState]:
        return [
            ServerState("files", Transport.STDIO, ServerStatus.READY, "", "2026-07-28", "1.2", 3, 1, 0),
            ServerState("mail", Transport.HTTP, ServerStatus.FAILED, "connection refused"),
        ]


async def test_servers_are_listed_with_their_state() -> None:
    counts = {"tools": 3, "prompts": 1, "resources": 0}
    files = {"name": "files", "state": "ready", "transport": "stdio", "error": None, "protocol": "2026-07-28"}
    mail = {
        "name": "mail",
        "state": "failed",
        "transport": "http",
        "error": "connection refused",
        "protocol": None,
    }
    expected = [{**files, "version": "1.2", **counts}, {**mail, "version": None, **dict.fromkeys(counts, 0)}]
    app = open_app(Servers())
    assert (await ask(app, SERVERS)).json == {"results": expected, "next_cursor": None}
    assert await pages(app, f"{SERVERS}?limit=1") == [[server] for server in expected]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1", 404, "NOT_FOUND"),
        ("GET", "/api/v1/nowhere", 404, "NOT_FOUND"),
        ("PUT", SEARCH, 405, "METHOD_NOT_ALLOWED"),
        ("GET", SEARCH, 405, "METHOD_NOT_ALLOWED"),
        ("GET", CALL, 405, "METHOD_NOT_ALLOWED"),
        ("GET", SERVERS.upper(), 404, "NOT_FOUND"),
        ("DELETE", TOOLS, 405, "METHOD_NOT_ALLOWED"),
        ("POST", SERVERS, 405, "METHOD_NOT_ALLOWED"),
        ("POST", f"{TOOLS}/files__read_file", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_errors_of_the_framework_have_a_code_per_kind(
    app: Starlette, method: str, path: str, status: int, code: str
) -> None:
    reply = await ask(app, path, method=method)
    assert (reply.status, reply.error["code"]) == (status, code)


async def test_a_body_that_is_too_large_has_its_own_code(app: Starlette) -> None:
    body = b'{"id": "files__read_file", "arguments": {"a": "' + b"x" * 8 * 1024 * 1024 + b'"}}'
    reply = await ask(app, CALL, method="POST", body=body)
    assert (reply.status, reply.error["code"]) == (413, "TOO_LARGE")


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_a_route_needs_the_token_or_the_owners_connection(method: str, path: str, body: bytes) -> None:
    double = GatewayDouble()
    locked = open_app(double, token=TOKEN)
    for header in (None, "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
        headers = [("authorization", header)] if header else []
        reply = await ask(locked, path, *headers, method=method, body=body)
        assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert (double.calls, double.queries) == ([], [])
    allowed = await ask(locked, path, ("authorization", f"Bearer {TOKEN}"), method=method, body=body)
    assert allowed.status == 200
    for same_person in (True, False):
        answer = same_person
        owned = create_gateway_app(
            GatewayDouble(), limit=3, threshold=0.0, token=TOKEN, is_same_person=lambda *_, answer=answer: answer
        )
        assert (await ask(owned, path, method=method, body=body)).status == (200 if same_person else 401)
        by_browser = ("sec-fetch-site", "same-origin")
        assert (await ask(owned, path, by_browser, method=method, body=body)).status == 401


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_a_route_refuses_other_host_names_and_other_pages(method: str, path: str, body: bytes) -> None:
    double = GatewayDouble()
    app = open_app(double, token=TOKEN)
    token = ("authorization", f"Bearer {TOKEN}")
    for header, value in (
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "http://localhost:3000"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ):
        reply = await ask(app, path, token, (header, value), method=method, body=body, host=header != "host")
        assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
        assert reply.error["details"]["header"].lower() == header
    assert (double.calls, double.queries) == ([], [])


Parameters = st.fixed_dictionaries(
    {},
    optional={
        "cursor": st.text(max_size=20),
        "limit": st.integers(-5, 300).map(str) | st.text(max_size=8),
        "kind": st.sampled_from(["tool", "prompt", "any"]) | st.text(max_size=5),
        "server": st.text(max_size=10) | st.just("files"),
        "include_schemas": st.sampled_from(["true", "false", "1", ""]),
    },
)
Requests = st.fixed_dictionaries(
    {},
    optional={
        name: st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=20)
        | st.just([])
        for name in ("query", "limit", "threshold", "kind", "search_type", "explain", "id", "arguments", "x")
    },
).map(lambda value: json.dumps(value).encode())


@LENIENT
@given(path=st.sampled_from([TOOLS, SERVERS, f"{TOOLS}/files__read_file"]), asked=Parameters)
async def test_any_parameters_get_a_documented_answer(app: Starlette, path: str, asked: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in asked.items())
    is_documented(await ask(app, f"{path}?{query}"))


@LENIENT
@given(path=st.sampled_from([SEARCH, CALL]), body=Bodies | Requests)
async def test_any_body_gets_a_documented_answer(app: Starlette, path: str, body: bytes) -> None:
    is_documented(await ask(app, path, method="POST", body=body))
