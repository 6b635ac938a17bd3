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
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    InputResponses,
    TextContent,
)

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


ASK_TO_DESTROY = [{"risk": "destructive", "do": "ask"}]


def editor_that_answers(action: str, asked: list[str]) -> dict[str, Any]:
    async def answer(_context: object, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action)  # type: ignore[arg-type]

    return {"client_info": EDITOR, "elicitation_callback": answer}


@pytest.mark.parametrize("name", ["mcp", "stdio", "stdio-legacy"])
async def test_a_person_at_an_mcp_client_is_asked_and_the_call_is_made_once_or_not_at_all(
    machine: Machine, risky: Server, name: str
) -> None:
    configured(machine, risky, ASK_TO_DESTROY)
    before, asked = len(risky.calls()), list[str]()
    call = {"tool": "risky__destructive_0", "arguments": {"path": "a"}}
    mode = "legacy" if name.endswith("legacy") else "auto"
    with machine.gateway() as gateway:
        ready(gateway)
        for action in ("accept", "decline", "cancel"):
            where = stdio_client(relay(machine)) if name.startswith("stdio") else f"{gateway.url}/mcp"
            async with Client(where, mode=mode, **editor_that_answers(action, asked)) as client:
                result = await client.call_tool("call_tool", call)
            assert result.is_error == (action != "accept")
    assert risky.calls()[before:] == ["destructive_0"]
    assert len(asked) == 3
    assert asked[0].startswith("Allow an-editor to call risky__destructive_0?\nRisk: claims destructive\n")
    logged = [entry["outcome"] for entry in machine.here().json("activity")["results"]]
    assert logged == ["refused", "refused", "ok", "refused"]


async def test_an_answer_is_used_once_and_for_its_call_alone(machine: Machine, risky: Server) -> None:
    configured(machine, risky, ASK_TO_DESTROY)
    before = len(risky.calls())
    call = {"tool": "risky__destructive_0", "arguments": {"path": "a"}}
    yes: InputResponses = {"allow": ElicitResult(action="accept")}
    with machine.gateway() as gateway:
        async with Client(f"{ready(gateway).url}/mcp", **editor_that_answers("accept", [])) as client:
            session = client.session
            question = await session.call_tool("call_tool", call, allow_input_required=True)
            assert isinstance(question, InputRequiredResult)
            state = question.request_state
            assert (await session.call_tool("call_tool", call, input_responses=yes, request_state=state)).content
            another = {**call, "arguments": {"path": "b"}}
            for arguments in (call, another):
                with pytest.raises(MCPError, match="Invalid or expired requestState"):
                    await session.call_tool("call_tool", arguments, input_responses=yes, request_state=state)
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await session.call_tool("call_tool", call, input_responses=yes, request_state="rule-forged")
    assert risky.calls()[before:] == ["destructive_0"]


def test_a_person_confirms_on_a_terminal_and_a_script_says_so(machine: Machine, risky: Server) -> None:
    configured(machine, risky, ASK_TO_DESTROY)
    before = len(risky.calls())
    refused = machine.run("call", "risky__destructive_0", code=2)
    assert "to make the call in a terminal" in refused.stderr
    assert "--yes" not in refused.stderr
    assert "did destructive_0" in machine.by_person("call", "risky__destructive_0", "--yes").stdout
    seen = machine.on_a_terminal("call", "risky__unannotated_0", answer="y\n")
    assert "a person must allow this call of risky__unannotated_0 (destructive: it claims nothing)" in seen
    assert risky.calls()[before:] == ["destructive_0", "unannotated_0"]


def test_a_program_with_the_persons_token_confirms_over_http_and_limits_the_risk(
    machine: Machine, risky: Server
) -> None:
    configured(machine, risky, [*ASK_TO_DESTROY, {"tools": "risky__write_0", "do": "deny"}])
    before = len(risky.calls())
    with machine.also(TOOLSCRIPT_GATEWAY_TOKEN="of-the-person").gateway() as gateway:
        ready(gateway)
        made = gateway.ask("/tools/risky__destructive_0?confirm=true", "POST", json={})
        assert made.status_code == 200, made.text
        body = {"id": "risky__destructive_1", "confirm": True}
        made = gateway.ask("/api/v1/tools/call", "POST", json=body)
        assert made.status_code == 200, made.text
        for path in ("/tools/risky__write_0?confirm=true", "/tools/risky__destructive_0?confirm=1&max_risk=write"):
            refused = gateway.ask(path, "POST", json={})
            assert refused.status_code == 403
            assert "confirmation" not in refused.json()["error"]["details"]
        wrong = gateway.ask("/tools/risky__read_0?max_risk=low", "POST", json={})
        assert (wrong.status_code, wrong.json()["error"]["details"]["field"]) == (422, "max_risk")
    assert risky.calls()[before:] == ["destructive_0", "destructive_1"]


