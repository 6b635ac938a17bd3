"""What a bench measures, each in a process of its own, which ends with the bench."""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from toolscript.errors import SetupError
from toolscript.model.queries import Strategy
from toolscript.settings.gateway import environment

T = TypeVar("T")

START_SECONDS = 120.0
END_SECONDS = 15.0
SHOWN_OF_A_LOG = 400
# Who measures asks more often than a client may.
NO_BUDGET = {"TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0"}
NO_CACHE = {"TOOLSCRIPT_EMBEDDING_CACHE_SIZE": "1"}


@dataclass(frozen=True)
class Child:
    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Of all its threads until now; 0 where the system does not tell."""
        try:
            told = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def run_bench(work: Coroutine[Any, Any, T]) -> T:
    """Ends its processes also when it is told to end itself, which Python alone would not."""

    async def run() -> T:
        task = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


@asynccontextmanager
async def search_server(*, cached: bool, extra: Mapping[str, str] | None = None) -> AsyncIterator[Child]:
    """`toolscript serve`, with `extra` settings. Unless `cached`, it embeds every query it is asked."""
    with _kept_port() as port:
        command = (sys.executable, "-m", "toolscript", "serve", "--host", "127.0.0.1", "--port", str(port))
        given = {**NO_BUDGET, **(extra or {}), **({} if cached else NO_CACHE)}
        async with _child(command, port, "toolscript serve", given) as child:
            yield child


@asynccontextmanager
async def bare_worker(strategy: Strategy, texts: Sequence[str], *, cached: bool) -> AsyncIterator[Child]:
    """`texts` are all that it will be asked."""
    with _kept_port() as port:
        command = (sys.executable, "-m", "toolscript.service.bare_worker", str(port), strategy.value)
        extra = {} if cached else NO_CACHE
        async with _child(command, port, "toolscript doctor --index", extra, json.dumps(texts)) as child:
            yield child


@asynccontextmanager
async def _child(
    command: Sequence[str], port: int, by_hand: str, extra: dict[str, str], told: str = ""
) -> AsyncIterator[Child]:
    """`told` is its first line of input; its input ends when this does. `by_hand` shows a person what is wrong."""
    with tempfile.TemporaryFile("w+b") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stderr=log, env={**environment(), **extra}
        )
        try:
            await _until_ready(process, port, by_hand, log, told)
            yield Child(process.pid, port)
        finally:
            await _end(process)


async def _until_ready(
    process: asyncio.subprocess.Process, port: int, by_hand: str, log: IO[bytes], told: str
) -> None:
    if told and process.stdin is not None:
        process.stdin.write(told.encode() + b"\n")
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    log.seek(0)
    said = log.read().decode("utf-8", "replace").strip()[-SHOWN_OF_A_LOG:]
    raise SetupError(f"what is to be measured did not start: {said}", hint=f"run `{by_hand}` to see why")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@contextmanager
def _kept_port() -> Iterator[int]:
    """Bound and not listened on: a server that is told of it can have it, and nobody is given it by chance."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield int(keeper.getsockname()[1])
