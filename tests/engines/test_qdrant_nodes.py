"""Several addresses of one Qdrant: a node that does not answer is skipped, for reads and writes."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest

from tests.conftest import drop_collections
from tests.support.faults import Fault, Relay, relay
from tests.support.grpc_faults import call_relay
from toolscript.core.errors import IndexRejected, IndexUnavailable, InvalidRequest
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexCard, IndexQuery, ModelCard, Point, PointVersion
from toolscript.core.retrieval.ports import Index
from toolscript.core.settings.service import Settings

T = TypeVar("T")

CARD = IndexCard(ModelCard("small", "1", 4))
NOTHING = IndexQuery(vector=np.ones(4, dtype=np.float32))
MISSHAPEN = IndexQuery(vector=np.ones(5, dtype=np.float32))


@dataclass(frozen=True)
class Nodes:
    """One engine behind two addresses; the first one is tried first."""

    index: Index
    first: Relay
    second: Relay


@pytest.fixture
async def nodes(engines: Settings) -> AsyncIterator[Nodes]:
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(relay("127.0.0.1", engines.qdrant_grpc_port))
        beside = relay("127.0.0.1", engines.qdrant_grpc_port, listens_on="127.0.0.2", own_port=first.port)
        second = await stack.enter_async_context(beside)
        both = open_qdrant("http://127.0.0.1, http://127.0.0.2", first.port, timeout_seconds=5)
        connected = await stack.enter_async_context(both)
        indexes = QdrantIndexes(connected, alias, Layout())
        await indexes.create(CARD)
        opened = await indexes.open(CARD)
        await opened.put([_point(1)])
        await opened.search(NOTHING)
        yield Nodes(opened, first, second)
        await first.heal()
        await second.heal()
        await drop_collections(connected, alias)


def _point(id_: int, version: int = 1) -> Point:
    return Point(id_, version, np.eye(4, dtype=np.float32)[0], {7: 1.0}, {"type": "tool"})


async def _until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Wait until a restarted node answers: connection attempts have a pause."""
    async with asyncio.timeout(20):
        while True:
            with suppress(IndexUnavailable):
                return await ask()
            await asyncio.sleep(0.05)


async def test_one_node_gets_all_requests_while_it_answers(nodes: Nodes) -> None:
    await asyncio.gather(*(nodes.index.search(NOTHING) for _ in range(20)))
    assert (nodes.first.accepted, nodes.second.accepted) == (1, 0)


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.RESET, Fault.WRONG, Fault.HALF_THEN_CUT])
async def test_another_node_takes_over_from_a_failed_one_at_once(nodes: Nodes, fault: Fault) -> None:
    await nodes.first.fail(fault)
    results = await asyncio.gather(*(nodes.index.search(NOTHING) for _ in range(20)))
    assert [[hit.id for hit in result.dense or ()] for result in results] == [[1]] * 20


async def test_writes_use_another_node_too_and_the_newest_version_stays(nodes: Nodes) -> None:
    await nodes.first.fail(Fault.REFUSED)
    await nodes.index.put([_point(1, version=3), _point(2)])
    await nodes.second.fail(Fault.REFUSED)
    await nodes.first.heal()
    await _until_answered(lambda: nodes.index.put([_point(1, version=2)]))
    await nodes.index.remove([PointVersion(2, 1)])
    assert await nodes.index.scan(0, 10) == [PointVersion(1, 3)]


async def test_a_silent_node_is_tried_only_once(nodes: Nodes) -> None:
    await nodes.first.fail(Fault.HANGING)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await nodes.index.count()
    assert await asyncio.gather(*(nodes.index.count() for _ in range(5))) == [1] * 5


async def test_without_any_node_the_index_is_unavailable_and_comes_back_with_the_first_that_does(
    nodes: Nodes,
) -> None:
    await nodes.first.fail(Fault.REFUSED)
    await nodes.second.fail(Fault.REFUSED)
    with pytest.raises(IndexUnavailable):
        await nodes.index.count()
    await nodes.second.heal()
    assert await _until_answered(nodes.index.count) == 1


async def test_a_rejected_request_is_not_sent_to_another_node(nodes: Nodes) -> None:
    with pytest.raises(IndexRejected):
        await nodes.index.search(MISSHAPEN)
    assert nodes.second.accepted == 0


async def test_nodes_with_grpc_ports_of_their_own_stand_in_for_each_other(engines: Settings) -> None:
    to_engine = engines.qdrant_grpc_port
    async with relay("127.0.0.1", to_engine) as first, relay("127.0.0.1", to_engine) as second:
        both = f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"
        async with open_qdrant(both, 1, timeout_seconds=5) as connected:
            indexes = QdrantIndexes(connected, f"test_{uuid.uuid4().hex[:12]}", Layout())
            for node, count in ((first, (1, 0)), (second, (1, 1))):
                assert await indexes.origin() is None
                assert (first.accepted, second.accepted) == count
                await node.fail(Fault.REFUSED)


@pytest.mark.parametrize(
    "url", ["127.0.0.1", "127.0.0.1:none", "127.0.0.1:70000", "ftp://127.0.0.1:6333", ":6334", ""]
)
async def test_an_address_without_a_host_or_a_port_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(InvalidRequest, match="http://host:6333, or host:6334 by the gRPC port"):
        async with open_qdrant(f"http://127.0.0.1:6333, {url}", 6334):
            pass


async def test_one_invalid_address_invalidates_the_list() -> None:
    with pytest.raises(InvalidRequest, match="TOOLSCRIPT_QDRANT_URL"):
        async with open_qdrant("http://127.0.0.1,", 6334):
            pass


@pytest.mark.parametrize("fault", [Fault.WRONG, Fault.HALF_THEN_CUT])
async def test_an_answer_that_cannot_be_read_is_rejected(
    engines: Settings, indexes: QdrantIndexes, fault: Fault
) -> None:
    await indexes.create(CARD)
    async with (
        call_relay(f"127.0.0.1:{engines.qdrant_grpc_port}") as between,
        open_qdrant("http://127.0.0.1", between.port) as connected,
    ):
        index = await QdrantIndexes(connected, indexes._alias, Layout()).open(CARD)
        await index.put([_point(1)])
        await between.fail(fault, naming=indexes._alias)
        with pytest.raises(IndexRejected, match="cannot be read"):
            await index.fields([1])
