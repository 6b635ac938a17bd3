"""Bursts far above the capacity of `serve`, and calm after them: refusals, responses and leftovers.

By hand, in a database and under aliases of its own (made from those of the environment, and removed at the end).
It goes to 127.0.0.1 only and ends by itself:

    python -m tests.chaos.bursts --bursts 10 --seconds 5 --items 2000
"""

import argparse
import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import httpx2

from benchmarks.open_loop import Answer, OpenLoop, Run, Schedule
from benchmarks.search import Child, HttpLine, read_answer, search_request
from tests.conftest import fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import environment, run_here, until_listening
from tests.support.reserved_ports import reserved_port
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.settings.service import Settings
from toolscript.tools.model.query import Strategy

LINES, FEW_LINES = 256, 8
TIMES_CAPACITY = 3.0
CALM_SHARE = 0.25
WARM_UP_SECONDS = 8.0
PEAK_SECONDS, CALM_SECONDS, BACK_WITHIN_SECONDS = 3.0, 4.0, 5.0
WINDOW_SECONDS, SLOW = 0.25, 2.0
REFUSED = "refused"
EMPTY = re.compile(rb'"final_count":0\b')
BUCKET = re.compile(r'admission_refusal_seconds_bucket\{kind="read",le="([^"]+)"\} ([0-9.e+]+)')


@dataclass
class Report:
    """`calm_ms`: p95 before each burst. `back_ms`: p95 from five seconds after the last one.

    `back_after`: seconds from the end of the last burst to the last moment with a fault or a slow response.
    `memory_mb`: before the first burst, and the most in any.
    """

    peaks: list[float] = field(default_factory=list)
    goodputs: list[float] = field(default_factory=list)
    calm_ms: list[float] = field(default_factory=list)
    back_ms: float = 0.0
    back_after: float = 0.0
    memory_mb: tuple[float, float] = (0.0, 0.0)
    outcomes: Counter[str] = field(default_factory=Counter)
    refused_within_10_ms: float = 0.0
    refused_client_p95_ms: list[float] = field(default_factory=list)
    refusal_cpu_ms: list[float] = field(default_factory=list)
    pools: list[dict[str, int]] = field(default_factory=list)

    @property
    def goodput_share(self) -> float:
        return sum(self.goodputs) / sum(self.peaks)

    @property
    def back_ratio(self) -> float:
        return self.back_ms / median(self.calm_ms)

    @property
    def pools_are_whole(self) -> bool:
        return bool(self.pools) and all(
            pool["pool_size"] == pool["pool_available"] and not pool["requests_waiting"] for pool in self.pools
        )

    def __str__(self) -> str:
        return "\n".join(
            (
                f"peak: {median(self.peaks):.0f}/s, bursts at {TIMES_CAPACITY:g} times that",
                f"goodput in bursts: {self.goodput_share:.0%} of peak",
                f"outcomes in bursts: {dict(self.outcomes)}",
                f"refusals within 10 ms in the server: {self.refused_within_10_ms:.2%}",
                f"refusals p95 at the client: {median(self.refused_client_p95_ms):.1f} ms",
                f"processor time of a refusal, about: {median(self.refusal_cpu_ms):.2f} ms",
                f"p95 calm: {median(self.calm_ms):.0f} ms; after the bursts: {self.back_ratio:.2f} times that",
                f"back to normal after: {self.back_after:.2f} s",
                f"memory: {self.memory_mb[0]:.0f} MB before, at most {self.memory_mb[1]:.0f} MB",
                f"pools: {self.pools}",
            )
        )


def read(message: bytes) -> Answer:
    """Parse a response. A refusal must be marked as such; a degraded answer is not an empty one."""
    answer = read_answer(message)
    head, _, body = message.partition(b"\r\n\r\n")
    if answer.fault == "status 503" and b"\r\nretry-after: " in head.lower() and b'"UNAVAILABLE"' in body:
        return Answer(REFUSED)
    if answer.fault == "degraded" and EMPTY.search(body):
        return Answer("empty")
    return answer


