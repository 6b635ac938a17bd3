"""`python -m benchmarks search`: the service against the baseline, one at a time and under load."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from benchmarks import other_constants
from benchmarks.measurements import (
    WARM_UP_QUERIES,
    Comparison,
    LoadComparison,
    LoadStats,
    Sustained,
    TimedSearch,
    by_minute,
    compare,
    rise,
    stats_of,
    usual_rates,
)
from benchmarks.open_loop import Answer, OpenLoop, Run, Schedule
from benchmarks.plot import latency_plot
from benchmarks.questions import queries_or_names
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.values import OnProgress, silent
from toolscript.gateway.settings import environment
from toolscript.tools.model.query import Strategy

T = TypeVar("T")

START_SECONDS = 120.0
END_SECONDS = 15.0
MAX_LOG_CHARACTERS = 400
# The benchmark exceeds the rate limit of clients.
NO_BUDGET = {
    "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
    "TOOLSCRIPT_PUBLIC_SCOPES": "knowledge:read tools:read",
}
NO_CACHE = {"toolscript.server.serve.CACHED_QUERIES": 1}
REFUSED, LOST = "no connection", "connection lost"
HEAD_ENDS = b"\r\n\r\n"
DEGRADED = b"\r\nx-toolscript-degraded:"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")
TIMES = re.compile(rb'"(\w+)_time_ms":([0-9.eE+-]+)')
STRATEGY = re.compile(rb'"strategy_used":"(\w+)"')
NOTHING_FOUND = re.compile(rb'"final_count":0\b')
ANSWER_SECONDS = 30.0
CONNECTIONS = 64
DIFFERENT_QUERIES = 10_000
MAX_RATE = 1_000.0
WARM_UP_LOAD = Schedule(rate=20.0, seconds=2.0)
OURS, BARE = "search", "bare"


@dataclass(frozen=True)
class Child:
    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its threads; 0 where the system does not report it."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, figure: str = "VmRSS") -> float:
        """Return its resident memory; `VmHWM` is the most it ever had. Linux only."""
        lines = Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{figure}:")) / 1024


def run_bench(work: Coroutine[Any, Any, T]) -> T:
    """Run, and end the child processes on SIGTERM, too, which Python alone would not."""

    async def run() -> T:
        task = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


@asynccontextmanager
async def search_server(
    *, cached: bool, extra: Mapping[str, str] | None = None, sampled: Path | None = None
) -> AsyncIterator[Child]:
    """Run `toolscript serve`, with `extra` settings. Unless `cached`, it embeds every query.

    `sampled` is the file of the profile of a process that runs with a sampler.
    """
    with _reserved_port() as port:
        arguments = ("serve", "--host", "127.0.0.1", "--port", str(port))
        command = other_constants.command({} if cached else NO_CACHE, *arguments)
        command = _with_sampler(command, sampled)
        async with _child(command, port, "toolscript serve", {**NO_BUDGET, **(extra or {})}) as child:
            yield child


@asynccontextmanager
async def baseline_worker(
    strategy: Strategy, texts: Sequence[str], *, cached: bool, sampled: Path | None = None
) -> AsyncIterator[Child]:
    """Run the baseline. `texts` are all queries it will get."""
    with _reserved_port() as port:
        arguments = (str(port), strategy.value, "cached" if cached else "uncached")
        command = _with_sampler([sys.executable, "-m", "benchmarks.baseline", *arguments], sampled)
        async with _child(command, port, "toolscript doctor --index", {}, json.dumps(texts)) as child:
            yield child


def _with_sampler(command: Sequence[str], file: Path | None) -> list[str]:
    """Return the command of a Python module, as one that the sampler runs."""
    if file is None:
        return [*command]
    python, option, *module = command
    return [python, option, "benchmarks.sampler", str(file), *module]


@asynccontextmanager
async def _child(
    command: Sequence[str], port: int, by_hand: str, extra: dict[str, str], first_line: str = ""
) -> AsyncIterator[Child]:
    """Run a process until the end. `first_line` goes to its stdin, which closes with this one.

    `by_hand` is a command that shows the user why it failed.
    """
    with tempfile.TemporaryFile("w+b") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stderr=log, env={**environment(), **extra}
        )
        try:
            await _until_ready(process, port, by_hand, log, first_line)
            yield Child(process.pid, port)
        finally:
            await _end(process)


async def _until_ready(
    process: asyncio.subprocess.Process, port: int, by_hand: str, log: IO[bytes], first_line: str
) -> None:
    if first_line and process.stdin is not None:
        process.stdin.write(first_line.encode() + b"\n")
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
    log_end = log.read().decode("utf-8", "replace").strip()[-MAX_LOG_CHARACTERS:]
    raise SetupError(f"the process to measure did not start: {log_end}", hint=f"run `{by_hand}` to see why")


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
def _reserved_port() -> Iterator[int]:
    """Reserve a port: bound but not listening, so that the server can bind it, but no other process gets it."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield int(keeper.getsockname()[1])


