"""The stdio transport: a child process, and JSON-RPC messages a line each through its pipes."""

import asyncio
import json
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from toolscript.core.errors import ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec
from toolscript.core.mcp_client.process_groups import ASKING, KILLING, ProcessGroups, signal_group
from toolscript.core.text import readable

MAX_LINE = 64 * 1024 * 1024
TAIL_LINES = 20
TAIL_WIDTH = 300
_ASK_AGAIN = 0.02
_LAST_MOMENT = 0.5

Stream = TypeVar("Stream")

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

# Room for what is on its way, so that nobody waits for a child that reads nothing.
_ROOM = 256
_NOISE_WIDTH = 120
# What a child wrote before it ended is read to the end, unless a grandchild keeps the pipe open.
_LAST_WORDS = 0.2


class _Watching(SubprocessStreamProtocol):
    """Knows at once when the process is gone, though a grandchild may still hold its output open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=MAX_LINE, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Child:
    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Watching) -> None:
        self._transport = transport
        self._protocol = protocol
        self.pid = transport.get_pid()
        self.exited = protocol.exited
        self.fell: int | None = None
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.noise = ""

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return _piped(self._protocol.stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _piped(self._protocol.stdout)

    async def read_errors(self) -> None:
        """Keeps the end of what the child writes to stderr, and lets it write on for ever."""
        stderr, rest = _piped(self._protocol.stderr), ""
        while data := await stderr.read(16_384):
            *lines, rest = (rest + data.decode("utf-8", "replace")).split("\n")
            rest = rest[:TAIL_WIDTH]
            self.tail.extend(readable(line[:TAIL_WIDTH]).strip() for line in lines if line.strip())
        if rest.strip():
            self.tail.append(readable(rest).strip())

    async def end(self, groups: ProcessGroups, patience: float) -> None:
        """Closes the input, then asks, then kills: the child and all that it started. Always over soon."""
        # Who closes its output is about to end by itself, and how it ended is worth the wait.
        await self._gone_within(_LAST_MOMENT if self.stdout.at_eof() else 0)
        self.fell = self._transport.get_returncode()
        self.stdin.close()
        await self._gone_within(patience)
        for number in (ASKING, KILLING):
            self._signal(number)
            if await self._group_gone_within(patience):
                break
        groups.remove(self.pid)
        self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        if sys.platform != "win32":
            signal_group(self.pid, number)
        elif not self.exited.is_set():
            self._transport.kill()

    async def _gone_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.exited.wait()

    async def _group_gone_within(self, seconds: float) -> bool:
        give_up = asyncio.get_running_loop().time() + seconds
        while not self.exited.is_set() or signal_group(self.pid, 0):
            if asyncio.get_running_loop().time() > give_up:
                return False
            await asyncio.sleep(_ASK_AGAIN)
        return True


async def start_child(spec: ServerSpec, environment: Mapping[str, str], groups: ProcessGroups) -> Child:
    """Runs exactly the command with its arguments; there is no shell that could read more into them."""
    loop = asyncio.get_running_loop()
    if spec.cwd and not Path(spec.cwd).is_dir():  # noqa: ASYNC240 - one look at a local folder
        raise ServerUnavailable(f"there is no folder {spec.cwd}", hint="set `cwd` to a folder that exists")
    program = shutil.which(spec.command, path=environment.get("PATH")) or spec.command
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Watching(loop),
            program,
            *spec.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=spec.cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ServerUnavailable(_why_not(spec.command, error), hint="is it installed, and on the PATH?") from error
    child = Child(transport, protocol)
    groups.add(child.pid)
    return child


def _why_not(command: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"command not found: {command}"
    if isinstance(error, PermissionError):
        return f"command may not be run: {command}"
    return f"command cannot be run: {command}: {getattr(error, 'strerror', None) or error}"


def _piped(stream: Stream | None) -> Stream:
    if stream is None:
        raise ServerUnavailable("the process was started without its pipes")
    return stream


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
