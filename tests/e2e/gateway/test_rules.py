"""Rules for calls: every row of client, risk and rule, on every way to call a tool, between real processes."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.e2e.commands import command
from tests.e2e.gateway.machines import ROOT, Gateway, Machine, new_machine, until
from tests.support.mcp_servers.risky import CLAIMS

pytestmark = pytest.mark.requirement("TR-003")

MADE, ASKED, DENIED = "made", "asked", "denied"
EVERY = dict.fromkeys(CLAIMS, MADE)
ME, ANOTHER = "ME", "ANOTHER"


def all_are(outcome: str) -> dict[str, str]:
    return dict.fromkeys(CLAIMS, outcome)


# Of each row: its rules, which are about the tools of the row unless they name others, and what becomes of calls
# of these. ME stands for the client that calls.
ROWS: list[tuple[list[dict[str, str]], dict[str, str]]] = [
    ([], EVERY),
    ([{"do": "allow"}], EVERY),
    ([{"do": "ask"}], all_are(ASKED)),
    ([{"do": "deny"}], all_are(DENIED)),
    ([{"risk": "read", "do": "ask"}], {**EVERY, "read": ASKED}),
    ([{"risk": "write", "do": "deny"}], {**EVERY, "write": DENIED}),
    ([{"risk": "destructive", "do": "ask"}], {**EVERY, "destructive": ASKED, "unannotated": ASKED}),
    ([{"risk": "destructive", "do": "deny"}], {**EVERY, "destructive": DENIED, "unannotated": DENIED}),
    ([{"client": ME, "do": "deny"}], all_are(DENIED)),
    ([{"client": ANOTHER, "do": "deny"}], EVERY),
    ([{"client": ME, "risk": "read", "do": "allow"}, {"do": "ask"}], {**all_are(ASKED), "read": MADE}),
    ([{"client": ANOTHER, "do": "allow"}, {"risk": "write", "do": "ask"}], {**EVERY, "write": ASKED}),
    # What a person says about a tool beats what it claims, both ways.
    ([{"is": "read"}, {"risk": "destructive", "do": "deny"}], EVERY),
    ([{"is": "destructive"}, {"risk": "destructive", "do": "deny"}], all_are(DENIED)),
    ([{"is": "write"}, {"risk": "write", "do": "ask"}], all_are(ASKED)),
    # The first that fits decides, not the strictest and not the most specific.
    ([{"tools": "*__unannotated_15", "do": "allow"}, {"do": "deny"}], {**all_are(DENIED), "unannotated": MADE}),
    ([{"do": "ask"}, {"tools": "*__read_16", "do": "allow"}], all_are(ASKED)),
    # A mistake lets nothing through.
    ([{"do": "alow"}], all_are(DENIED)),
    ([{"do": "allow", "clients": ME}], all_are(DENIED)),
]


def rules_of(client: str) -> list[dict[str, str]]:
    names = {ME: client, ANOTHER: f"not-{client}"}
    return [
        {"tools": f"risky__*_{row}", **rule, **({"client": names[rule["client"]]} if "client" in rule else {})}
        for row, (rules, _) in enumerate(ROWS)
        for rule in rules
    ]


def expected() -> dict[str, str]:
    return {
        f"risky__{risk}_{row}": outcome
        for row, (_, outcomes) in enumerate(ROWS)
        for risk, outcome in outcomes.items()
    }


@dataclass(frozen=True)
class Server:
    """A server of tools of every risk, and the file in which they note their calls."""

    url: str
    notes: Path

    def calls(self) -> list[str]:
        return self.notes.read_text("utf-8").splitlines() if self.notes.exists() else []


@pytest.fixture(scope="module")
def risky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    notes = tmp_path_factory.mktemp("risky") / "notes.txt"
    program = [sys.executable, "-m", "tests.support.mcp_servers.risky", str(notes), str(len(ROWS))]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", notes)
        process.terminate()


@pytest.fixture
def machine(tmp_path: Path, risky: Server) -> Machine:
    machine = new_machine(tmp_path / "machine", tmp_path)
    return configured(machine.also(TOOLSCRIPT_SEARCH_MODEL="none", NO_PROXY="127.0.0.1"), risky, [])


def configured(machine: Machine, risky: Server, rules: object) -> Machine:
    machine.write_config(json.dumps({"mcpServers": {"risky": {"url": risky.url}}, "rules": rules}))
    return machine


def ready(gateway: Gateway) -> Gateway:
    until(lambda: gateway.server("risky").get("tools"), "the tools of the server")
    return gateway


def outcome_of(is_made: bool, message: str) -> str:
    """Return what became of a call, by what the client was told."""
    if is_made:
        assert message.startswith("did "), message
        return MADE
    if "a person must allow this call" in message:
        return ASKED
    assert "denies this call" in message, message
    return DENIED


class Way:
    """A way to call tools, by the name of the client that a rule sees."""

    client = ""

    async def call(self, tool: str) -> str: ...  # type: ignore[empty-body]


class CommandLine(Way):
    client = "cli"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine.here()

    async def call(self, tool: str) -> str:
        wanted = expected()[tool]
        done = self._machine.run("call", tool, code=0 if wanted == MADE else 2)
        return outcome_of(wanted == MADE, done.stdout + done.stderr)


@dataclass
class OverHttp(Way):
    gateway: Gateway
    is_alias: bool
    client = "a-script"

    async def call(self, tool: str) -> str:
        path, body = (f"/tools/{tool}", {}) if self.is_alias else ("/api/v1/tools/call", {"id": tool})
        answer = self.gateway.ask(path, "POST", json=body, headers={"x-toolscript-client": self.client}).json()
        if "content" in answer:
            return outcome_of(True, answer["content"][0]["text"])
        outcome = outcome_of(False, answer["error"]["message"])
        assert ("confirmation" in answer["error"]["details"]) == (outcome == ASKED)
        return outcome


@dataclass
class OverMcp(Way):
    """`is_one`: the endpoint of one server, where its tools have their own names."""

    mcp: Client
    is_one: bool = False
    client = "an-editor"

    async def call(self, tool: str) -> str:
        name, arguments = ("call_tool", {"tool": tool}) if not self.is_one else (tool.removeprefix("risky__"), {})
        result = await self.mcp.call_tool(name, arguments)
        return outcome_of(not result.is_error, text_of(result))


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


EDITOR = Implementation(name=OverMcp.client, version="1")
WAYS = ("cli", "http", "api", "mcp", "mcp-legacy", "stdio", "stdio-legacy", "one-server", "alone")


def relay(machine: Machine, **more: str) -> StdioServerParameters:
    """`toolscript mcp`, as a client starts it."""
    program, *arguments = command("mcp")
    own = {**machine.whole_environment(), **more}
    return StdioServerParameters(command=program, args=arguments, env=own, cwd=machine.project)


@asynccontextmanager
async def way(name: str, machine: Machine) -> AsyncIterator[Way]:
    mode = "legacy" if name.endswith("legacy") else "auto"
    if name == "alone":
        async with Client(stdio_client(relay(machine)), client_info=EDITOR) as client:
            yield OverMcp(client)
        return
    with machine.gateway() as gateway:
        ready(gateway)
        if name == "cli":
            yield CommandLine(machine)
        elif name in ("http", "api"):
            yield OverHttp(gateway, is_alias=name == "http")
        elif name.startswith("stdio"):
            async with Client(stdio_client(relay(machine)), client_info=EDITOR, mode=mode) as client:
                yield OverMcp(client)
        else:
            path = "/mcp/risky" if name == "one-server" else "/mcp"
            async with Client(gateway.url + path, client_info=EDITOR, mode=mode) as client:
                yield OverMcp(client, is_one=name == "one-server")


CLIENTS: Mapping[str, str] = {"cli": CommandLine.client, "http": OverHttp.client, "api": OverHttp.client}


@pytest.mark.parametrize("name", WAYS)
async def test_every_row_of_client_risk_and_rule_holds_on_every_way_to_call(
    machine: Machine, risky: Server, name: str
) -> None:
    configured(machine, risky, rules_of(CLIENTS.get(name, OverMcp.client)))
    before, wanted = len(risky.calls()), expected()
    async with way(name, machine) as caller:
        outcomes = {tool: await caller.call(tool) for tool in wanted}
    assert outcomes == wanted
    made = [f"risky__{call}" for call in risky.calls()[before:]]
    assert made == [tool for tool, outcome in wanted.items() if outcome == MADE]
    logged: list[dict[str, Any]] = machine.here().json("activity", "--limit", "100")["results"]
    outcomes_logged = {f"risky__{entry['tool']}": entry["outcome"] for entry in logged}
    assert outcomes_logged == {tool: "ok" if outcome == MADE else "refused" for tool, outcome in wanted.items()}
