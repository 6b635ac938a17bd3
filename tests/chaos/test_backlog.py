"""A namespace with a long backlog to index delays the new tool of another one by seconds, not by the backlog."""

import asyncio
import subprocess
import time

import pytest

from benchmarks.other_constants import command
from tests.conftest import Installation
from tests.e2e.commands import environment, run
from toolscript.core.items import Item, ItemKind
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.tools.postgres.catalog import PostgresCatalog

pytestmark = [pytest.mark.requirement("SK-009"), pytest.mark.alone]
BATCH = 1_000
SOON_SECONDS = 10.0
WAITING = "SELECT count(*) FROM mcp.dirty_items WHERE namespace = %s"


def test_a_new_tool_is_indexed_before_the_backlog_of_another_namespace(installation: Installation) -> None:
    assert asyncio.run(_delay_behind(installation, 1_000))[1] > 0


@pytest.mark.nightly
def test_a_new_tool_waits_at_most_ten_seconds_behind_150_000_items(installation: Installation) -> None:
    seconds, left = asyncio.run(_delay_behind(installation, 150_000))
    assert left > 0
    assert seconds <= SOON_SECONDS


async def _delay_behind(installation: Installation, backlog: int) -> tuple[float, int]:
    """Return how long a tool waited for its index, and how many of the backlog waited then."""
    mine = installation.environment
    run(mine, "worker", "--drain")
    async with open_pool(mine["TOOLSCRIPT_POSTGRES_URL"], size=4) as pool:
        catalog = PostgresCatalog(pool)
        for start in range(0, backlog, BATCH):
            await catalog.of("busy").store("many", [_tool(number) for number in range(start, start + BATCH)])
        process = await asyncio.create_subprocess_exec(
            *command({}, "worker"), env=environment(mine), stderr=subprocess.DEVNULL
        )
        try:
            while await _waiting(pool, "busy") == backlog:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
            await catalog.of("calm").store("one", [_tool(1)])
            began = time.monotonic()
            while await _waiting(pool, "calm"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
            return time.monotonic() - began, await _waiting(pool, "busy")
        finally:
            process.terminate()
            await process.wait()


async def _waiting(pool: Pool, namespace: str) -> int:
    async with pool.connection() as conn:
        row = await (await conn.execute(WAITING, (namespace,))).fetchone()
    return int(str(row[0])) if row else 0


def _tool(number: int) -> Item:
    return Item(f"tool {number}", ItemKind.TOOL, "server", f"tool_{number}", f"Does the thing of number {number}.")