async def test_a_client_that_is_set_to_allow_call_tool_destroys_nothing(machine: Machine, risky: Server) -> None:
    configured(machine, risky, [{"tools": "risky__unannotated_1", "is": "write"}])
    before = len(risky.calls())
    with machine.gateway() as gateway:
        ready(gateway)
        process = relay(machine, TOOLSCRIPT_GATEWAY_SPLIT_CALLS="true")
        async with Client(stdio_client(process), client_info=EDITOR) as client:
            hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            outcomes = {}
            for tool in ("read_0", "write_0", "destructive_0", "unannotated_0", "unannotated_1", "delete_all"):
                result = await client.call_tool("call_tool", {"tool": f"risky__{tool}"})
                outcomes[tool] = not result.is_error
                if result.is_error:
                    assert text_of(result).endswith("counts as destructive: call it with call_destructive_tool.")
            made = await client.call_tool("call_destructive_tool", {"tool": "risky__destructive_0"})
    assert not made.is_error
    claims = {name: hint.destructive_hint for name, hint in hints.items() if hint and name.startswith("call_")}
    assert claims == {"call_tool": False, "call_destructive_tool": True}
    assert outcomes == {
        "read_0": True,
        "write_0": True,
        "destructive_0": False,
        "unannotated_0": False,
        "unannotated_1": True,
        "delete_all": True,
    }
    assert risky.calls()[before:] == ["read_0", "write_0", "unannotated_1", "delete_all", "destructive_0"]


async def test_a_server_that_calls_its_delete_tool_read_only_is_shown_as_claiming_it(machine: Machine) -> None:
    with machine.gateway() as gateway:
        ready(gateway)
        [hit] = gateway.search("delete_all", limit=1, explain="true")["results"]
        assert hit["risk"] == {"level": "read", "basis": "claim"}
        listed = machine.here().run("list-tools", "risky__delete_all").stdout
        explained = machine.here().run("search", "delete_all", "--limit", "1", "--explain").stdout
        tested = machine.here().run("rules", "test", "risky__delete_all").stdout
        async with Client(f"{gateway.url}/mcp") as client:
            found = text_of(await client.call_tool("search_tools", {"query": "delete_all", "limit": 1}))
            described = text_of(await client.call_tool("describe_tool", {"tool": "risky__delete_all"}))
    for shown in (listed, explained, tested, found):
        assert "claims read-only" in shown
        assert "is read-only" not in shown
    assert '"readOnlyHint":true' in described


def test_commands_show_which_rule_decides_and_the_doctor_what_is_wrong(machine: Machine, risky: Server) -> None:
    rules = [{"tools": "risky__read_*", "do": "allow"}, {"client": "cur*", "do": "ask"}, {"do": "dney"}]
    here = configured(machine, risky, rules).here()
    assert here.json("rules", "test", "risky__read_0")["rule"] == "rule 1 of ~/.toolscript.json"
    decided = here.json("rules", "test", "risky__write_0", "--client", "cursor-vscode")
    assert decided == {
        "tool": "risky__write_0",
        "client": "cursor-vscode",
        "effect": "ask",
        "rule": "rule 2 of ~/.toolscript.json",
        "risk": {"level": "write", "basis": "claim"},
    }
    assert here.json("rules", "test", "risky__write_0")["effect"] == "deny"
    listed = here.run("rules", "list")
    assert "`do` is not one of them; use one of allow, ask, deny" in listed.stdout
    assert [rule.get("do") for rule in here.json("rules", "list")["own"]] == ["allow", "ask", "deny"]
    [finding] = [found for found in here.json("doctor", code=2)["findings"] if found["code"] == "CONFIG_WARNING"]
    assert "rule 3 of rules denies what it is about, because of a mistake" in finding["message"]
    assert finding["fix"] == "use one of allow, ask, deny"


def test_a_gateway_that_runs_follows_the_rules_as_they_change(machine: Machine, risky: Server) -> None:
    with machine.gateway() as gateway:
        ready(gateway)
        assert gateway.call("risky__read_0").status_code == 200
        configured(machine, risky, [{"do": "deny"}])
        until(lambda: gateway.call("risky__read_0").status_code == 403, "the rule that denies")
        configured(machine, risky, [])
        until(lambda: gateway.call("risky__read_0").status_code == 200, "the end of the rule")


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list","params":{"name":"read_0"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_0","name":"read_1"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["read_0"]}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_0"}} x',
        '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_0"}}',
        '[{"method":"ping","id":1},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_0"}}]',
    ],
)
def test_no_request_leads_past_the_rules_to_one_server(denying: Gateway, risky: Server, body: str) -> None:
    before = len(risky.calls())
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = denying.ask("/mcp/risky", "POST", content=body, headers=headers)
    assert "did read_0" not in answer.text
    assert risky.calls()[before:] == []


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory, risky: Server) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("denying")
    machine = new_machine(folder / "machine", folder).also(TOOLSCRIPT_SEARCH_MODEL="none", NO_PROXY="127.0.0.1")
    with configured(machine, risky, [{"do": "deny"}]).gateway() as gateway:
        yield ready(gateway)