@dataclass
class Bursts:
    child: Child
    requests: Sequence[bytes]
    told: Path
    report: Report = field(default_factory=Report)
    _lines: list[HttpLine] = field(default_factory=list)
    _asked: int = 0

    async def run(self, bursts: int, seconds: float) -> Report:
        self._lines = [HttpLine(self.child.port, read) for _ in range(LINES)]
        # Until lazily loaded modules are loaded.
        await self._load(10.0, WARM_UP_SECONDS)
        memory = self.child.memory_mb()
        try:
            for _ in range(bursts):
                await self._burst(seconds)
            await self._calm_again()
            self.report.memory_mb = (memory, self.child.memory_mb("VmHWM"))
        finally:
            for line in self._lines:
                line.close()
        await self._look()
        return self.report

    async def _burst(self, seconds: float) -> None:
        report = self.report
        before = self.child.cpu_seconds()
        # A closed loop of a few clients.
        peak = await self._load(2_000.0, PEAK_SECONDS, lines=FEW_LINES, patience=0.0)
        answered = sum(not item.fault for item in peak.requests)
        each = (self.child.cpu_seconds() - before) / answered
        report.peaks.append(answered / PEAK_SECONDS)
        calm = await self._load(CALM_SHARE * report.peaks[-1], CALM_SECONDS)
        report.calm_ms.append(_p95([item.done - item.due for item in calm.requests]))
        before = self.child.cpu_seconds()
        burst = await self._load(TIMES_CAPACITY * report.peaks[-1], seconds)
        spent = self.child.cpu_seconds() - before
        good = [item for item in burst.requests if not item.fault]
        refused = [item for item in burst.requests if item.fault == REFUSED]
        report.goodputs.append(sum(item.done <= burst.began + seconds for item in good) / seconds)
        report.outcomes.update(item.fault or "whole" for item in burst.requests)
        if refused:
            report.refused_client_p95_ms.append(_p95([item.done - item.due for item in refused]))
            report.refusal_cpu_ms.append(max(0.0, spent - each * len(good)) * 1000 / len(refused))

    async def _calm_again(self) -> None:
        rate = CALM_SHARE * median(self.report.peaks)
        calm = await self._load(rate, BACK_WITHIN_SECONDS + CALM_SECONDS)
        later = [item for item in calm.requests if item.due >= calm.began + BACK_WITHIN_SECONDS]
        assert not any(item.fault for item in later), Counter(item.fault for item in later)
        self.report.back_ms = _p95([item.done - item.due for item in later])
        self.report.back_after = self._last_disturbance(calm)

    def _last_disturbance(self, calm: Run) -> float:
        """Return the end of the last window with a fault, or with a median above twice the p95 of before."""
        windows: dict[int, list[float]] = {}
        for item in calm.requests:
            waited = math.inf if item.fault else item.done - item.due
            windows.setdefault(int((item.due - calm.began) / WINDOW_SECONDS), []).append(waited)
        slow = SLOW * median(self.report.calm_ms) / 1000
        disturbed = [number for number, times in windows.items() if median(times) > slow or math.inf in times]
        return (max(disturbed) + 1) * WINDOW_SECONDS if disturbed else 0.0

    async def _load(self, rate: float, seconds: float, *, lines: int = LINES, patience: float = 15.0) -> Run:
        first = self._asked % len(self.requests)
        loop = OpenLoop(
            self._lines[:lines], (*self.requests[first:], *self.requests[:first]), patience_seconds=patience
        )
        run = await loop.run(Schedule(rate, seconds))
        self._asked += sum(request.sent is not None for request in run.requests)
        return run

    def _said(self) -> str:
        while not (message := self.told.read_text() if self.told.exists() else "").endswith("\n"):
            time.sleep(0.05)
        return message

    async def _look(self) -> None:
        """Sample the pools. A connection returns to its pool shortly after use."""
        for _ in range(20):
            self.told.unlink(missing_ok=True)
            os.kill(self.child.pid, signal.SIGUSR1)
            message = await asyncio.to_thread(self._said)
            self.report.pools = [json.loads(line) for line in message.splitlines()]
            if self.report.pools_are_whole:
                break
            await asyncio.sleep(0.1)
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            page = (await client.get(f"http://127.0.0.1:{self.child.port}/metrics")).text
        buckets = {edge: float(count) for edge, count in BUCKET.findall(page)}
        self.report.refused_within_10_ms = buckets["0.01"] / max(1.0, buckets["+Inf"])


def _p95(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=20, method="inclusive")[-1] * 1000


@contextmanager
def watched_server(settings: dict[str, str]) -> Iterator[tuple[Child, Path]]:
    """Run a server that embeds every query, without a cache."""
    extra = {
        **settings,
        "TOOLSCRIPT_METRICS": "true",
        # Metrics are for administrators.
        "TOOLSCRIPT_ENVIRONMENT": "development",
    }
    with reserved_port() as port, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        output = Path(folder, "pools")
        command = [sys.executable, "-m", "tests.chaos.watched_serve", str(port), str(output)]
        process = subprocess.Popen(command, env=environment(extra), stderr=log)
        try:
            until_listening(process, port, log)
            yield Child(process.pid, port), output
        finally:
            process.terminate()
            process.wait(60)


def measured(settings: dict[str, str], bursts: int, seconds: float) -> Report:
    texts = [f"{row['description']} number {index}" for index, row in enumerate(catalog_files.rows(2_000))]
    requests = [search_request(text, Strategy.HIERARCHICAL) for text in texts]
    with watched_server(settings) as (child, output):
        return asyncio.run(Bursts(child, requests, output).run(bursts, seconds))


def fill(settings: dict[str, str], items: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = catalog_files.write(Path(folder, "items.jsonl"), catalog_files.rows(items))
        run_here(settings, "sync", str(file))
        run_here(settings, "worker", "--drain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bursts", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each burst is")
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--model", default=Settings().embedding_model)
    arguments = parser.parse_args()
    engines, started = Settings(), time.monotonic()
    with fresh_database(engines, "template1") as url:
        upgrade(url)
        with fresh_installation(engines, url, arguments.model) as fresh:
            fill(fresh.environment, arguments.items)
            report = measured(fresh.environment, arguments.bursts, arguments.seconds)
    sys.stdout.write(f"{report}\n{arguments.bursts} bursts, {time.monotonic() - started:.0f} s in all\n")


if __name__ == "__main__":
    main()
