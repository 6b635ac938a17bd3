"""Workers killed at named steps and at random moments beside one that lives; then catalog and index compared.

By hand, on any catalog and the engines of the environment, in a database and under aliases of their own (removed
at the end):

    python -m tests.chaos.kill_worker --catalog CATALOG.jsonl --kills 500
"""

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.other_constants import command
from tests.chaos.kills.feeding import SOURCE, Feeding
from tests.chaos.kills.run import Kills, Seen
from tests.chaos.kills.worker import HASH, embedder_of
from tests.chaos.worker_that_dies import FRAGILE
from tests.conftest import fresh_database, fresh_installation
from tests.e2e.commands import environment, run
from toolscript.core.items import Item
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.settings.service import Settings
from toolscript.server.indexing import LEASE_SECONDS
from toolscript.server.skills import load_default_skills
from toolscript.server.stores import Stores, open_stores
from toolscript.tools.catalog.files import read_items
from toolscript.tools.indexing.doctor import Doctor, DoctorReport
from toolscript.tools.indexing.indexer import Step
from toolscript.tools.indexing.versions import Opened, open_for_writing

ROOT = Path(__file__).parent.parent.parent
PAGE = 500
DRAIN_SECONDS = 1800.0


@dataclass(frozen=True)
class Plan:
    kills: int
    stalls: int = 0
    lanes: int = 3
    survivors: int = 1
    longest: float = 3.0
    seed: int = 0
    while_loading: int = 0


@dataclass(frozen=True)
class Outcome:
    seen: Seen
    examined: DoctorReport
    items: int
    changes: int


async def kill_and_compare(settings: Settings, items: Sequence[Item], plan: Plan) -> Outcome:
    """Kill workers during the first indexing, and while the catalog changes."""
    chance = random.Random(plan.seed)
    async with AsyncExitStack() as stack:
        embedder = await stack.enter_async_context(embedder_of(settings))
        stores = await stack.enter_async_context(open_stores(settings))
        await _store(stores, items)
        opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(embedder.model))
        feeding = Feeding(stores, items, chance)
        kills = Kills(settings, stores, feeding, chance, plan.longest)
        async with kills.survivors(plan.survivors):
            await kills.run(plan.while_loading, 0, plan.lanes, "while all were busy")
            await _until_followed(stores, opened)
            seen = await kills.run(plan.kills - plan.while_loading, plan.stalls, plan.lanes)
            await _until_followed(stores, opened)
        examined = await Doctor(stores.catalog, stores.dirty, stores.skill_vectors, opened).examine()
    return Outcome(seen, examined, feeding.active, feeding.changes)


async def _store(stores: Stores, items: Sequence[Item]) -> None:
    for first in range(0, len(items), PAGE):
        await stores.catalog.store(SOURCE, items[first : first + PAGE])


async def _until_followed(stores: Stores, opened: Opened) -> None:
    index_version, ends_at = opened.index_version.id, time.monotonic() + DRAIN_SECONDS
    while (left := (await stores.dirty.pending(index_version)).total) or await stores.skill_vectors.behind(
        index_version, 1
    ):
        assert time.monotonic() < ends_at, f"{left} items are never followed"
        await asyncio.sleep(0.2)


def kill_at_random(extra: Mapping[str, str], kills: int, longest: float, seed: int) -> int:
    """Start and kill `toolscript worker` after random times; return the number of actual kills."""
    chance = random.Random(seed)
    killed = 0
    for _ in range(kills):
        worker = subprocess.Popen(
            command(FRAGILE, "worker", "--drain"),
            env=environment(extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            worker.communicate(timeout=chance.uniform(0.3, longest))
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
            killed += 1
    return killed


def kill_at_step(extra: Mapping[str, str], step: Step, times: int = 1) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.worker_that_dies", step.value, str(times)],
        env=environment(extra),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, f"it was to die at {step}: {done.returncode} {done.stderr}"


def examine(extra: Mapping[str, str]) -> dict[str, object]:
    result: dict[str, object] = json.loads(run(extra, "doctor", "--index", "--json").stdout)
    return result


def told(outcome: Outcome) -> str:
    seen, delays = outcome.seen, outcome.seen.all_delays()
    lines = [
        f"{seen.killed} killed, {seen.stalled} stalled and woken; {seen.idle} of them held nothing at that moment",
        f"{outcome.items} items at the end, {outcome.changes} changes meanwhile",
        *(f"  {where:22} {_figures(sorted(some))}" for where, some in sorted(seen.delays.items())),
        f"seconds until another worker had the batch: {_figures(delays)}",
        f"doctor: {json.dumps(asdict(outcome.examined))}",
    ]
    return "\n".join(lines)


def _figures(delays: Sequence[float]) -> str:
    p50, p99 = statistics.median(delays), delays[min(len(delays) - 1, int(len(delays) * 0.99))]
    return f"{len(delays)} batches, p50 {p50:.2f}, p99 {p99:.2f}, max {delays[-1]:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, required=True, help="JSON lines, as `toolscript sync` reads them")
    parser.add_argument("--kills", type=int, default=500, help="half at named steps, half at random moments")
    parser.add_argument(
        "--stalls", type=int, default=0, help="stopped at a step, and woken when the batch is gone"
    )
    parser.add_argument("--lanes", type=int, default=3, help="how many doomed workers there are at once")
    parser.add_argument("--survivors", type=int, default=1, help="how many workers are never killed")
    parser.add_argument("--longest", type=float, default=3.0, help="seconds until a kill at random, at the most")
    parser.add_argument(
        "--while-loading", type=int, default=0, help="how many of them while all is first followed"
    )
    parser.add_argument("--model", default=HASH, help="`hash` takes no time; else the name or folder of a model")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    items = [item for item in read_items(arguments.catalog) if isinstance(item, Item)]
    plan = Plan(
        arguments.kills,
        arguments.stalls,
        arguments.lanes,
        arguments.survivors,
        arguments.longest,
        arguments.seed,
        arguments.while_loading,
    )
    sys.stderr.write(f"{len(items)} items, {plan}\n")
    engines = Settings()
    with fresh_database(engines, "template1") as url:
        upgrade(url)
        with fresh_installation(engines, url, arguments.model) as fresh:
            load_default_skills(fresh.settings)
            outcome = asyncio.run(kill_and_compare(fresh.settings, items, plan))
    sys.stdout.write(f"seed {arguments.seed}, model {arguments.model}, lease {LEASE_SECONDS} s\n")
    sys.stdout.write(f"{told(outcome)}\n")
    return 0 if outcome.examined.healthy and not outcome.examined.pending else 1


if __name__ == "__main__":
    sys.exit(main())
