"""Questions, progress and log messages of servers reach MCP clients, in both generations of the protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from tests.unit.gateway.mcp.clients import MODERN, MODES, text_of
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.mcp.ruled_gateway import RuledGateway, form_answer
from toolscript.core.errors import ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.mcp_client.relay import current_relay
from toolscript.gateway.callers import client_is
from toolscript.gateway.mcp import parked
from toolscript.gateway.mcp.tools import create_mcp_server
from toolscript.gateway.rules import CallRules, Effect, Rule

pytestmark = [
    pytest.mark.requirement("GW-003"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

FORM: JsonObject = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}
SAMPLE: JsonObject = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "6 * 7"}}], "maxTokens": 5},
}
ROOTS: JsonObject = {"method": "roots/list", "params": {}}
CALL = {"tool": "files__read_file", "arguments": {}}


@dataclass
class AskingGateway(GatewayDouble):
    """Its tools, prompts and resources ask these questions, each list of them at once, and return the answers."""

    rounds: list[dict[str, JsonObject]] = field(default_factory=lambda: [{"who": FORM}])
    answers_got: list[Any] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[tuple[JsonObject, str]] = field(default_factory=list)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        self.calls.append((tool, arguments))
        await self.ask()
        return CallResult(({"type": "text", "text": str(self.answers_got)},))

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        self.requests.append((method, params))
        await self.ask()
        message = {"role": "user", "content": {"type": "text", "text": str(self.answers_got)}}
        return {"messages": [message]}

    async def ask(self) -> None:
        relay = current_relay()
        assert relay is not None
        self.seen.append((relay.capabilities, relay.log_level))
        await relay.on_progress(1, 2, "half")
        await relay.on_log({"level": "info", "data": "working", "logger": "files"})
        try:
            for questions in self.rounds:
                self.answers_got.append(dict(await relay.ask(questions)))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@dataclass
class Person:
    """What a client is asked and told."""

    asked: list[Any] = field(default_factory=list)
    progress: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)

    async def elicit(self, _context: object, params: Any) -> ElicitResult:
        self.asked.append(params)
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(self, _context: object, params: Any) -> CreateMessageResult:
        self.asked.append(params)
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="42"), model="m")

    async def roots(self, _context: object) -> ListRootsResult:
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///somewhere"))])

    async def on_log(self, params: Any) -> None:
        self.logs.append((params.level, params.logger, params.data))

    async def on_progress(self, *progress: Any) -> None:
        self.progress.append(progress)


@asynccontextmanager
async def editor(gateway: GatewayDouble, mode: str, person: Person, **more: Any) -> AsyncIterator[Client]:
    info = Implementation(name="an-editor", version="1")
    asked: dict[str, Any] = {
        "elicitation_callback": person.elicit,
        "sampling_callback": person.sample,
        "list_roots_callback": person.roots,
        "logging_callback": person.on_log,
        **more,
    }
    async with Client(create_mcp_server(gateway, "1.2.3"), mode=mode, client_info=info, **asked) as client:
        yield client


def answering(**callbacks: Any) -> dict[str, Any]:
    return callbacks


async def first_round(client: Client) -> InputRequiredResult:
    result = await client.session.call_tool("call_tool", CALL, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def repeated(client: Client, state: str | None, arguments: dict[str, Any] = CALL, **answers: Any) -> Any:
    return await client.session.call_tool(
        "call_tool", arguments, input_responses=answers, request_state=state, allow_input_required=True
    )


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_is_answered_and_the_call_made_once(mode: str) -> None:
    gateway, person = AskingGateway(), Person()
    async with editor(gateway, mode, person) as client:
        result = await client.call_tool("call_tool", CALL)
    assert not result.is_error
    assert [params.message for params in person.asked] == ["Who?"]
    [answer] = gateway.answers_got
    assert (answer["who"]["action"], answer["who"]["content"]) == ("accept", {"name": "Ada"})
    assert len(gateway.calls) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_every_kind_of_question_at_once_and_one_after_the_other(mode: str) -> None:
    gateway, person = AskingGateway(rounds=[{"form": FORM, "model": SAMPLE}, {"where": ROOTS}]), Person()
    async with editor(gateway, mode, person) as client:
        result = await client.call_tool("call_tool", CALL)
    assert not result.is_error
    assert len(person.asked) == 3
    first, second = gateway.answers_got
    assert first["model"]["content"]["text"] == "42"
    assert second["where"]["roots"][0]["uri"] == "file:///somewhere"
    assert len(gateway.calls) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_and_resources_may_ask_too(mode: str) -> None:
    gateway, person = AskingGateway(), Person()
    async with editor(gateway, mode, person) as client:
        prompt = await client.get_prompt("files__summary")
    assert "Ada" in str(prompt.messages[0].content)
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_progress_and_logs_arrive(mode: str) -> None:
    gateway, person = AskingGateway(rounds=[]), Person()
    meta = {"io.modelcontextprotocol/logLevel": "info"} if mode == MODERN else None
    async with editor(gateway, mode, person) as client:
        if mode != MODERN:
            await client.session.set_logging_level("info")
        session: Any = client.session
        await session.call_tool("call_tool", CALL, progress_callback=person.on_progress, meta=meta)
        await asyncio.sleep(0.05)
    assert person.progress == [(1.0, 2.0, "half")]
    assert person.logs == [("info", "files", "working")]
    assert gateway.seen[0][1] == "info"


@pytest.mark.parametrize("mode", MODES)
async def test_logs_below_the_level_of_the_client_are_not_sent(mode: str) -> None:
    gateway, person = AskingGateway(rounds=[]), Person()
    meta = {"io.modelcontextprotocol/logLevel": "error"} if mode == MODERN else None
    async with editor(gateway, mode, person) as client:
        if mode != MODERN:
            await client.session.set_logging_level("error")
        await client.session.call_tool("call_tool", CALL, meta=meta)  # type: ignore[arg-type]
    assert person.logs == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_server_learns_what_the_client_can_be_asked(mode: str) -> None:
    gateway = AskingGateway(rounds=[])
    async with editor(gateway, mode, Person()) as client:
        await client.call_tool("call_tool", CALL)
    async with Client(create_mcp_server(gateway, "1"), mode=mode) as bare:
        await bare.call_tool("call_tool", CALL)
    assert [{*capabilities} for capabilities, _ in gateway.seen] == [{"elicitation", "sampling", "roots"}, set()]


async def test_what_a_client_refuses_is_the_error_of_the_call() -> None:
    gateway = AskingGateway(rounds=[{"model": SAMPLE}])
    async with Client(
        create_mcp_server(gateway, "1"), mode="legacy", **answering(sampling_callback=_refusing)
    ) as client:
        result = await client.call_tool("call_tool", CALL)
    assert result.is_error
    assert "not today" in text_of(result)


async def _refusing(_context: object, _params: Any) -> Any:
    from mcp_types import ErrorData

    return ErrorData(code=-1, message="not today")


async def test_an_answer_counts_once() -> None:
    gateway = AskingGateway()
    async with editor(gateway, MODERN, Person()) as client:
        question = await first_round(client)
        answer = ElicitResult(action="accept", content={})
        assert not (await repeated(client, question.request_state, who=answer)).is_error
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(client, question.request_state, who=answer)
    assert len(gateway.answers_got) == 1


async def test_an_answer_to_another_call_or_of_another_client_is_none() -> None:
    gateway = AskingGateway()
    server = create_mcp_server(gateway, "1")
    answer = ElicitResult(action="accept", content={})

    def client(name: str) -> Client:
        info = Implementation(name=name, version="1")
        return Client(server, mode=MODERN, client_info=info, **answering(elicitation_callback=Person().elicit))

    async with client("one") as one, client("two") as two:
        question = await first_round(one)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(two, question.request_state, who=answer)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(one, question.request_state, {**CALL, "arguments": {"path": "b"}}, who=answer)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(one, "relay-made-up", who=answer)
        # The call that was asked about still waits.
        assert not (await repeated(one, question.request_state, who=answer)).is_error
    assert len(gateway.calls) == 1


async def test_a_call_whose_client_does_not_answer_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked, "OPEN_SECONDS", 0.05)
    gateway = AskingGateway()
    async with editor(gateway, MODERN, Person()) as client:
        question = await first_round(client)
        await asyncio.wait_for(gateway.cancelled.wait(), 5)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(client, question.request_state, who=ElicitResult(action="accept"))


async def test_only_so_many_calls_wait_for_their_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked, "MAX_OPEN", 2)
    gateway = AskingGateway()
    async with editor(gateway, MODERN, Person()) as client:
        questions = [await first_round(client) for _ in range(3)]
        await asyncio.wait_for(gateway.cancelled.wait(), 5)
        answer = ElicitResult(action="accept", content={})
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await repeated(client, questions[0].request_state, who=answer)
        assert not (await repeated(client, questions[2].request_state, who=answer)).is_error


async def test_an_answer_that_is_left_out_is_for_the_server_to_judge() -> None:
    gateway = AskingGateway()
    async with editor(gateway, MODERN, Person()) as client:
        question = await first_round(client)
        await repeated(client, question.request_state)
    assert gateway.answers_got == [{}]


async def test_a_call_that_its_client_cancels_is_cancelled() -> None:
    gateway, asked = AskingGateway(), asyncio.Event()

    async def never(_context: object, _params: Any) -> ElicitResult:
        asked.set()
        await asyncio.Event().wait()
        return ElicitResult(action="cancel")

    async with Client(
        create_mcp_server(gateway, "1"), mode="legacy", **answering(elicitation_callback=never)
    ) as client:
        calling = asyncio.create_task(client.call_tool("call_tool", CALL))
        await asyncio.wait_for(asked.wait(), 5)
        calling.cancel()
        await asyncio.wait_for(gateway.cancelled.wait(), 5)


async def test_a_rule_asks_first_and_then_the_server() -> None:
    @dataclass
    class Both(AskingGateway, RuledGateway):
        async def call(self, tool: str, arguments: JsonObject) -> CallResult:
            await RuledGateway.call(self, tool, arguments)
            await self.ask()
            return CallResult(({"type": "text", "text": "done"},))

    rules = CallRules([Rule("files__*", do=Effect.ASK, place="rule 1")])
    gateway, asked = Both(rules=rules), list[Any]()
    server = create_mcp_server(gateway, "1")
    async with Client(server, mode=MODERN, elicitation_callback=form_answer("accept", asked)) as client:
        result = await client.call_tool("call_tool", CALL)
    assert text_of(result) == "done"
    assert [params.message.splitlines()[0] for params in asked] == ["Allow mcp to call files__read_file?", "Who?"]


async def test_a_server_that_fails_after_its_question_is_a_failed_call() -> None:
    @dataclass
    class Failing(AskingGateway):
        async def ask(self) -> None:
            await super().ask()
            raise ServerRejected("files: out of paper")

    with client_is("test"):
        async with editor(Failing(), MODERN, Person()) as client:
            result = await client.call_tool("call_tool", CALL)
    assert (result.is_error, text_of(result)) == (True, "files: out of paper")
