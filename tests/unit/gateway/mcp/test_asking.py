"""A rule that asks: the person at the client is asked, and only their answer to this very call makes it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    InputResponses,
)

from tests.unit.gateway.mcp.clients import LEGACY, MODERN, MODES, text_of
from tests.unit.gateway.mcp.ruled_gateway import RuledGateway, form_answer
from toolscript.core.errors import Forbidden
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.callers import CallTerms, client_is, on_terms
from toolscript.gateway.mcp import asking
from toolscript.gateway.mcp.asking import MAX_OPEN, OPEN_SECONDS, Questions, message_of
from toolscript.gateway.mcp.tools import create_mcp_server
from toolscript.gateway.rules import CONFIRMATION, CallRules, Effect, Rule

pytestmark = pytest.mark.requirement("TR-003")

RULES = CallRules([Rule("files__*", do=Effect.ASK, place="rule 1 of ~/.toolscript.json")])
WRITE = {"tool": "files__write_file", "arguments": {"path": "a.txt", "text": "x"}}
CALLED = [("files__write_file", {"path": "a.txt", "text": "x"})]


@pytest.fixture
def gateway() -> RuledGateway:
    return RuledGateway(rules=RULES)


@asynccontextmanager
async def editor(
    gateway: RuledGateway, mode: str, answer: Any = None, name: str = "an-editor"
) -> AsyncIterator[Client]:
    info = Implementation(name=name, version="1")
    server = create_mcp_server(gateway, "1.2.3")
    async with Client(server, mode=mode, client_info=info, elicitation_callback=answer) as client:
        yield client


async def first_question(client: Client, arguments: dict[str, Any]) -> InputRequiredResult:
    result = await client.session.call_tool("call_tool", arguments, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def answer_to(
    client: Client, state: str | None, arguments: dict[str, Any], action: str = "accept"
) -> CallToolResult:
    answers: InputResponses = {"allow": ElicitResult(action=action)}  # type: ignore[arg-type]
    result = await client.session.call_tool(
        "call_tool", arguments, input_responses=answers, request_state=state, allow_input_required=True
    )
    assert isinstance(result, CallToolResult)
    return result


@pytest.mark.parametrize("mode", MODES)
async def test_a_yes_makes_the_call_once(gateway: RuledGateway, mode: str) -> None:
    asked: list[Any] = []
    async with editor(gateway, mode, form_answer("accept", asked)) as client:
        result = await client.call_tool("call_tool", WRITE)
    assert not result.is_error
    assert text_of(result) == "called files__write_file"
    assert gateway.calls == CALLED
    [question] = asked
    assert question.mode == "form"
    assert question.message.splitlines() == [
        "Allow an-editor to call files__write_file?",
        "Risk: destructive: it claims nothing",
        'Arguments: {"path":"a.txt","text":"x"}',
        "Asked by rule 1 of ~/.toolscript.json",
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_anything_but_a_yes_makes_no_call(gateway: RuledGateway, mode: str, action: str) -> None:
    asked: list[Any] = []
    async with editor(gateway, mode, form_answer(action, asked)) as client:
        result = await client.call_tool("call_tool", WRITE)
    assert (result.is_error, len(asked), gateway.calls) == (True, 1, [])
    assert text_of(result).startswith("The person did not allow this call of files__write_file.")


async def test_a_question_that_nobody_answers_ends_and_makes_no_call(
    gateway: RuledGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(asking, "OPEN_SECONDS", 0.2)
    async with editor(gateway, LEGACY, never) as client:
        with anyio.fail_after(20):
            result = await client.call_tool("call_tool", WRITE)
    assert (result.is_error, gateway.calls) == (True, [])


@pytest.mark.parametrize("mode", MODES)
async def test_each_call_is_asked_about_anew(gateway: RuledGateway, mode: str) -> None:
    asked: list[Any] = []
    async with editor(gateway, mode, form_answer("accept", asked)) as client:
        await client.call_tool("call_tool", WRITE)
        await client.call_tool("call_tool", WRITE)
    assert (len(asked), gateway.calls) == (2, CALLED * 2)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_told_what_a_person_can_do(gateway: RuledGateway, mode: str) -> None:
    async with editor(gateway, mode) as client:
        result = await client.call_tool("call_tool", WRITE)
    assert (result.is_error, gateway.calls) == (True, [])
    text = text_of(result)
    assert "a person must allow this call of files__write_file" in text
    assert "ask the user to allow it, or to do it themselves" in text
    # No way around the person is offered.
    assert "--yes" not in text
    assert "confirm" not in text


@pytest.mark.parametrize("mode", MODES)
async def test_what_no_rule_asks_about_is_called_without_a_question(gateway: RuledGateway, mode: str) -> None:
    asked: list[Any] = []
    async with editor(gateway, mode, form_answer("decline", asked)) as client:
        result = await client.call_tool("call_tool", {"tool": "github__create_issue", "arguments": {}})
    assert (result.is_error, asked) == (False, [])


async def test_an_answer_counts_once(gateway: RuledGateway) -> None:
    async with editor(gateway, MODERN, form_answer("accept", [])) as client:
        question = await first_question(client, WRITE)
        assert not (await answer_to(client, question.request_state, WRITE)).is_error
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answer_to(client, question.request_state, WRITE)
    assert gateway.calls == CALLED


@pytest.mark.parametrize(
    "other",
    [
        {"tool": "files__write_file", "arguments": {"path": "b.txt", "text": "x"}},
        {"tool": "files__read_file", "arguments": {"path": "a.txt", "text": "x"}},
        {"tool": "files__write_file"},
    ],
)
async def test_a_yes_to_one_call_is_none_to_another(gateway: RuledGateway, other: dict[str, Any]) -> None:
    async with editor(gateway, MODERN, form_answer("accept", [])) as client:
        question = await first_question(client, WRITE)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answer_to(client, question.request_state, other)
        # A question that was misused is closed.
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answer_to(client, question.request_state, WRITE)
    assert gateway.calls == []


async def test_a_forged_answer_makes_no_call(gateway: RuledGateway) -> None:
    async with editor(gateway, MODERN, form_answer("accept", [])) as client:
        question = await first_question(client, WRITE)
        assert question.request_state is not None
        for state in (f"{question.request_state}x", question.request_state[:-1], "rule-", "rule-anything"):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await answer_to(client, state, WRITE)
        # Without a state of ours an answer belongs to no question: the person is asked.
        for no_state in (None, "anything"):
            result = await client.session.call_tool(
                "call_tool",
                WRITE,
                input_responses={"allow": ElicitResult(action="accept")},
                request_state=no_state,
                allow_input_required=True,
            )
            assert isinstance(result, InputRequiredResult)
    assert gateway.calls == []


async def test_a_state_without_an_answer_is_no_yes(gateway: RuledGateway) -> None:
    async with editor(gateway, MODERN, form_answer("accept", [])) as client:
        question = await first_question(client, WRITE)
        result = await client.session.call_tool("call_tool", WRITE, request_state=question.request_state)
        assert isinstance(result, CallToolResult)
    assert (result.is_error, gateway.calls) == (True, [])


async def test_a_rule_that_denies_asks_nobody(gateway: RuledGateway) -> None:
    gateway.rules = CallRules([Rule(do=Effect.DENY, place="rule 1")])
    asked: list[Any] = []
    async with editor(gateway, MODERN, form_answer("accept", asked)) as client:
        result = await client.call_tool("call_tool", WRITE)
    assert (result.is_error, asked, gateway.calls) == (True, [], [])


def params(state: str | None = None, **arguments: object) -> CallToolRequestParams:
    answers: InputResponses | None = {"allow": ElicitResult(action="accept")} if state else None
    return CallToolRequestParams(
        name="call_tool", arguments=arguments, request_state=state, input_responses=answers
    )


def test_an_answer_of_another_client_counts_for_nothing() -> None:
    questions = Questions()
    with client_is("one"):
        state = questions.add("files__write_file", params(a=1))
    with client_is("another"), pytest.raises(MCPError):
        questions.answered(params(state, a=1))


def test_a_question_closes_after_a_while_and_old_ones_make_room() -> None:
    now = [0.0]
    questions = Questions(clock=lambda: now[0])
    late = questions.add("files__write_file", params())
    now[0] = OPEN_SECONDS + 1
    with pytest.raises(MCPError):
        questions.answered(params(late))
    first = questions.add("files__write_file", params())
    others = [questions.add("files__write_file", params()) for _ in range(MAX_OPEN)]
    with pytest.raises(MCPError):
        questions.answered(params(first))
    assert questions.answered(params(others[-1])) == ("files__write_file", True)


def refusal(tool: str = "files__write_file") -> Forbidden:
    return Forbidden("no", details={"tool": tool, CONFIRMATION: {"risk": "claims read-only", "rule": "rule 1"}})


def test_a_question_shows_short_arguments_in_one_line_and_without_secrets() -> None:
    key = "ghp_" + "a1B2" * 9
    arguments = {"text": "line\nRisk: none\u202e", "token": key}
    with client_is("an\neditor"):
        message = message_of(refusal(), arguments)
    assert len(message.splitlines()) == 4
    assert message.startswith("Allow an editor to call files__write_file?\nRisk: claims read-only\n")
    assert "[U+202E]" in message
    assert key not in message


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "rm -rf ~", "pad": ["x" * 100] * 100},
        {"pad": ["x" * 100] * 100, "cmd": "rm -rf ~"},
        {"cmd": "." * 5_000 + "; rm -rf ~"},
        {"cmd": "." * 500 + "; rm -rf ~"},
        {"token": "rm -rf ~"},
        {**{str(number): "z" * 400 for number in range(20)}, "cmd": "rm -rf ~"},
    ],
)
def test_nothing_long_hides_what_is_allowed(arguments: dict[str, Any]) -> None:
    message = message_of(refusal(), arguments)
    assert "rm -rf ~" in message
    assert len(message) < 4_000
    assert "letters left out" in message or len(message) < 1_000


def test_a_question_about_too_many_arguments_says_how_many_there_are() -> None:
    message = message_of(refusal(), {str(number): "z" * 400 for number in range(100)})
    assert "and 70 more arguments, which are not shown" in message


async def test_a_call_that_is_refused_after_the_yes_says_why() -> None:
    class Forgetful(RuledGateway):
        """Its rule wants another confirmation than that of this call."""

        async def call(self, tool: str, arguments: JsonObject) -> CallResult:
            with on_terms(CallTerms("files__read_file")):
                return await super().call(tool, arguments)

    async with editor(Forgetful(rules=RULES), MODES[-1], form_answer("accept", [])) as client:
        result = await client.call_tool("call_tool", WRITE)
    assert result.is_error
    assert "a person must allow this call of files__write_file" in text_of(result)
