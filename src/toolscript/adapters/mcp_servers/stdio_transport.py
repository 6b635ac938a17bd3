"""The stdio transport: one JSON-RPC message a line, between a child's pipes and the SDK's streams."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from toolscript.adapters.mcp_servers.child import Child, start_child
from toolscript.adapters.mcp_servers.process_groups import ProcessGroups
from toolscript.model.servers import ServerSpec
from toolscript.model.text import readable

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

# Room for what is on its way, so that nobody waits for a child that reads nothing.
_ROOM = 256
_NOISE_WIDTH = 120
# What a child wrote before it ended is read to the end, unless a grandchild keeps the pipe open.
_LAST_WORDS = 0.2


@asynccontextmanager
async def stdio_streams(
    spec: ServerSpec, groups: ProcessGroups, patience: float, started: list[Child]
) -> AsyncIterator[Streams]:
    # A start that is cut off halfway would leave a process that nobody knows.
    with anyio.CancelScope(shield=True):
        environment = {**get_default_environment(), **spec.inherited, **spec.env}
        child = await start_child(spec, environment, groups)
    started.append(child)
    arrived, incoming = anyio.create_memory_object_stream[Incoming](_ROOM)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](_ROOM)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.read_errors)
        tasks.start_soon(_read, child, arrived)
        tasks.start_soon(_write, child, leaving, arrived)
        tasks.start_soon(_hang_up, child, arrived)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await child.end(groups, patience)
            tasks.cancel_scope.cancel()
            for stream in (arrived, incoming, outgoing, leaving):
                stream.close()


async def _read(child: Child, arrived: MemoryObjectSendStream[Incoming]) -> None:
    with arrived:
        try:
            while line := await child.stdout.readline():
                await _pass_on(child, line, arrived)
        except ValueError:
            child.noise = "a line without an end"
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return


async def _pass_on(child: Child, line: bytes, arrived: MemoryObjectSendStream[Incoming]) -> None:
    try:
        message = _message(line)
    except (ValueError, RecursionError):
        # Many servers print a greeting where only messages belong. It harms nobody, and may explain a silence.
        child.noise = child.noise or readable(line[:_NOISE_WIDTH].decode("utf-8", "replace")).strip()
        return
    await arrived.send(SessionMessage(message))


def _message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # The fast reader gives up on deep nesting, and one deep schema would hide all tools of its page.
        plain = json.loads(line)
    try:
        return jsonrpc_message_adapter.validate_python(plain, by_name=False)
    except ValueError:
        if not isinstance(plain, dict) or "method" in plain or not isinstance(plain.get("id"), int):
            raise
        # Whoever asked would otherwise wait for an answer that came already.
        wrong = ErrorData(code=INTERNAL_ERROR, message="the answer is not what the protocol asks for")
        return JSONRPCError(jsonrpc="2.0", id=plain["id"], error=wrong)


async def _write(
    child: Child, leaving: MemoryObjectReceiveStream[SessionMessage], arrived: MemoryObjectSendStream[Incoming]
) -> None:
    try:
        async for sent in leaving:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            child.stdin.write(line.encode() + b"\n")
            await child.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        arrived.close()


async def _hang_up(child: Child, arrived: MemoryObjectSendStream[Incoming]) -> None:
    await child.exited.wait()
    await anyio.sleep(_LAST_WORDS)
    arrived.close()
