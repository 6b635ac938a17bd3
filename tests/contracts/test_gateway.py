"""Contract of Gateway, in process and over HTTP, with equal results."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, World, open_world, tool
from tests.unit.gateway.runtime.serving import client_of
from toolscript.core.errors import (
    BlankQuery,
    InvalidRequest,
    NotFound,
    NotReady,
    ServerRejected,
    ServerUnavailable,
    ToolscriptError,
)
from toolscript.core.items import ItemKind, JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerState, ServerStatus, Transport
from toolscript.gateway import client as gateway_client
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.model import Gateway, LocalQuery

pytestmark = pytest.mark.requirement("TS-008", "TS-010")

HOSTILE_NAMES = [
    *("with space", "slash/../up", "/edges/", "per%2Fcent", "q?a=b&c#d", "new\nline", "last\u0085line"),
    *(
        "quo\"te's",
        "日本語",
        "💥\u202e",
        "<script>",
        "..",
        "{tool:path}",
        "a__b__c",
        "dot.json",
        "back\\slash",
        "+",
    ),
]
HOSTILE_TEXT = "\x1b[31m */ `${x}` \u202e \u2028 \0 </script> 💥 " + "é" * 300


def answered(_server: str, name: str, arguments: JsonObject) -> CallResult:
    if name == "reject":
        raise ServerRejected("demo: no such row", hint="look at it", details={"code": -32602})
    if name == "vanish":
        raise ServerUnavailable("demo: the connection was closed", hint="it is tried again by itself")
    if name == "error":
        return CallResult(({"type": "text", "text": "it failed"},), is_error=True)
    if name == "list":
        return CallResult((), [1, {"a": None}, "x"])
    if name == "hostile":
        return CallResult(({"type": "text", "text": HOSTILE_TEXT},), {HOSTILE_TEXT: arguments})
    return CallResult(({"type": "text", "text": name},), dict(arguments))


DEMO = [
    *(tool("demo", name, "Of use to nobody") for name in ("reject", "vanish", "error", "list", "hostile")),
    tool("demo", "summary", HOSTILE_TEXT, type="prompt"),
    *(tool("hostile", name, HOSTILE_TEXT, input_schema={"properties": {name: {}}}) for name in HOSTILE_NAMES),
]


@dataclass(frozen=True)
class Pair:
    world: World
    here: Gateway
    there: GatewayClient

    async def same(self, ask: Callable[[Gateway], Awaitable[object]]) -> object:
        first, second = await ask(self.here), await ask(self.there)
        assert first == second
        return first

    async def same_error(self, ask: Callable[[Gateway], Awaitable[object]]) -> ToolscriptError:
        raised = []
        for gateway in (self.here, self.there):
            with pytest.raises(ToolscriptError) as error:
                await ask(gateway)
            raised.append(error.value)
        first, second = raised
        assert type(first) is type(second)
        assert (first.message, first.hint, first.details) == (second.message, second.hint, second.details)
        return first


@pytest.fixture(scope="module")
async def pair() -> AsyncIterator[Pair]:
    async with open_world(answer=answered) as world, client_of(world.gateway) as client:
        world.use("files", "mail", "demo", "hostile", "broken")
        world.servers.put("files", *FILES)
        world.servers.put("mail", *MAIL)
        world.servers.put("demo", *(item for item in DEMO if item.server == "demo"))
        world.servers.put("hostile", *(item for item in DEMO if item.server == "hostile"))
        world.servers.fall("broken", HOSTILE_TEXT)
        await world.settled()
        yield Pair(world, world.gateway, client)


@pytest.mark.parametrize("kind", [None, *ItemKind])
@pytest.mark.parametrize(
    "text", ["read a file", "send_mial", "qqqq", "sum up", HOSTILE_TEXT, "read_file 日本語 &limit=1"]
)
async def test_a_search_has_the_same_answer_with_all_its_parts(
    pair: Pair, text: str, kind: ItemKind | None
) -> None:
    query = LocalQuery(text, limit=5, threshold=0.2, kind=kind)
    here, there = await pair.here.search(query), await pair.there.search(query)
    assert here == there
    assert here.query == query.text
    assert "not searched: broken" in here.hint


async def test_a_search_without_hits_has_the_same_near_misses(pair: Pair) -> None:
    query = LocalQuery("a file", threshold=1.0)
    here, there = await pair.here.search(query), await pair.there.search(query)
    assert here.hits == there.hits == ()
    assert here == there
    assert there.near_misses[0].parts.matched


async def test_items_come_with_their_schemas_over_several_pages(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted([*FILES, *MAIL, *DEMO], key=lambda item: item.server)
    for page in (1, 2, 7, 1000):
        monkeypatch.setattr(gateway_client, "PAGE", page)
        assert sorted(await pair.there.items(), key=lambda item: item.server) == expected
    await pair.same(lambda gateway: gateway.items())


@pytest.mark.parametrize("wanted", [("files",), ("files__read_file",), ("mail", "files__write_file"), ("nobody",)])
async def test_items_and_types_can_be_requested_by_name(pair: Pair, wanted: tuple[str, ...]) -> None:
    items = await pair.same(lambda gateway: gateway.items(wanted))
    if wanted == ("nobody",):
        assert items == []
        error = await pair.same_error(lambda gateway: gateway.typescript(wanted))
        assert isinstance(error, NotFound)
    else:
        module = await pair.same(lambda gateway: gateway.typescript(wanted))
        assert "export" in str(module)


@pytest.mark.parametrize("compact", [False, True])
async def test_the_typescript_of_everything_is_the_same(pair: Pair, compact: bool) -> None:
    module = str(await pair.same(lambda gateway: gateway.typescript(compact=compact)))
    assert "read_file" in module


async def test_compact_typescript_is_shorter(pair: Pair) -> None:
    assert len(await pair.there.typescript(compact=True)) < len(await pair.there.typescript())


async def test_a_call_returns_the_tools_result(pair: Pair) -> None:
    arguments = {"path": "a.txt", "deep": [{"x": None, "y": 1.5}], HOSTILE_TEXT: HOSTILE_TEXT}
    results = [await item.call("files__read_file", arguments) for item in (pair.here, pair.there)]
    for result in results:
        assert list(result.content) == [{"type": "text", "text": "read_file"}]
        assert result.structured_content == arguments
        assert not result.is_error


@pytest.mark.parametrize("name", ["error", "list", "hostile"])
async def test_errors_of_a_tool_and_any_structure_survive(pair: Pair, name: str) -> None:
    here, there = [await item.call(f"demo__{name}", {"a": 1}) for item in (pair.here, pair.there)]
    assert list(here.content) == list(there.content)
    assert here.structured_content == there.structured_content
    assert here.is_error == there.is_error == (name == "error")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=ascii)
async def test_a_tool_of_any_name_can_be_called(pair: Pair, name: str) -> None:
    for gateway in (pair.here, pair.there):
        result = await gateway.call(f"hostile__{name}", {"x": name})
        assert (result.content[0]["text"], result.structured_content) == (name, {"x": name})


async def test_servers_and_health_are_the_same(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = ServerState("left", Transport.HTTP, ServerStatus.FAILED, HOSTILE_TEXT)
    monkeypatch.setattr(pair.world.gateway, "left_out", [left_out])
    states = await pair.same(lambda gateway: gateway.servers())
    assert isinstance(states, list)
    assert [state.status for state in states if state.name in ("broken", "left")] == [ServerStatus.FAILED] * 2
    health = await pair.same(lambda gateway: gateway.health())
    assert health == await pair.here.health()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("demo__reject", ServerRejected),
        ("demo__vanish", ServerUnavailable),
        ("broken__anything", ServerUnavailable),
        ("files__read_fil", NotFound),
        ("files__", InvalidRequest),
        ("demo__summary", NotFound),
        ("nobody__nothing", NotFound),
        ("nothing at all", InvalidRequest),
        ("", InvalidRequest),
        ("files__\ud800lone", NotFound),
    ],
)
async def test_a_call_that_cannot_be_made_has_the_same_error(
    pair: Pair, name: str, kind: type[ToolscriptError]
) -> None:
    assert type(await pair.same_error(lambda gateway: gateway.call(name, {}))) is kind


async def test_an_unknown_tool_is_answered_with_the_nearest_names(pair: Pair) -> None:
    error = await pair.same_error(lambda gateway: gateway.call("files__read_fil", {}))
    nearest = error.details["nearest"]
    assert isinstance(nearest, list)
    assert nearest[0] == "files__read_file"
    assert "did you mean" in error.hint


async def test_before_a_server_has_responded_a_search_is_not_ready() -> None:
    async with (
        open_world(begin=lambda world: world.use("mute")) as world,
        client_of(world.gateway) as client,
    ):
        error = await Pair(world, world.gateway, client).same_error(lambda item: item.search(LocalQuery("read")))
        assert isinstance(error, NotReady)
        for gateway in (world.gateway, client):
            health = await gateway.health()
            assert (health.ready, health.items) == (False, 0)
            assert [item.status for item in health.servers] == [ServerStatus.STARTING]


@pytest.mark.parametrize(
    ("text", "limit", "threshold", "kind"),
    [
        ("", 3, 0.3, BlankQuery),
        (" \n\t", 3, 0.3, BlankQuery),
        ("x" * 1001, 3, 0.3, InvalidRequest),
        ("x", 0, 0.3, InvalidRequest),
        ("x", 101, 0.3, InvalidRequest),
        ("x", 3, 1.01, InvalidRequest),
        ("x", 3, -0.1, InvalidRequest),
        ("x", 3, float("nan"), InvalidRequest),
    ],
)
def test_an_invalid_query_cannot_be_created(
    text: str, limit: int, threshold: float, kind: type[ToolscriptError]
) -> None:
    with pytest.raises(kind):
        LocalQuery(text, limit, threshold)


async def test_concurrent_requests_are_allowed(pair: Pair) -> None:
    async def ask(number: int) -> object:
        return (await pair.there.call("files__read_file", {"n": number})).structured_content

    assert await asyncio.gather(*map(ask, range(20))) == [{"n": number} for number in range(20)]
