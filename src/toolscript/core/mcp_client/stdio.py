"""The stdio transport: a child process, and JSON-RPC messages a line each through its pipes."""

import asyncio
import json
import re
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
from toolscript.core.mcp_client.model import ServerSpec, masked
from toolscript.core.mcp_client.process_groups import KILL, TERMINATE, ProcessGroups, signal_group
from toolscript.core.text import readable

MAX_LINE = 64 * 1024 * 1024
TAIL_LINES = 20
TAIL_WIDTH = 300
# Kept of a line until it is shown: a secret must be masked before the line is cut.
_LINE_WIDTH = 8_192
_POLL_SECONDS = 0.02
_EXIT_SECONDS = 0.5

Stream = TypeVar("Stream")

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

# Buffered messages, so that no sender waits for a child that does not read.
_BUFFERED_MESSAGES = 256
_NOISE_WIDTH = 120
# Time to read a child's remaining output after its exit; a grandchild may keep the pipe open.
_DRAIN_SECONDS = 0.2
# An escape of JSON: a pair of surrogates, half of one, or another.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


class _Watching(SubprocessStreamProtocol):
    """Reports the exit of the process at once, even if a grandchild still holds its output open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=MAX_LINE, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Child:
    """A process. What is shown of its output is without the secrets of its entry."""

    def __init__(self, spec: ServerSpec, transport: asyncio.SubprocessTransport, protocol: _Watching) -> None:
        self._spec = spec
        self._transport = transport
        self._protocol = protocol
        self.pid = transport.get_pid()
        self.exited = protocol.exited
        self.exit_code: int | None = None
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._noise = ""

    @property
    def tail(self) -> list[str]:
        """The last lines of its stderr."""
        return [self._shown(line, TAIL_WIDTH) for line in self._lines]

    @property
    def noise(self) -> str:
        """The first line of its stdout that is no message."""
        return self._shown(self._noise, _NOISE_WIDTH)

    def keep_noise(self, line: str) -> None:
        self._noise = line[:_LINE_WIDTH].strip()

    def _shown(self, line: str, width: int) -> str:
        return readable(masked(line, self._spec)[:width]).strip()

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return _piped(self._protocol.stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _piped(self._protocol.stdout)

    async def read_errors(self) -> None:
        """Drain stderr until it closes and keep its last lines."""
        stderr, rest = _piped(self._protocol.stderr), ""
        while data := await stderr.read(16_384):
            *lines, rest = (rest + data.decode("utf-8", "replace")).split("\n")
            rest = rest[:_LINE_WIDTH]
            self._lines.extend(line[:_LINE_WIDTH] for line in lines if line.strip())
        if rest.strip():
            self._lines.append(rest)

    async def end(self, groups: ProcessGroups, patience: float) -> None:
        """End the child and its process group: close the input, then terminate, then kill. Time is bounded."""
        # A child that closed its output is about to exit: wait shortly for its exit code.
        await self._wait_for_exit(_EXIT_SECONDS if self.stdout.at_eof() else 0)
        self.exit_code = self._transport.get_returncode()
        self.stdin.close()
        await self._wait_for_exit(patience)
        for number in (TERMINATE, KILL):
            self._signal(number)
            if await self._wait_for_group_exit(patience):
                break
        groups.remove(self.pid)
        self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        if sys.platform != "win32":
            signal_group(self.pid, number)
        elif not self.exited.is_set():
            self._transport.kill()

    async def _wait_for_exit(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.exited.wait()

    async def _wait_for_group_exit(self, seconds: float) -> bool:
        give_up = asyncio.get_running_loop().time() + seconds
        while not self.exited.is_set() or signal_group(self.pid, 0):
            if asyncio.get_running_loop().time() > give_up:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True


async def start_child(spec: ServerSpec, environment: Mapping[str, str], groups: ProcessGroups) -> Child:
    """Start the command with exactly its arguments, without a shell that could expand them."""
    loop = asyncio.get_running_loop()
    if spec.cwd and not Path(spec.cwd).is_dir():  # noqa: ASYNC240 - one check of a local folder
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
        raise ServerUnavailable(
            _start_error(spec.command, error), hint="is it installed, and on the PATH?"
        ) from error
    child = Child(spec, transport, protocol)
    groups.add(child.pid)
    return child


def _start_error(command: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"command not found: {command}"
    if isinstance(error, PermissionError):
        return f"no permission to run command: {command}"
    return f"command cannot be run: {command}: {getattr(error, 'strerror', None) or error}"


def _piped(stream: Stream | None) -> Stream:
    if stream is None:
        raise ServerUnavailable("the process was started without its pipes")
    return stream


@asynccontextmanager
async def stdio_streams(
    spec: ServerSpec, groups: ProcessGroups, patience: float, started: list[Child]
) -> AsyncIterator[Streams]:
    # A cancelled start would leave an untracked process.
    with anyio.CancelScope(shield=True):
        environment = {**get_default_environment(), **spec.inherited, **spec.env}
        child = await start_child(spec, environment, groups)
    started.append(child)
    arrived, incoming = anyio.create_memory_object_stream[Incoming](_BUFFERED_MESSAGES)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](_BUFFERED_MESSAGES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.read_errors)
        tasks.start_soon(_read, child, arrived)
        tasks.start_soon(_write, child, leaving, arrived)
        tasks.start_soon(_close_after_exit, child, arrived)
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
                await _forward(child, line, arrived)
        except ValueError:
            child.keep_noise("a line without an end")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return


async def _forward(child: Child, line: bytes, arrived: MemoryObjectSendStream[Incoming]) -> None:
    try:
        message = _message(line)
    except (ValueError, RecursionError):
        # Many servers print a greeting to stdout. It is harmless, and may explain a missing response.
        if not child.noise:
            child.keep_noise(line[:_LINE_WIDTH].decode("utf-8", "replace"))
        return
    await arrived.send(SessionMessage(message))


def _message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # Pydantic's parser rejects deep nesting, and one deep schema would hide all tools of its page.
        plain = json.loads(_storable(line))
    try:
        return jsonrpc_message_adapter.validate_python(plain, by_name=False)
    except ValueError:
        if not isinstance(plain, dict) or "method" in plain or not isinstance(plain.get("id"), int):
            raise
        # Without this error the requester would wait for a response that has already arrived.
        error = ErrorData(code=INTERNAL_ERROR, message="the answer does not follow the protocol")
        return JSONRPCError(jsonrpc="2.0", id=plain["id"], error=error)


def _storable(line: bytes) -> str:
    """Return the line without halves of surrogate pairs, which JSON may have and no message can carry on."""
    return _ESCAPE.sub(_whole, readable(line.decode("utf-8", "surrogatepass")))


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["half"] else escape[0]


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


async def _close_after_exit(child: Child, arrived: MemoryObjectSendStream[Incoming]) -> None:
    await child.exited.wait()
    await anyio.sleep(_DRAIN_SECONDS)
    arrived.close()
