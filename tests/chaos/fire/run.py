"""Workers on the real engines under random operations, killed at random; then all state is compared with a model.

By hand, in a database and under aliases of its own (made from those of the environment, and removed at the end):

    python -m tests.chaos.fire.run --operations 200000 --workers 4 --kills 100 --seed 7
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.chaos.fire.comparison import Comparison
from tests.chaos.fire.model import Model
from tests.chaos.fire.operations import Operation, Operations
from tests.chaos.fire.topics import GROUPS, topic
from tests.conftest import fresh_database, fresh_installation
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.settings.service import Settings
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.versions import Opened, open_for_writing

PATIENCE_SECONDS = 300.0


class Workers:
    def __init__(self, environment: dict[str, str], count: int) -> None:
        self._environment = {**os.environ, **environment}
        self._count = count
        self._running: list[asyncio.subprocess.Process] = []
        self.killed = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            self._running = [await self._start() for _ in range(self._count)]
            yield
        finally:
            for item in self._running:
                await self._end(item)

    async def kill(self, number: int) -> None:
        dead = self._running[number % self._count]
        assert dead.returncode is None, f"a worker ended by itself: {dead.returncode}"
        await self._end(dead)
        self._running[number % self._count] = await self._start()
        self.killed += 1

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.fire.worker", env=self._environment
        )

    @staticmethod
    async def _end(one: asyncio.subprocess.Process) -> None:
        if one.returncode is None:
            one.send_signal(signal.SIGKILL)
        await one.wait()


class Fire:
    def __init__(self, stores: Stores, opened: Opened, workers: Workers, seed: int, items: int) -> None:
        self._stores = stores
        self._opened = opened
        self._workers = workers
        self._chance = random.Random(seed)
        self.model = Model()
        self.operations = Operations(stores, self.model, self._chance, items)

    async def begin(self) -> None:
        for group in range(GROUPS):
            await self.operations.add_skill(topic(group, 0))

    async def round(self, count: int, kills: int) -> None:
        planned = self.operations.round(count)
        longest = max(planned.lanes, key=len)
        for moment in self._chance.sample(range(len(longest)), kills):
            longest.insert(moment, self._kill(self._chance.randrange(1000)))
        await asyncio.gather(*(_one_by_one(lane) for lane in planned.lanes))
        await self.settle()

    def _kill(self, number: int) -> Operation:
        async def run() -> None:
            await self._workers.kill(number)

        return run

    async def settle(self) -> None:
        index_version, ends_at = self._opened.index_version.id, time.monotonic() + PATIENCE_SECONDS
        while (await self._stores.dirty.pending(index_version)).total or await self._stores.skill_vectors.behind(
            index_version, 1
        ):
            assert time.monotonic() < ends_at, "the workers do not come to an end"
            await asyncio.sleep(0.1)

    async def differences(self) -> list[str]:
        return await Comparison(self._stores, self._opened, self.model).differences()


async def _one_by_one(lane: list[Operation]) -> None:
    for operation in lane:
        await operation()


@asynccontextmanager
async def on_fire(
    settings: Settings, environment: dict[str, str], workers: int, seed: int, items: int
) -> AsyncIterator[Fire]:
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_stores(settings))
        card = IndexCard(HashEmbedder().model)
        opened = await open_for_writing(stores.indexes, stores.dirty, card)
        crew = Workers(environment, workers)
        await stack.enter_async_context(crew.running())
        fire = Fire(stores, opened, crew, seed, items)
        await fire.begin()
        yield fire


async def burn(settings: Settings, environment: dict[str, str], given: argparse.Namespace) -> list[str]:
    async with on_fire(settings, environment, given.workers, given.seed, given.items) as fire:
        size, started = given.operations // given.rounds, time.monotonic()
        for number in range(given.rounds):
            due = given.kills * (number + 1) // given.rounds - given.kills * number // given.rounds
            await fire.round(size, due)
            sys.stderr.write(
                f"round {number + 1} of {given.rounds} after {time.monotonic() - started:.0f} s:"
                f" {sum(fire.operations.done.values())} operations, {len(fire.model.items)} items\n"
            )
            is_time = (number + 1) % given.compare_every == 0 or number + 1 == given.rounds
            if is_time and (result := await fire.differences()):
                return result
        sys.stdout.write(f"{dict(sorted(fire.operations.done.items()))}\n")
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--items", type=int, default=5_000, help="how many different items there can be")
    parser.add_argument("--compare-every", type=int, default=10, help="rounds between two comparisons")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    sys.stderr.write(f"seed {arguments.seed}\n")
    engines = Settings()
    with fresh_database(engines, "template1") as url:
        upgrade(url)
        with fresh_installation(engines, url, "hash") as fresh:
            result = asyncio.run(burn(fresh.settings, fresh.environment, arguments))
    sys.stdout.write("\n".join(result[:40]) + f"\nseed {arguments.seed}: {len(result)} differences\n")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
