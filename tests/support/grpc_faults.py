"""A relay that parses gRPC and fails only matching calls, with the same faults.

Clients see the same as with a byte relay: an unusable connection is UNAVAILABLE.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
from grpc import StatusCode

from tests.support.faults import GARBAGE, Fault

_BROKEN = {Fault.REFUSED, Fault.RESET}
_SILENT = {Fault.HANGING, Fault.HALF_THEN_SILENT}


class CallRelay(grpc.GenericRpcHandler):
    """Forwards calls, whole messages at a time. Calls that contain a name, such as a collection, fail."""

    def __init__(self, far: grpc.aio.Channel) -> None:
        self._far = far
        self._fault = Fault.NONE
        self._delay = 0.0
        self._failing, self._sparing = b"", b""
        self._renamed = (b"", b"")
        self._healed = asyncio.Event()
        self.port = 0

    async def fail(self, fault: Fault, *, naming: str, but_not: str = "", delay: float = 0.0) -> None:
        """`delay`: seconds to hold back a slow response."""
        self._fault, self._delay = fault, delay
        self._failing, self._sparing = naming.encode(), but_not.encode()
        self._healed.clear()

    async def rename(self, collection: str, other: str) -> None:
        """Replace the collection in requests by another one, whose name must be as long."""
        assert len(collection) == len(other)
        self._renamed = (collection.encode(), other.encode())

    async def heal(self) -> None:
        self._fault = Fault.NONE
        self._renamed = (b"", b"")
        self._healed.set()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        method = str(handler_call_details.method)

        async def answer(request: bytes, context: Any) -> bytes:
            return await self._answer(method, request, context)

        return grpc.unary_unary_rpc_method_handler(answer)

    def _is_meant(self, request: bytes) -> bool:
        return self._failing in request and not (self._sparing and self._sparing in request)

    async def _answer(self, method: str, request: bytes, context: Any) -> bytes:
        fails = self._fault if self._is_meant(request) else Fault.NONE
        if fails in _BROKEN:
            await context.abort(StatusCode.UNAVAILABLE, "the connection is gone")
        try:
            far: Any = self._far.unary_unary(method)
            answer: bytes = await far(request.replace(*self._renamed), timeout=30)
        except grpc.aio.AioRpcError as refused:
            await context.abort(refused.code(), refused.details())
            raise
        if fails is Fault.WRONG:
            return GARBAGE
        if fails is Fault.HALF_THEN_CUT:
            return answer[: len(answer) // 2]
        if fails is Fault.SLOW or fails in _SILENT:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._healed.wait(), self._delay if fails is Fault.SLOW else None)
        return answer


@asynccontextmanager
async def call_relay(target: str) -> AsyncIterator[CallRelay]:
    # A client that gives up is not logged.
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.CRITICAL)
    async with grpc.aio.insecure_channel(target) as far:
        relay = CallRelay(far)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((relay,))
        relay.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield relay
        finally:
            await relay.heal()
            await server.stop(0)
