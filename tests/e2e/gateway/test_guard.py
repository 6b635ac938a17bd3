"""Access to a gateway: local clients with the token, and no foreign web page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.gateway.machines import Gateway, Machine, new_machine

pytestmark = pytest.mark.requirement("TS-008")

TOKEN = "a-token-of-the-tests"
PATHS = ("/search?q=x", "/health", "/tools", "/runtime/tools.ts", "/livez", "/mcp", "/mcp/plain", "/nothing")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    """A gateway that requires a token."""
    machine = new_machine(tmp_path_factory.mktemp("locked") / "machine", weights)
    machine.configure({})
    machine = machine.also(TOOLSCRIPT_GATEWAY_TOKEN=TOKEN)
    with machine.gateway() as gateway:
        yield machine, gateway


def ask(gateway: Gateway, path: str, headers: dict[str, str]) -> tuple[int, Any]:
    method = "POST" if path.startswith("/mcp") else "GET"
    answer = gateway.ask(path, method, headers=headers)
    return answer.status_code, answer.json().get("error", {}) if "json" in answer.headers["content-type"] else {}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", ""])
def test_a_foreign_host_name_is_refused_everywhere(gateway: Gateway, path: str, host: str) -> None:
    status, error = ask(gateway, path, {"Host": host})
    assert (status, error["code"], error["details"]) == (403, "FORBIDDEN", {"header": "Host"})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_another_machine_is_refused_everywhere(gateway: Gateway, path: str, origin: str) -> None:
    status, error = ask(gateway, path, {"Origin": origin})
    assert (status, error["code"], error["details"]) == (403, "FORBIDDEN", {"header": "Origin"})


@pytest.mark.parametrize("headers", [{"Host": "localhost:1"}, {"Host": "[::1]:7355"}, {"Host": "127.0.0.1"}])
def test_any_loopback_name_is_allowed(gateway: Gateway, headers: dict[str, str]) -> None:
    assert ask(gateway, "/health", headers)[0] == 200


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/livez"])
@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_without_the_token_every_request_is_refused(
    locked: tuple[Machine, Gateway], path: str, shown: str
) -> None:
    answer = locked[1].ask(
        path, "POST" if path.startswith("/mcp") else "GET", headers={"Authorization": shown} if shown else {}
    )
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "UNAUTHORIZED"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text


def test_with_the_token_all_routes_respond_and_liveness_is_public(locked: tuple[Machine, Gateway]) -> None:
    machine, gateway = locked
    assert gateway.health()["ready"] is True
    assert gateway.ask("/livez", headers={}).status_code == 200
    assert machine.json("gateway", "status")["running"] is True
    unaware = machine.without("TOOLSCRIPT_GATEWAY_TOKEN")
    assert "requires their token" in unaware.run("search", "x", code=2).stderr


async def test_an_mcp_client_with_the_token_is_let_in(locked: tuple[Machine, Gateway]) -> None:
    import httpx2

    output = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=output, trust_env=False, verify=False) as http,
        Client(streamable_http_client(f"{locked[1].url}/mcp", http_client=http)) as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "search_tools",
            "describe_tool",
            "call_tool",
            "read_result",
            "get_prompt",
            "read_resource",
        }


def test_the_token_is_written_nowhere(locked: tuple[Machine, Gateway]) -> None:
    machine, _ = locked
    files = [path for path in machine.folder.rglob("*") if path.is_file()]
    assert any(path.parent.name == "run" for path in files)
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
