"""Proposals are made by one of all processes, and by another one when that is gone."""

import asyncio
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from tests.conftest import Installation
from toolscript.server import proposing

EVERY = 0.05
LATE = 60.0
# Of this database alone: other tests run beside.
END_THEM = """
SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

Runs = Counter[asyncio.Task[object] | None]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Count the commands of each process."""
    counted = Runs()

    async def run(_name: str) -> int:
        counted[asyncio.current_task()] += 1
        return 0

    monkeypatch.setattr(proposing, "run_skills_command", run)
    return counted


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LATE):
        while not holds():  # noqa: ASYNC110 - a count has no event
            await asyncio.sleep(EVERY)


async def test_one_process_proposes_and_another_takes_over(installation: Installation, runs: Runs) -> None:
    processes = [asyncio.create_task(proposing.propose_every(EVERY, installation.settings)) for _ in range(3)]
    try:
        await _until(lambda: runs.total() >= 10)
        (first,) = runs
        await _cancelled(first)
        await _until(lambda: len(runs) == 2)
    finally:
        for process in processes:
            await _cancelled(process)


async def test_a_process_that_lost_its_connection_begins_again(installation: Installation, runs: Runs) -> None:
    process = asyncio.create_task(proposing.propose_every(EVERY, installation.settings))
    try:
        await _until(lambda: runs.total() >= 2)
        with psycopg.connect(installation.environment["TOOLSCRIPT_POSTGRES_URL"]) as conn:
            assert conn.execute(END_THEM).fetchone() == (1,)
        seen = runs.total()
        await _until(lambda: runs.total() >= seen + 6)
    finally:
        await _cancelled(process)


async def _cancelled(task: asyncio.Task[object] | None) -> None:
    assert task is not None
    task.cancel()
    await asyncio.wait({task})
