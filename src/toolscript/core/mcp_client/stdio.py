"""A server that runs as a child: one process group, its input and output, and the last lines of its errors."""

import asyncio
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import anyio

from toolscript.adapters.mcp_servers.process_groups import ASKING, KILLING, ProcessGroups, signal_group
from toolscript.errors import ServerUnavailable
from toolscript.model.servers import ServerSpec
from toolscript.model.text import readable

MAX_LINE = 64 * 1024 * 1024
TAIL_LINES = 20
TAIL_WIDTH = 300
_ASK_AGAIN = 0.02
_LAST_MOMENT = 0.5

Stream = TypeVar("Stream")


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
