"""Requests of `toolscript mcp` at the gateway: what a server says comes back while they run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

import pytest

from tests.unit.core.mcp_client.relays import ANSWERS, EVERYTHING, Asked, at_once
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.mcp.test_relaying import FORM, ROOTS, AskingGateway
from tests.unit.gateway.runtime.serving import client_of, open_app, serving
from toolscript.core.errors import Conflict, NotFound, OutcomeUnknown, ServerRejected
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.mcp_client.relay import relayed_to
from toolscript.gateway import client as client_module
from toolscript.gateway.callers import CallTerms, current_terms, on_terms
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.model import Change
from toolscript.gateway.relay_api import RemoteRelay
from toolscript.gateway.relay_events import RelayedEvents
from toolscript.gateway.relay_paths import MAX_EVENTS

pytestmark = [pytest.mark.requirement("TS-008", "TS-010"), pytest.mark.slow]
TOOL = "files__read_file"


@pytest.fixture
def gateway() -> AskingGateway:
    return AskingGateway(rounds=[{"who": FORM}, {"where": ROOTS}])


@pytest.fixture
async def client(gateway: AskingGateway) -> AsyncIterator[GatewayClient]:
    async with client_of(gateway) as client:
        yield client


async def test_questions_progress_and_logs_come_back(gateway: AskingGateway, client: GatewayClient) -> None:
    asked = at_once(log_level="info")
    with relayed_to(asked):
        result = await client.call(TOOL, {"path": "a"})
    assert not result.is_error
    assert asked.questions == [FORM, ROOTS]
    assert gateway.answers_got == [{"who": ANSWERS["elicitation/create"]}, {"where": ANSWERS["roots/list"]}]
    assert asked.progress == [(1, 2)]
    assert asked.logs == [("info", "files", "working")]
    assert gateway.seen == [(EVERYTHING, "info")]
    assert gateway.calls == [(TOOL, {"path": "a"})]


async def test_a_prompt_may_ask_too(gateway: AskingGateway, client: GatewayClient) -> None:
    asked = at_once()
    with relayed_to(asked):
        answer = await client.request("prompts/get", {"name": "files__summary"})
    assert answer["messages"]
    assert asked.questions == [FORM, ROOTS]
    assert gateway.requests == [("prompts/get", {"name": "files__summary"})]


@pytest.mark.parametrize(("confirmed", "arrives"), [(TOOL, TOOL), ("files__write_file", "")])
async def test_a_confirmation_is_of_one_tool(confirmed: str, arrives: str) -> None:
    class Noting(GatewayDouble):
        async def call(self, tool: str, arguments: JsonObject) -> CallResult:
            noted.append(current_terms().confirmed)
            return await super().call(tool, arguments)

    noted: list[str] = []
    async with client_of(Noting()) as client:
        with relayed_to(at_once()), on_terms(CallTerms(confirmed)):
            await client.call(TOOL, {})
    assert noted == [arrives]


async def test_what_the_client_refuses_is_the_error(client: GatewayClient) -> None:
    asked = at_once(error=ServerRejected("not today", details={"code": -1}))
    with relayed_to(asked), pytest.raises(ServerRejected, match="not today") as refused:
        await client.call(TOOL, {})
    assert refused.value.details["code"] == -1


async def test_a_call_that_is_cancelled_is_cancelled_there(gateway: AskingGateway, client: GatewayClient) -> None:
    asked = Asked("slow")
    with relayed_to(asked):
        calling = asyncio.create_task(client.call(TOOL, {}))
    await asyncio.wait_for(asked.was_asked.wait(), 10)
    calling.cancel()
    await asyncio.wait_for(gateway.cancelled.wait(), 10)


async def test_errors_are_those_of_a_call_without_a_way_back() -> None:
    async with client_of(GatewayDouble()) as client:
        with relayed_to(at_once()), pytest.raises(NotFound, match="there is no tool files__nothing"):
            await client.call("files__nothing", {})


async def test_a_gateway_that_ends_during_a_call_leaves_its_outcome_unknown(gateway: AskingGateway) -> None:
    asked = Asked("slow")
    async with serving(open_app(gateway)) as url:
        client = GatewayClient(url)
        with relayed_to(asked):
            calling = asyncio.create_task(client.call(TOOL, {}))
        await asyncio.wait_for(asked.was_asked.wait(), 10)
    with pytest.raises(OutcomeUnknown, match="its outcome is unknown"):
        await asyncio.wait_for(calling, 10)
    assert len(gateway.calls) == 1


async def test_changes_are_told(gateway: AskingGateway, client: GatewayClient) -> None:
    told: asyncio.Queue[Change] = asyncio.Queue()
    watching = asyncio.create_task(client.watch(("file:///a",), told.put_nowait))
    for _ in range(200):
        if gateway.watched:
            break
        await asyncio.sleep(0.05)
    uris, tell = gateway.watched[0]
    tell(Change("prompts"))
    tell(Change(uri="file:///a"))
    assert uris == {"file:///a"}
    assert [await asyncio.wait_for(told.get(), 10) for _ in range(2)] == [
        Change("prompts"),
        Change(uri="file:///a"),
    ]
    watching.cancel()


async def test_after_a_refusal_a_client_watches_again_and_is_told_that_all_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing(GatewayDouble):
        async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
            self.watched.append((frozenset(uris), tell))
            if len(self.watched) == 1:
                raise Conflict("not now")
            await asyncio.Event().wait()

    monkeypatch.setattr(client_module, "WATCH_AGAIN_SECONDS", 0.05)
    told: asyncio.Queue[Change] = asyncio.Queue()
    gateway = Refusing()
    async with client_of(gateway) as client:
        watching = asyncio.create_task(client.watch((), told.put_nowait))
        changes = {(await asyncio.wait_for(told.get(), 10)).list for _ in range(4)}
        assert changes == {"tools", "servers", "prompts", "resources"}
        for _ in range(200):
            if len(gateway.watched) == 2:
                break
            await asyncio.sleep(0.05)
        assert len(gateway.watched) == 2
        watching.cancel()


async def test_a_client_that_has_stopped_to_read_holds_up_nothing() -> None:
    relay = RemoteRelay({"client": "stopped"})
    for number in range(MAX_EVENTS + 10):
        await asyncio.wait_for(relay.on_log({"level": "info", "data": number}), 1)
        await asyncio.wait_for(relay.on_progress(number, None, None), 1)
    assert relay.events.qsize() == MAX_EVENTS


async def test_where_many_events_wait_questions_are_asked_all_the_same() -> None:
    posted: list[JsonObject] = []

    async def post(_path: str, body: JsonObject) -> None:
        posted.append(body)

    asked = at_once()
    events = RelayedEvents(asked, post)
    for number in range(MAX_EVENTS + 10):
        events.take({"log": {"level": "info", "logger": "a", "data": number}})
    events.take({"ask": {"number": 1, "questions": {"where": ROOTS}}})
    await asyncio.sleep(0)
    await events.end()
    assert len(asked.logs) == MAX_EVENTS
    assert asked.questions == [ROOTS]
