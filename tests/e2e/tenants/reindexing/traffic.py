"""Searches and writes at a steady rate (open loop)."""

import asyncio
import contextlib
import itertools
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2

from tests.e2e.tenants.reindexing.world import World

PROBES = 3
TELL_EVERY_SECONDS = 30.0
Shown = tuple[tuple[str, float], ...]


@dataclass
class Seen:
    """`milliseconds`: latency of searches from the time they were due."""

    milliseconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    failed_writes: list[str] = field(default_factory=list)
    answers: list[tuple[tuple[str, str], Shown]] = field(default_factory=list)
    puts: int = 0
    deletes: int = 0

    @property
    def p95(self) -> float:
        return quantiles(self.milliseconds, n=20)[-1]


class Traffic:
    """Half of the searches are probes of tenants without writes, so that the expected answers are known."""

    def __init__(self, client: httpx2.AsyncClient, tokens: Mapping[str, str], world: World) -> None:
        self._client = client
        self._headers = {tenant: {"authorization": f"Bearer {token}"} for tenant, token in tokens.items()}
        self._world = world
        self._chance = random.Random(1)
        self._written = 0
        self._writing = set[tuple[str, str]]()
        self.probes = [
            (tenant, " ".join(self._chance.choices(world.words, k=6)))
            for tenant in world.still
            for _ in range(PROBES)
        ]
        self.seen = Seen()

    async def probed(self) -> dict[tuple[str, str], Shown]:
        return {probe: await self._find(*probe) for probe in self.probes}

    @asynccontextmanager
    async def running(self, searches: float, writes: float) -> AsyncIterator[Seen]:
        """Run the traffic with fresh counts, until the block ends."""
        self.seen = seen = Seen()
        ended = asyncio.Event()
        loops = [
            asyncio.create_task(_at_rate(searches, self._search, ended)),
            asyncio.create_task(_at_rate(writes, self._write, ended)),
            asyncio.create_task(_told(seen, ended)),
        ]
        try:
            yield seen
        finally:
            ended.set()
            await asyncio.gather(*loops)

    async def _search(self, due: float) -> None:
        seen = self.seen
        is_probe = self._chance.random() < 0.5
        tenant, query = self._chance.choice(self.probes)
        if not is_probe:
            tenant = self._chance.choice(self._world.busy)
        try:
            result = await self._find(tenant, query)
        except (httpx2.HTTPError, AssertionError) as error:
            seen.failed.append(f"{type(error).__name__} {error}"[:300])
            return
        seen.milliseconds.append((time.perf_counter() - due) * 1000)
        if is_probe:
            seen.answers.append(((tenant, query), result))

    async def _find(self, tenant: str, query: str) -> Shown:
        body = {"query": query, "search_type": "semantic", "top_k": 3}
        answer = await self._client.post("/search", json=body, headers=self._headers[tenant])
        result: dict[str, Any] = answer.json()
        assert answer.status_code == 200, answer.text
        assert result["hits"], answer.text
        assert not result.get("degraded"), answer.text
        return tuple((str(hit["doc_id"]), round(float(hit["score"]), 4)) for hit in result["hits"])

    async def _write(self, _due: float) -> None:
        """Create, update or remove one document, retrying until it succeeds."""
        tenant = self._chance.choice(self._world.busy)
        texts = self._world.texts[tenant]
        kind = self._chance.random()
        self._written += 1
        id_ = f"new{self._written}" if kind < 0.5 else self._chance.choice(sorted(texts))
        if (tenant, id_) in self._writing:
            return
        self._writing.add((tenant, id_))
        text = None if kind > 0.8 else self._world.text()
        for pause in itertools.repeat(0.2):
            if await self._written_once(tenant, id_, text):
                break
            await asyncio.sleep(pause)
        self._writing.discard((tenant, id_))
        if text is None:
            texts.pop(id_, None)
            self.seen.deletes += 1
        else:
            texts[id_] = text
            self.seen.puts += 1

    async def _written_once(self, tenant: str, id_: str, text: str | None) -> bool:
        method, body = (
            ("DELETE", {"ids": [id_]}) if text is None else ("PUT", {"documents": [{"id": id_, "text": text}]})
        )
        try:
            answer = await self._client.request(method, "/documents", json=body, headers=self._headers[tenant])
        except httpx2.HTTPError as error:
            self.seen.failed_writes.append(f"{type(error).__name__} {error}"[:300])
            return False
        if answer.status_code != 200:
            self.seen.failed_writes.append(answer.text[:300])
        return answer.status_code == 200


async def _told(seen: Seen, ended: asyncio.Event) -> None:
    """Print progress periodically, with the CPU time stolen by other virtual machines."""
    began = time.perf_counter()
    while not ended.is_set():
        searches, failed, (stolen, all_time) = len(seen.milliseconds), len(seen.failed), _processor_time()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), TELL_EVERY_SECONDS)
        lately = seen.milliseconds[searches:]
        p95 = quantiles(lately, n=20)[-1] if len(lately) > 1 else float("nan")
        stolen_since, since = (
            now - before for now, before in zip(_processor_time(), (stolen, all_time), strict=True)
        )
        sys.stderr.write(
            f"after {time.perf_counter() - began:.0f} s: {len(lately)} searches, p95 {p95:.0f} ms, "
            f"{len(seen.failed) - failed} failed; {100 * stolen_since / max(1, since):.0f} % taken by the host\n"
        )


def _processor_time() -> tuple[int, int]:
    """Return stolen and total CPU time in ticks; 0 where the system does not report it."""
    try:
        ticks = [int(part) for part in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]]
    except OSError:
        return 0, 0
    return ticks[7], sum(ticks)


async def _at_rate(rate: float, work: Callable[[float], Awaitable[None]], ended: asyncio.Event) -> None:
    """Start each when it is due, without waiting for the previous one; wait for all at the end."""
    tasks = set[asyncio.Task[None]]()
    began, number = time.perf_counter(), 0
    while not ended.is_set():
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.ensure_future(work(due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)
