"""What servers say while they work reaches the client whose request caused it, and nobody else."""

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.core.mcp_client import relays
from tests.unit.core.mcp_client.builders import stdio, text, until_ready
from tests.unit.core.mcp_client.relays import Asked, at_once
from tests.unit.gateway.mcp.through import serve_everything
from toolscript.core.errors import OutcomeUnknown, ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.exchanges import ABANDONED_SECONDS, ANSWER_SECONDS, MAX_QUESTIONS, Exchanges
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.relay import Relay, relayed_to
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]
SOON = 20.0


async def call(servers: McpServers, server: str, tool: str, relay: Relay | None = None, **arguments: Any) -> Any:
    with relayed_to(relay):
        return await asyncio.wait_for(servers.call(server, tool, arguments), SOON)


async def told(servers: McpServers, tool: str, relay: Relay | None = None, **arguments: Any) -> Any:
    """Return what the server was answered."""
    return json.loads(text(await call(servers, "asking", tool, relay, **arguments)))


@pytest.fixture
async def asking(servers: McpServers, tmp_path: Path) -> McpServers:
    servers.use([stdio("asking", "asking", str(tmp_path / "cancelled"), call_seconds=1.5)])
    await until_ready(servers, "asking")
    return servers


@pytest.fixture
async def modern(servers: McpServers) -> AsyncIterator[McpServers]:
    async with serve_everything() as url:
        servers.use([ServerSpec("modern", Transport.HTTP, url=url)])
        await until_ready(servers, "modern")
        yield servers
        await servers.close()


@pytest.mark.parametrize("kind", ["elicit", "sample", "roots"])
async def test_a_question_of_a_server_is_answered_by_the_client(asking: McpServers, kind: str) -> None:
    client = at_once()
    answer = await told(asking, "ask", client, kind=kind)
    [question] = client.questions
    assert answer["result"] == relays.ANSWERS[str(question["method"])]


async def test_a_person_is_told_which_server_asks(asking: McpServers) -> None:
    client = at_once()
    await told(asking, "ask", client, kind="elicit")
    params = client.questions[0]["params"]
    assert isinstance(params, dict)
    assert params["message"] == "asking asks: Who?"


@pytest.mark.parametrize(
    ("relay", "why"),
    [
        (None, "cannot be asked anything"),
        (at_once(capabilities={}), "cannot ask its user"),
        (at_once(capabilities={"elicitation": {"url": {}}}), "cannot ask its user by form"),
    ],
)
async def test_a_client_that_cannot_be_asked_is_not(asking: McpServers, relay: Asked | None, why: str) -> None:
    answer = await told(asking, "ask", relay, kind="elicit")
    assert answer["error"]["code"] == -32601
    assert why in answer["error"]["message"]
    assert relay is None or relay.questions == []


async def test_what_a_client_refuses_reaches_the_server_with_its_code(asking: McpServers) -> None:
    client = at_once(error=ServerRejected("the user rejected it", details={"code": -1}))
    answer = await told(asking, "ask", client, kind="sample")
    assert answer["error"] == {"code": -1, "message": "the user rejected it"}


async def test_with_two_clients_at_work_neither_is_asked(asking: McpServers) -> None:
    one, two = at_once("one"), at_once("two")
    first = asyncio.create_task(told(asking, "ask", one, kind="elicit", after=0.6))
    second = await told(asking, "ask", two, kind="elicit", after=0.2)
    assert "it is not clear which of them to ask" in second["error"]["message"]
    assert two.questions == []
    # Alone again.
    assert "result" in await first


async def test_two_requests_of_one_client_are_no_doubt(asking: McpServers) -> None:
    one, other = at_once("one"), at_once("one")
    first = asyncio.create_task(told(asking, "ask", one, kind="elicit", after=0.2))
    second = await told(asking, "ask", other, kind="elicit", after=0.2)
    assert "result" in second
    assert "result" in await first
    assert len(one.questions + other.questions) == 2


async def test_a_question_between_requests_is_refused(asking: McpServers) -> None:
    client = at_once()
    await told(asking, "late", client, after=0.1)
    answers: list[str] = []
    for _ in range(30):
        # A question that comes while we look would come during a request.
        await asyncio.sleep(1.0)
        if answers := await told(asking, "told"):
            break
    assert "no client's request is in flight" in json.loads(answers[0])["error"]["message"]
    assert client.questions == []


async def test_a_server_that_is_still_at_work_for_one_who_left_asks_nobody_else(asking: McpServers) -> None:
    gone = asyncio.create_task(told(asking, "ask", at_once("gone"), kind="elicit", after=0.4))
    await asyncio.sleep(0.2)
    gone.cancel()
    other = at_once("other")
    answer = await told(asking, "ask", other, kind="elicit", after=0.6)
    assert "it is not clear which of them to ask" in answer["error"]["message"]
    assert other.questions == []


async def test_time_stands_still_while_a_person_thinks(asking: McpServers) -> None:
    client = Asked("slow")
    calling = asyncio.create_task(told(asking, "ask", client, kind="elicit"))
    await asyncio.wait_for(client.was_asked.wait(), SOON)
    # Longer than the server's own limit.
    await asyncio.sleep(2.0)
    assert not calling.done()
    client.may_answer.set()
    assert "result" in await calling


async def test_progress_and_logs_reach_the_client(asking: McpServers) -> None:
    client = at_once(log_level="info")
    assert "level info" in await told(asking, "talk", client)
    await asyncio.sleep(0.1)
    assert client.progress == [(1.0, 2.0)]
    assert client.logs == [("info", "asking/work", "half"), ("debug", "asking", "detail")]


