"""Starts workers, ends them, and measures when others take over their claims."""

import asyncio
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection

from tests.chaos.kills import worker
from tests.chaos.kills.feeding import Feeding
from tests.chaos.kills.worker import Doom
from toolscript.core.postgres.pool import connection
from toolscript.core.settings.service import Settings
from toolscript.server.stores import Stores
from toolscript.tools.indexing.indexer import Step

WATCH_SECONDS = 0.02
PATIENCE_SECONDS = 120.0
AT_RANDOM = "at random"

_processes = multiprocessing.get_context("forkserver")
# Workers are forked from a process that has loaded all modules.
_processes.set_forkserver_preload([worker.__name__, "tests.chaos.kill_worker"])


class Mortal:
    """A worker process and its messages."""

    def __init__(self, settings: Settings, doom: Doom) -> None:
        self._hears, tells = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=worker.run, args=(settings, tells, doom), daemon=True)
        self._process.start()
        tells.close()
        self.token = ""

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send_signal(self, sign: int) -> None:
        os.kill(self._process.pid or 0, sign)

    async def until(self, *wanted: str) -> str:
        """Return the next of these messages; `gone` if the process has ended."""
        while (word := await self._next()) not in {*wanted, "gone"}:
            pass
        return word

    async def _next(self) -> str:
        try:
            word, message = await asyncio.to_thread(_receive, self._hears)
        except (EOFError, OSError):
            return "gone"
        self.token = message if word == "claimed" else self.token
        return str(word)

    async def end(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        await self.until()
        await asyncio.to_thread(self._process.join)
        self._hears.close()


def _receive(hears: Connection) -> tuple[str, str]:
    word, message = hears.recv()
    return word, message


@dataclass
class Seen:
    """`delays`: seconds until others held all claims of an ended worker, by its step; `idle` held none."""

    delays: dict[str, list[float]] = field(default_factory=dict)
    killed: int = 0
    stalled: int = 0
    idle: int = 0

    def all_delays(self) -> list[float]:
        return sorted(item for some in self.delays.values() for item in some)


class Kills:
    def __init__(
        self, settings: Settings, stores: Stores, feeding: Feeding, chance: random.Random, longest: float
    ) -> None:
        self._settings = settings
        self._feeding = feeding
        self._phase = ""
        self._stores = stores
        self._chance = chance
        self._longest = longest
        self._steps: Iterator[Step] = cycle(Step)
        self.seen = Seen()

    @asynccontextmanager
    async def survivors(self, count: int) -> AsyncIterator[None]:
        """Return the workers that are never killed and still run."""
        crew = [Mortal(self._settings, Doom()) for _ in range(count)]
        listening = [asyncio.create_task(item.until()) for item in crew]
        try:
            yield
            assert all(item.is_alive for item in crew), "a worker ended by itself"
        finally:
            for item, heard in zip(crew, listening, strict=True):
                item.send_signal(signal.SIGKILL)
                await heard
                await item.end()

    async def run(self, kills: int, stalls: int, lanes: int, phase: str = "") -> Seen:
        """Kill workers, half at named steps and half at random moments."""
        self._phase = phase
        fates = ["step", AT_RANDOM] * (kills // 2) + ["step"] * (kills % 2) + ["stall"] * stalls
        self._chance.shuffle(fates)
        waiting = iter(fates)

        async def lane() -> None:
            for number, fate in enumerate(waiting):
                await self._one(fate)
                if number % 10 == 0:
                    sys.stderr.write(f"{self.seen.killed} killed, {self.seen.stalled} stalled\n")

        await asyncio.gather(*(lane() for _ in range(lanes)))
        return self.seen

    async def _one(self, fate: str) -> None:
        if fate == AT_RANDOM:
            await self._kill_at_random()
        else:
            await self._stop_at(next(self._steps), signal.SIGSTOP if fate == "stall" else signal.SIGKILL)

    async def _kill_at_random(self) -> None:
        mortal = Mortal(self._settings, Doom())
        await self._fed_until(mortal, "claimed")
        listening = asyncio.create_task(mortal.until())
        await asyncio.sleep(self._chance.uniform(0.0, self._longest))
        mortal.send_signal(signal.SIGKILL)
        await listening
        await self._watch(mortal.token, AT_RANDOM)
        self.seen.killed += 1
        await mortal.end()

    async def _stop_at(self, step: Step, sign: int) -> None:
        mortal = Mortal(self._settings, Doom(step, self._chance.randint(1, 3), sign))
        await self._fed_until(mortal, "doomed")
        if sign == signal.SIGKILL:
            await mortal.until()
            await self._watch(mortal.token, step.value)
            self.seen.killed += 1
        else:
            await self._watch(mortal.token, f"stalled at {step.value}")
            # It wakes up and, unaware of the takeover, finishes its batch.
            mortal.send_signal(signal.SIGCONT)
            await mortal.until("cleared")
            self.seen.stalled += 1
        await mortal.end()

    async def _fed_until(self, mortal: Mortal, word: str) -> None:
        """Create work until this worker reaches the step: other workers take work, too."""
        assert await mortal.until("started") == "started", "a worker ended by itself"
        coming = asyncio.create_task(mortal.until(word))
        while not coming.done():
            if not self._phase:
                await self._feeding.change_some()
            await asyncio.wait([coming], timeout=1.0)
        assert await coming == word, "a worker ended by itself"

    async def _watch(self, token: str, where: str) -> None:
        began = time.monotonic()
        if not await self._held(token):
            self.seen.idle += 1
            return
        while await self._held(token):
            assert time.monotonic() - began < PATIENCE_SECONDS, f"nobody takes over a batch ({where})"
            await asyncio.sleep(WATCH_SECONDS)
        self.seen.delays.setdefault(self._phase or where, []).append(time.monotonic() - began)

    async def _held(self, token: str) -> bool:
        query = "SELECT EXISTS (SELECT FROM mcp.dirty_items WHERE held_by = %s)"
        async with connection(self._stores.pool) as conn:
            row = await (await conn.execute(query, (token,))).fetchone()
        return bool(row and row[0])
