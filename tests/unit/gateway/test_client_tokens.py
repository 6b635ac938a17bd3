"""Tokens of clients: each its own, for finding, listing and calling alone, void at once when revoked."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.routing import Route

from tests.unit.gateway.http.requests import ask
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.core.errors import InvalidRequest
from toolscript.gateway.client_tokens import ClientTokens, is_of_client
from toolscript.gateway.http import create_gateway_app

pytestmark = pytest.mark.requirement("TS-008")

# What a client's token may ask, of all that a gateway answers. A new route is for the person, unless it is here.
FOR_CLIENTS = {
    *(("GET", path) for path in ("/search", "/health", "/livez", "/servers", "/tools", "/runtime/tools.ts")),
    ("POST", "/tools/x"),
    ("GET", "/openapi.json"),
    *(("GET", f"/api/v1/{path}") for path in ("tools", "tools/x", "servers", "reviews")),
    *(("POST", f"/api/v1/tools/{path}") for path in ("search", "call")),
}


def client_of(token: str) -> str:
    return "cursor" if token == "of-a-client" else ""


def test_a_client_keeps_its_token_and_no_two_share_one(tmp_path: Path) -> None:
    tokens = ClientTokens(tmp_path / "run")
    first = tokens.of("cursor")
    assert first == tokens.of("cursor") == ClientTokens(tmp_path / "run").known("cursor") != tokens.of("vscode")
    assert is_of_client(first)
    assert (tokens.client_of(first), tokens.client_of("x"), tokens.client_of("")) == ("cursor", "", "")
    assert [token.client for token in tokens.all()] == ["cursor", "vscode"]
    assert stat.S_IMODE((tmp_path / "run" / "clients.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_another_process_revokes_it_and_the_next_request_is_refused(tmp_path: Path) -> None:
    running, other = ClientTokens(tmp_path), ClientTokens(tmp_path)
    token = other.of("cursor")
    assert running.client_of(token) == "cursor"
    assert other.revoke("cursor")
    assert not other.revoke("cursor")
    assert running.client_of(token) == ""
    assert other.of("cursor") != token


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 1}', '{"a": {"token": "", "created_at": 1}}', "[" * 99_999]
)
def test_a_file_that_cannot_be_read_grants_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "clients.json").write_text(text)
    tokens = ClientTokens(tmp_path)
    assert (tokens.client_of(""), tokens.all()) == ("", [])
    assert tokens.client_of(tokens.of("cursor")) == "cursor"


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b"])
def test_a_name_that_cannot_be_logged_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest):
        ClientTokens(tmp_path).of(name)


def test_clients_that_connect_at_once_all_keep_theirs(tmp_path: Path) -> None:
    names = [f"client {number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        given = dict(zip(names, pool.map(lambda name: ClientTokens(tmp_path).of(name), names), strict=True))
    assert {name: ClientTokens(tmp_path).known(name) for name in names} == given


async def test_of_all_routes_a_clients_token_reaches_those_that_find_list_and_call() -> None:
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token="of-the-person", client_of=client_of)
    header = ("authorization", "Bearer of-a-client")
    reached = set()
    for route in app.routes:
        assert isinstance(route, Route)
        path = route.path.replace("{number:int}", "1")
        for part in ("{tool:anything}", "{tool_id:anything}", "{name:anything}", "{kind}", "{id}"):
            path = path.replace(part, "x")
        for method in (route.methods or set()) - {"HEAD"}:
            assert (await ask(app, path, method=method)).status in (200, 401)
            for prefix in ("", "/w/0123456789abcdef"):
                reply = await ask(app, prefix + path, header, method=method, body=b"{}")
                if reply.status != 403 or "a client's token" not in reply.error["message"]:
                    reached.add((method, path))
    assert reached == FOR_CLIENTS


@pytest.mark.parametrize(
    "path", ["/handover", "/workspaces", "/new", "/api/v1/new", "/api/v1", "/", "/toolsx", "//tools"]
)
async def test_what_is_not_named_is_for_the_person(path: str) -> None:
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token="of-the-person", client_of=client_of)
    for method in ("GET", "POST", "PUT", "DELETE"):
        reply = await ask(app, path, ("authorization", "Bearer of-a-client"), method=method)
        assert reply.status == 403, (method, path)
        assert "ask the user" in reply.error["details"]["hint"]
