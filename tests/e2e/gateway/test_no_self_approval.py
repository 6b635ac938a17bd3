"""An agent does not approve itself: every way in which it reaches the gateway, tried on what a person decides."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, new_machine, until

pytestmark = [pytest.mark.requirement("TR-002", "TR-001"), pytest.mark.slow]

HELD, ASKED = "notes__read_notes", "plain__add"
NUMBERS = {"a": 1, "b": 2}
# What a person decides, as far as a route might do it; a path without a route must not have one for an agent.
DECISIONS = (
    ("POST", "/api/v1/reviews/approve", {"digests": ["DIGEST"]}),
    ("POST", "/api/v1/reviews/reject", {"digests": ["DIGEST"]}),
    ("POST", "/handover", {"socket": "/nowhere/x"}),
    *((method, f"{root}/{what}", {"x": 1})
      for method in ("POST", "PUT", "PATCH", "DELETE")
      for root in ("", "/api/v1")
      for what in ("rules", "trust", "secrets", "config", "curation", "tokens", "restart")),
)  # fmt: skip
COMMANDS = (
    ("review", "approve", HELD),
    ("review", "approve", "--all", "--yes"),
    ("review", "reject", "--server", "notes", "-y"),
    ("trust",),
    ("trust", "--yes"),
    ("secrets", "set", "TOKEN"),
    ("secrets", "remove", "TOKEN"),
    ("curation", "promote", ASKED, "anything"),
    ("curation", "never", HELD, "anything"),
    ("curation", "synonym", "ticket", "issue"),
    ("curation", "remove", "1"),
    ("call", ASKED, json.dumps(NUMBERS), "--yes"),
    ("call", HELD, "--yes"),
    ("config", "import", "--project", "--yes"),
)


class Tried(NamedTuple):
    machine: Machine
    gateway: Gateway
    token: str


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """A machine with a tool that is held, one that a rule asks about, an untrusted project and a secret."""
    machine = new_machine(tmp_path_factory.mktemp("agent") / "machine", Path("none"))
    machine = machine.also(TOOLSCRIPT_SEARCH_MODEL="none", TOOLSCRIPT_GATEWAY_APPROVALS="strict")
    calls = str(machine.folder / "calls")
    servers = {"notes": mcp_server("rugpull", "description", "1", calls), "plain": mcp_server("plain")}
    ask = [{"tools": ASKED, "do": "ask"}]
    machine.write_config(json.dumps({"mcpServers": servers, "rules": ask, "curation": []}))
    other = {"mcpServers": {"other": mcp_server("plain")}}
    for name in (".toolscript.json", ".mcp.json"):
        (machine.project / name).write_text(json.dumps(other), "utf-8")
    (machine.home / ".cursor").mkdir()
    machine.by_person("secrets", "set", "TOKEN", standard_input="of a person")
    with machine.gateway() as gateway:
        until(lambda: ASKED in gateway.tool_names(), "the tools")
        assert gateway.call(HELD).status_code == 200
        until(lambda: HELD not in gateway.tool_names(), "the change is held")
        machine.run("config", "connect", "cursor", "--http", "--yes")
        entry = json.loads((machine.home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]["toolscript"]
        yield Tried(machine, gateway, entry["headers"]["Authorization"].removeprefix("Bearer "))


def state(tried: Tried) -> dict[str, str]:
    """Return all that a decision of a person would change."""
    home = tried.machine.home
    files = [home / ".toolscript.json", home / ".cursor" / "mcp.json"]
    files += [
        path for name in ("trusted", "approvals", "secrets") for path in (home / ".toolscript" / name).glob("*")
    ]
    return {str(path): path.read_text("utf-8") for path in files if path.is_file() and path.suffix == ".json"}


def is_refused(result: Any) -> bool:
    return bool(result.is_error) and bool(re.search("a person must|its user|the user", str(result.content)))


@pytest.mark.parametrize("way", ["token", "connection"])
def test_http_with_a_clients_token_or_none_decides_nothing(tried: Tried, way: str) -> None:
    before, gateway = state(tried), tried.gateway
    headers = {"Authorization": f"Bearer {tried.token}"} if way == "token" else {}
    [review] = gateway.ask("/api/v1/reviews", headers=headers).json()["results"]
    assert review["difference"] == ""
    for method, path, body in DECISIONS:
        sent = json.loads(json.dumps(body).replace("DIGEST", review["digest"]))
        answer = gateway.ask(path, method, json=sent, headers=headers)
        assert answer.status_code in ({403} if way == "token" else {401, 404, 405}), (path, answer.text)
    for path, sent in (
        (f"/tools/{ASKED}?confirm=true", NUMBERS),
        ("/api/v1/tools/call", {"id": ASKED, "arguments": NUMBERS, "confirm": True}),
        ("/api/v1/tools/call", {"id": HELD, "arguments": {}, "confirm": True}),
    ):
        answer = gateway.ask(path, "POST", json=sent, headers=headers)
        assert answer.status_code == 403, answer.text
        assert "person" in answer.text or "user" in answer.text
    if way == "token":
        assert gateway.ask("/workspaces", "POST", json={"files": ["/x"]}, headers=headers).status_code == 403
        assert gateway.ask("/api/v1/activity", headers=headers).status_code == 403
    assert state(tried) == before


def test_the_tools_of_mcp_decide_nothing(tried: Tried) -> None:
    before = state(tried)
    program = command("mcp")
    over_stdio = StdioServerParameters(
        command=program[0], args=program[1:], env=tried.machine.whole_environment(), cwd=tried.machine.project
    )

    async def ask() -> None:
        for place in (stdio_client(over_stdio), f"{tried.gateway.url}/mcp"):
            async with Client(place) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert not {name for name in names if re.search("approv|review|rule|trust|secret|config", name)}
                for arguments in (
                    {"tool": HELD},
                    {"tool": ASKED, "arguments": NUMBERS},
                    {"tool": ASKED, "arguments": {**NUMBERS, "confirm": True}},
                ):
                    assert is_refused(await client.call_tool("call_tool", arguments))

    asyncio.run(ask())
    assert state(tried) == before


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_shell_without_a_terminal_decides_nothing_and_is_told_to_ask_its_user(
    tried: Tried, arguments: tuple[str, ...]
) -> None:
    before = state(tried)
    machine = tried.machine
    done = subprocess.run(
        command(*arguments),
        env={**machine.whole_environment(), "TOOLSCRIPT_GATEWAY_ALONE": "false"},
        cwd=machine.project,
        input="y\ny\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search("ask the user|a person must", done.stderr), done.stderr
    assert "--yes" not in done.stderr
    assert state(tried) == before


def test_a_clients_token_finds_lists_and_calls_under_its_own_name(tried: Tried) -> None:
    gateway = tried.gateway
    headers = {"Authorization": f"Bearer {tried.token}", "X-Toolscript-Client": "somebody-else"}
    for path in ("/search?q=add", "/tools", "/servers", "/health", "/runtime/tools.ts", "/api/v1/tools"):
        assert gateway.ask(path, headers=headers).status_code == 200, path
    assert gateway.ask("/tools/plain__greet", "POST", json={"name": "x"}, headers=headers).status_code != 401

    async def ask() -> None:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {tried.token}"}) as http,
            Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http)) as client,
        ):
            await client.call_tool("search_tools", {"query": "add two numbers"})

    asyncio.run(ask())
    seen = tried.machine.json("activity")["results"]
    assert {"cursor"} == {entry["client"] for entry in seen[:2]}
    assert "somebody-else" not in str(seen)


def test_a_revoked_token_is_void_at_once(tried: Tried) -> None:
    machine, gateway = tried.machine, tried.gateway
    env = machine.json("gateway", "env", "--client", "script")
    headers = {"Authorization": f"Bearer {env['token']}"}
    assert gateway.ask("/tools", headers=headers).status_code == 200
    assert {"script", "cursor"} <= {entry["client"] for entry in machine.json("gateway", "clients")["clients"]}
    assert env["token"] not in machine.run("gateway", "clients", "--json").stdout
    machine.run("gateway", "revoke", "script")
    assert gateway.ask("/tools", headers=headers).status_code == 401
    assert "no client called" in machine.run("gateway", "revoke", "script", code=2).stderr
    again = machine.json("gateway", "env", "--client", "script")["token"]
    assert again != env["token"]


def test_a_gateway_that_is_started_in_a_shell_with_a_clients_token_does_not_take_it_for_its_own(
    tmp_path: Path,
) -> None:
    machine = new_machine(tmp_path / "machine", Path("none")).also(TOOLSCRIPT_SEARCH_MODEL="none")
    machine.configure({})
    with machine.gateway():
        token = machine.json("gateway", "env")["token"]
    with machine.also(TOOLSCRIPT_GATEWAY_TOKEN=token).gateway() as gateway:
        assert gateway.ask("/tools").status_code == 200
        assert gateway.ask("/api/v1/reviews/approve", "POST", json={"digests": ["x"]}).status_code == 403