def search_request(text: str, strategy: Strategy) -> bytes:
    """Return a search request without a threshold, so that an empty response is a fault."""
    return post_request("/api/v1/search", {"query": text, "strategy": strategy.value, "tool_threshold": 0.0})


def post_request(path: str, content: Mapping[str, object]) -> bytes:
    body = json.dumps(content).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def message_length(data: bytes) -> int | None:
    """Return the length of the first HTTP message; None while its head is incomplete."""
    head_ends = data.find(HEAD_ENDS)
    if head_ends < 0:
        return None
    match = LENGTH.search(data[:head_ends].lower())
    return head_ends + len(HEAD_ENDS) + (int(match[1]) if match else 0)


def body_of(message: bytes) -> bytes:
    return message.partition(HEAD_ENDS)[2]


def read_answer(message: bytes) -> Answer:
    status = message[9:12].decode("ascii", "replace")
    if status != "200":
        return Answer(f"status {status}")
    head, _, body = message.partition(HEAD_ENDS)
    if DEGRADED in head.lower():
        return Answer("degraded")
    # The last occurrence: a tool's schema may have a field of this name.
    metadata = body[max(0, body.rfind(b'"metadata":')) :]
    if NOTHING_FOUND.search(metadata):
        return Answer("empty")
    times = {name.decode(): float(value) for name, value in TIMES.findall(metadata)}
    if "total" not in times:
        return Answer("not understood")
    strategy = STRATEGY.search(metadata)
    return Answer("", strategy[1].decode() if strategy else "", _stages(times))


def _stages(times: Mapping[str, float]) -> dict[str, float]:
    """Return exclusive times: the server reports ranking as a part of the tool search."""
    ranking = times.get("ranking", 0.0)
    stages = {
        "embedding": times.get("query_embedding", 0.0),
        "skills": times.get("skill_search", 0.0),
        "index": times.get("tool_search", 0.0) - ranking,
        "details": times.get("schema_load", 0.0),
        "ranking": ranking,
    }
    return {**{name: spent for name, spent in stages.items() if spent}, "total": times["total"]}


