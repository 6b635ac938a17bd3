"""Access to a running gateway: every route is guarded. What is let in, and what not: tests/unit/gateway/http."""

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


@pytest.mark.parametrize(("name", "value"), [("Host", "evil.example"), ("Origin", "https://evil.example")])
def test_a_name_or_a_page_of_another_machine_is_refused_everywhere(
    gateway: Gateway, name: str, value: str, subtests: pytest.Subtests
) -> None:
    for path in PATHS:
        with subtests.test(path=path):
            status, error = ask(gateway, path, {name: value})
            assert (status, error["code"], error["details"]) == (403, "FORBIDDEN", {"header": name})
    assert ask(gateway, "/health", {"Host": "localhost:1"})[0] == 200


def test_without_the_token_every_request_is_refused(
    locked: tuple[Machine, Gateway], subtests: pytest.Subtests
) -> None:
    for path in PATHS:
        for shown in () if path == "/livez" else ("", "Bearer wrong"):
            with subtests.test(path=path, shown=shown):
                method, headers = "POST" if path.startswith("/mcp") else "GET", {"Authorization": shown}
                answer = locked[1].ask(path, method, headers=headers if shown else {})
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