async def test_progress_that_nobody_wants_is_not_requested(asking: McpServers) -> None:
    client = at_once(wants_progress=False)
    await told(asking, "talk", client)
    assert client.progress == []


async def test_progress_does_not_extend_the_time_of_a_call(asking: McpServers) -> None:
    with pytest.raises(OutcomeUnknown, match=r"no answer within 1\.5 seconds"):
        await told(asking, "hold", at_once())


async def test_a_cancelled_call_is_cancelled_at_the_server(asking: McpServers, tmp_path: Path) -> None:
    calling = asyncio.create_task(told(asking, "hold", at_once()))
    await asyncio.sleep(0.2)
    calling.cancel()
    for _ in range(400):
        await asyncio.sleep(0.05)
        if (tmp_path / "cancelled").exists():
            return
    pytest.fail("the server was not told")


INPUT = "test_input_required_result_"


@pytest.mark.parametrize(
    "tool", ["elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round"]
)
async def test_what_a_modern_server_requests_is_asked_and_sent(modern: McpServers, tool: str) -> None:
    client = at_once()
    result = await call(modern, "modern", f"{INPUT}{tool}", client)
    assert not result.is_error
    assert client.questions


async def test_a_modern_server_learns_what_the_client_can(modern: McpServers) -> None:
    client = at_once(capabilities={"sampling": {}})
    with pytest.raises(ServerRejected, match="requests input more than"):
        await call(modern, "modern", f"{INPUT}capabilities", client)
    assert client.questions
    assert {question["method"] for question in client.questions} <= {"sampling/createMessage"}


async def test_over_http_two_clients_at_once_are_each_asked_their_own(modern: McpServers) -> None:
    one, two = Asked("one"), Asked("two")
    first = asyncio.create_task(call(modern, "modern", f"{INPUT}elicitation", one))
    second = asyncio.create_task(call(modern, "modern", f"{INPUT}sampling", two))
    await asyncio.wait_for(one.was_asked.wait(), SOON)
    await asyncio.wait_for(two.was_asked.wait(), SOON)
    one.may_answer.set()
    two.may_answer.set()
    assert not (await first).is_error
    assert not (await second).is_error
    assert [question["method"] for question in one.questions] == ["elicitation/create"]
    assert [question["method"] for question in two.questions] == ["sampling/createMessage"]


async def test_prompts_and_resources_come_as_the_server_sent_them(modern: McpServers) -> None:
    prompt = await modern.request("modern", "prompts/get", {"name": "test_simple_prompt"})
    messages: Any = prompt["messages"]
    assert messages[0]["content"]["type"] == "text"
    read = await modern.request("modern", "resources/read", {"uri": "test://static-text"})
    contents: Any = read["contents"]
    assert contents[0]["uri"] == "test://static-text"


async def test_a_question_has_nothing_invisible() -> None:
    client, exchanges = at_once(), Exchanges("asking")
    with exchanges.begin(client):
        await exchanges.ask_one("elicitation/create", {"message": "a\u202eb"})
    assert client.questions == [{"method": "elicitation/create", "params": {"message": "asking asks: a[U+202E]b"}}]


async def test_a_server_cannot_ask_without_end() -> None:
    question: JsonObject = {"method": "roots/list", "params": {}}
    client, exchanges = at_once(), Exchanges("asking")
    with exchanges.begin(client):
        for _ in range(MAX_QUESTIONS):
            await exchanges.ask_one("roots/list", {})
        with pytest.raises(ServerRejected, match=f"more than {MAX_QUESTIONS} questions"):
            await exchanges.ask_one("roots/list", {})
    assert client.questions == [question] * MAX_QUESTIONS


async def test_a_question_about_a_request_that_has_ended_reaches_nobody_else() -> None:
    exchanges, other, has_ended = Exchanges("asking"), at_once("other"), asyncio.Event()

    async def ask_late() -> JsonObject:
        await has_ended.wait()
        await exchanges.log({"level": "info", "data": "secret"})
        return await exchanges.ask_one("roots/list", {})

    with exchanges.begin(at_once("one")):
        asking = asyncio.create_task(ask_late())
        await asyncio.sleep(0)

    async def be_in_flight() -> None:
        with exchanges.begin(other):
            has_ended.set()
            await asyncio.wait([asking])

    await asyncio.create_task(be_in_flight())
    with pytest.raises(ServerRejected, match="has ended"):
        asking.result()
    assert (other.questions, other.logs) == ([], [])


async def test_nobody_else_is_asked_as_long_as_a_person_could_answer() -> None:
    now = 0.0
    exchanges, other = Exchanges("asking", lambda: now), at_once("other")
    for number in range(3):
        with pytest.raises(TimeoutError), exchanges.begin(at_once(f"gone {number}")):
            raise TimeoutError

    async def ask() -> JsonObject:
        return await exchanges.ask_one("roots/list", {})

    # A message on a pipe has no request in its context.
    outside = contextvars.copy_context()
    with exchanges.begin(other):
        now = ANSWER_SECONDS - 1
        with pytest.raises(ServerRejected, match="not clear which of them"):
            await asyncio.create_task(ask(), context=outside)
        now = ABANDONED_SECONDS
        await asyncio.create_task(ask(), context=outside)
    assert len(other.questions) == 1


async def test_who_left_is_forgotten_after_a_while() -> None:
    now = 0.0
    exchanges = Exchanges("asking", lambda: now)
    for number in range(3):
        now = number * ABANDONED_SECONDS
        with pytest.raises(TimeoutError), exchanges.begin(at_once(f"gone {number}")):
            raise TimeoutError
    assert [*exchanges._abandoned] == ["gone 2"]
