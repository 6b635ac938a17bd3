"""The lists under /api/v1: their answers, their errors, and who may use them; calls that cannot be made."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import Reply, ask
from tests.unit.gateway.http.test_fuzz import LENIENT, is_documented
from tests.unit.gateway.mcp.gateway_double import GatewayDouble, down, tool
from tests.unit.gateway.runtime.serving import open_app
from toolscript.core.errors import OutcomeUnknown
from toolscript.core.items import CLIENT_PREFIX, Item, ItemKind
from toolscript.core.mcp_client.model import ServerState, ServerStatus, Transport
from toolscript.gateway.http import create_gateway_app

pytestmark = pytest.mark.requirement("TS-008")

TOOLS = "/api/v1/tools"
SERVERS = "/api/v1/servers"
CALL = "/tools/files__read_file"
TOKEN = "s3cret token/+="
ROUTES = [
    ("GET", "/search?q=read", b""),
    ("POST", CALL, b"{}"),
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


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", f"{TOOLS}/search"), ("POST", f"{TOOLS}/call"), ("GET", "/tools"), ("GET", "/servers")],
)
async def test_there_is_no_second_path_for_anything(app: Starlette, method: str, path: str) -> None:
    reply = await ask(app, path, method=method, body=b'{"query": "x", "id": "files__read_file"}')
    # `GET /api/v1/tools/{tool_id}` has the first two as ids, for GET alone.
    assert (reply.status, reply.error["code"]) in ((404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED"))


async def test_until_a_server_has_answered_the_list_is_empty(starting: Starlette) -> None:
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
        ("__", 422, "VALIDATION_ERROR"),
    ],
)
async def test_a_tool_that_does_not_exist_is_refused(app: Starlette, tool_id: str, status: int, code: str) -> None:
    reply = await ask(app, f"{TOOLS}/{tool_id}")
    assert (reply.status, reply.error["code"]) == (status, code)
    if status == 404:
        assert "files__read_file" in reply.error["details"]["nearest"]
        assert f"GET {TOOLS}" in reply.error["details"]["hint"]


async def test_the_hint_of_a_server_that_is_down_names_a_route() -> None:
    app = open_app(GatewayDouble(replies={"files__read_file": down("files")}))
    reply = await ask(app, CALL, method="POST")
    assert (reply.status, reply.error["message"]) == (503, "files is not connected")
    assert reply.error["details"]["hint"] == f"`GET {SERVERS}` shows the state of every server"


async def test_a_call_without_an_answer_says_that_it_may_have_had_its_effect() -> None:
    app = open_app(GatewayDouble(replies={"files__read_file": OutcomeUnknown("no answer within 60 seconds")}))
    reply = await ask(app, CALL, method="POST")
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
        ("GET", SERVERS.upper(), 404, "NOT_FOUND"),
        ("DELETE", TOOLS, 405, "METHOD_NOT_ALLOWED"),
        ("POST", SERVERS, 405, "METHOD_NOT_ALLOWED"),
        ("PUT", f"{TOOLS}/files__read_file", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_errors_of_the_framework_have_a_code_per_kind(
    app: Starlette, method: str, path: str, status: int, code: str
) -> None:
    reply = await ask(app, path, method=method)
    assert (reply.status, reply.error["code"]) == (status, code)


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


@LENIENT
@given(path=st.sampled_from([TOOLS, SERVERS, f"{TOOLS}/files__read_file"]), asked=Parameters)
async def test_any_parameters_get_a_documented_answer(app: Starlette, path: str, asked: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in asked.items())
    is_documented(await ask(app, f"{path}?{query}"))