class HttpLine:
    """Connection to a local port, reopened when it breaks."""

    def __init__(self, port: int, read: Callable[[bytes], Answer] = read_answer) -> None:
        self._port = port
        self._read = read
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._answered: Callable[[Answer], None] | None = None
        self._received = b""

    def send(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        self._answered, self._received = answered, b""
        if self._transport is None or self._transport.is_closing():
            self._opening = asyncio.ensure_future(self._open_and_write(request))
        else:
            self._transport.write(request)

    def give_up(self) -> None:
        self._answered = None
        self.close()

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def _open_and_write(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._transport, _ = await loop.create_connection(lambda: _Wire(self), "127.0.0.1", self._port)
        except OSError:
            self._report(Answer(REFUSED))
        else:
            self._transport.write(request)

    def received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            self._report(self._read(self._received))

    def lost(self, transport: asyncio.BaseTransport | None) -> None:
        """Handle a lost connection. An abandoned one is lost only after its replacement is open."""
        if self._transport is transport:
            self._transport = None
            self._report(Answer(LOST))

    def _report(self, answer: Answer) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(answer)


class _Wire(asyncio.Protocol):
    def __init__(self, line: HttpLine) -> None:
        self._line = line
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._line.received(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._line.lost(self._transport)


def bench_search(
    *, queries: Path | None, count: int, strategy: Strategy, cached: bool, on_progress: OnProgress
) -> Comparison:
    """Compare search and baseline. Both are separate processes, so that the client takes no CPU time of either."""

    async def run() -> Comparison:
        texts = await queries_or_names(queries, count + WARM_UP_QUERIES)
        async with (
            baseline_worker(strategy, texts, cached=cached) as bare,
            search_server(cached=cached) as server,
            open_search(bare.port, strategy) as run_bare,
            open_search(server.port, strategy) as run_ours,
        ):
            return await compare(run_bare, run_ours, texts, on_progress)

    return run_bench(run())


@asynccontextmanager
async def open_search(port: int, strategy: Strategy) -> AsyncIterator[TimedSearch]:
    """Open a search over one connection. Time that the server does not report is the `http` stage."""
    line = HttpLine(port)

    async def search(text: str) -> Mapping[str, float]:
        started = time.perf_counter()
        answer = await asyncio.wait_for(_answer(line, search_request(text, strategy)), ANSWER_SECONDS)
        spent = (time.perf_counter() - started) * 1000
        if answer.fault:
            raise SetupError(f"the server's answer: {answer.fault}", hint="run `toolscript serve` to see its log")
        stages = dict(answer.stages)
        stages["http"] = spent - stages.pop("total")
        return stages

    try:
        yield search
    finally:
        line.close()


async def _answer(line: HttpLine, request: bytes) -> Answer:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    line.send(request, future.set_result)
    return await future


@dataclass(frozen=True)
class Target:
    """The process to measure, and the connections to it."""

    name: str
    child: Child
    lines: Sequence[HttpLine]

    async def run(
        self, requests: Sequence[bytes], schedule: Schedule, on_progress: OnProgress
    ) -> tuple[Run, LoadStats]:
        own_cpu, child_cpu = time.process_time(), self.child.cpu_seconds()
        loop = OpenLoop(self.lines, requests, on_progress=on_progress)
        run = await loop.run(schedule, f"{self.name} at {schedule.rate:g}/s")
        spent = {"generator": time.process_time() - own_cpu, self.name: self.child.cpu_seconds() - child_cpu}
        return run, stats_of(run, {name: seconds * 1000 / len(run.requests) for name, seconds in spent.items()})


def bench_load(
    *,
    queries: Path | None,
    count: int | None,
    strategy: Strategy,
    rates: Sequence[float],
    step_seconds: float,
    cached: bool,
    plot: Path | None,
    on_progress: OnProgress,
) -> LoadComparison:
    """Compare search and baseline under load. Without `rates`, use the default ones."""

    async def run() -> LoadComparison:
        texts = await queries_or_names(queries, count or DIFFERENT_QUERIES)
        requests = [search_request(text, strategy) for text in texts]
        async with AsyncExitStack() as stack:
            bare = await stack.enter_async_context(_target(BARE, baseline_worker(strategy, texts, cached=cached)))
            ours = await stack.enter_async_context(_target(OURS, search_server(cached=cached)))
            targets = {target.name: target for target in (ours, bare)}
            for target in targets.values():
                await _warm_up(target, requests)

            async def step(name: str, rate: float, first: int) -> LoadStats:
                schedule = Schedule(rate, step_seconds)
                return (await targets[name].run(_rotated(requests, first), schedule, on_progress))[1]

            curves = await rise(tuple(targets), rates or tuple(usual_rates(MAX_RATE)), step)
        return LoadComparison(strategy, len(texts), cached, curves[BARE], curves[OURS])

    require_folder(plot)
    compared = run_bench(run())
    if plot is not None:
        plot.write_text(latency_plot(compared), "utf-8")
    return compared


def bench_sustained(
    *,
    queries: Path | None,
    count: int | None,
    strategy: Strategy,
    rate: float,
    seconds: float,
    cached: bool,
    on_progress: OnProgress,
) -> Sustained:
    async def run() -> Sustained:
        texts = await queries_or_names(queries, count or DIFFERENT_QUERIES)
        requests = [search_request(text, strategy) for text in texts]
        async with _target(OURS, search_server(cached=cached)) as target:
            await _warm_up(target, requests)
            done, whole = await target.run(requests, Schedule(rate, seconds), on_progress)
        return Sustained(strategy, len(texts), cached, whole, by_minute(done))

    return run_bench(run())


@asynccontextmanager
async def _target(name: str, started: AbstractAsyncContextManager[Child]) -> AsyncIterator[Target]:
    async with started as child:
        lines = [HttpLine(child.port) for _ in range(CONNECTIONS)]
        try:
            yield Target(name, child, lines)
        finally:
            for line in lines:
                line.close()


async def _warm_up(target: Target, requests: Sequence[bytes]) -> None:
    """Warm up with the last requests: the measurement starts with the first ones."""
    _, stats = await target.run(requests[::-1], WARM_UP_LOAD, silent)
    if stats.errors:
        raise SetupError(
            f"{target.name} returns errors: {', '.join(stats.errors)}",
            hint="run `toolscript doctor --index`, and `toolscript serve` to see its log",
        )


def _rotated(requests: Sequence[bytes], first: int) -> list[bytes]:
    """Return all requests, starting with the one at `first`."""
    start = first % len(requests)
    return [*requests[start:], *requests[:start]]


def require_folder(plot: Path | None) -> None:
    """Raise before measuring for minutes if the folder of the plot is missing."""
    if plot is not None and not plot.absolute().parent.is_dir():
        raise InvalidRequest(
            f"there is no folder {plot.absolute().parent}", hint="create it, or choose another file"
        )
