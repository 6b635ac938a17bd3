"""Short errors are retried: a shard in transfer, a collection in creation."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from toolscript.core.errors import IndexRejected, IndexUnavailable
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import SHARD_TRANSFER_TRIES, Qdrant, open_qdrant, translated

# Message of the engine.
MOMENT = (
    "Service internal error: 1 of 1 read operations failed:\n  Service internal error: Local shard 3 not found"
)
BEING_MADE = "Service internal error: 0 of 0 read operations failed"
ASKED = wire.CountPoints(collection_name="any")


class Node(grpc.GenericRpcHandler):
    """Rejects a number of calls with this message, then counts seven points."""

    def __init__(self, refusals: int, words: str) -> None:
        self.refusals = refusals
        self.words = words
        self.asked = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def answer(_: bytes, context: Any) -> bytes:
            self.asked += 1
            if self.asked <= self.refusals:
                await context.abort(StatusCode.INTERNAL, self.words)
            return wire.CountResponse(result=wire.CountResult(count=7)).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def connected_to(node: Node, seconds: float = 30.0) -> AsyncIterator[Qdrant]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([node])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_qdrant("http://127.0.0.1", port, timeout_seconds=seconds) as qdrant:
        yield qdrant
    await server.stop(None)
    # Otherwise its last log lines appear in the next test.
    await server.wait_for_termination(5)


async def count(qdrant: Qdrant) -> int:
    with translated():
        return int((await qdrant.points.Count(ASKED, timeout=qdrant.timeout_seconds)).result.count)


@pytest.mark.requirement("EC-009")
@pytest.mark.parametrize("words", [MOMENT, BEING_MADE])
@pytest.mark.parametrize("refusals", [1, 5, SHARD_TRANSFER_TRIES])
async def test_a_node_during_a_shard_transfer_is_retried_until_it_answers(refusals: int, words: str) -> None:
    node = Node(refusals, words)
    async with connected_to(node) as qdrant:
        assert await count(qdrant) == 7
    assert node.asked == refusals + 1


async def test_retries_of_a_lost_shard_are_limited() -> None:
    node = Node(10_000, MOMENT)
    async with connected_to(node) as qdrant:
        with pytest.raises(IndexRejected, match="Local shard 3"):
            await count(qdrant)
    assert node.asked == SHARD_TRANSFER_TRIES + 1


async def test_retries_end_at_the_deadline() -> None:
    began = time.monotonic()
    async with connected_to(Node(10_000, MOMENT), seconds=0.2) as qdrant:
        with pytest.raises((IndexUnavailable, IndexRejected)):
            await count(qdrant)
    assert time.monotonic() - began < 5


async def test_any_other_error_of_a_node_is_raised_at_once() -> None:
    node = Node(1, "Service internal error: 10 of 10 read operations failed: the disk is full")
    async with connected_to(node) as qdrant:
        with pytest.raises(IndexRejected, match="disk is full"):
            await count(qdrant)
    assert node.asked == 1
