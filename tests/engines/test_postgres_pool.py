"""The pool of connections: requests are cancelled at any moment, and the database comes and goes."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest

from toolscript.core.errors import CatalogUnavailable
from toolscript.core.postgres.pool import Pool, connection, open_pool, transaction
from toolscript.core.postgres.schema import require_current_schema
from toolscript.core.retrieval.deadline import Deadline
from toolscript.core.settings.service import Settings

SIZE, CLIENTS, ROUNDS = 4, 40, 60


@pytest.fixture
async def small_pool(engines: Settings, postgres_url: str) -> AsyncIterator[Pool]:
    """Of PostgreSQL itself, whatever stands before it."""
    own = engines.postgres_url.get_secret_value().rpartition("/")[0] + "/" + postgres_url.rpartition("/")[2]
    async with open_pool(own, size=SIZE, wait_seconds=30) as pool:
        await _use_all(pool)
        yield pool


async def _ask(pool: Pool) -> None:
    async with connection(pool) as conn:
        await conn.execute("SELECT 1")


async def _use_all(pool: Pool) -> None:
    """At the same moment: whoever has a connection keeps it until all have one."""
    all_of_them = asyncio.Barrier(SIZE)

    async def use() -> None:
        async with connection(pool) as conn:
            await conn.execute("SELECT 1")
            await all_of_them.wait()

    async with asyncio.timeout(60):
        await asyncio.gather(*(use() for _ in range(SIZE)))


async def _ask_in_transaction(pool: Pool) -> None:
    async with transaction(pool) as conn:
        await conn.execute("SELECT 1")


def _held(pool: Pool) -> int:
    """Connections that are neither idle nor with anybody: nobody asks while this is called."""
    stats = pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


async def _let_others_go_on(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def _until_all_are_back(pool: Pool) -> None:
    async with asyncio.timeout(30):
        while _held(pool):  # noqa: ASYNC110 - the pool tells nobody
            await asyncio.sleep(0.01)


async def test_no_connection_is_lost_whenever_a_request_is_cancelled(small_pool: Pool) -> None:
    """In one order after another: who waits for a connection, and in the next moment who hands one over to it."""
    chance = random.Random(1)
    for _ in range(ROUNDS):
        asking = [asyncio.create_task(_ask(small_pool)) for _ in range(CLIENTS)]
        await _let_others_go_on(chance.randrange(30))
        for task in chance.sample(asking, CLIENTS):
            task.cancel()
            await _let_others_go_on(chance.randrange(4))
        await asyncio.gather(*asking, return_exceptions=True)
    await _until_all_are_back(small_pool)
    await _use_all(small_pool)


async def test_no_connection_is_lost_to_deadlines(small_pool: Pool) -> None:
    chance = random.Random(2)

    async def search() -> None:
        with suppress(TimeoutError, CatalogUnavailable):
            await Deadline(chance.uniform(0, 0.05)).spend(1.0, _ask_in_transaction(small_pool))

    for _ in range(10):
        await asyncio.gather(*(search() for _ in range(CLIENTS * 2)))
    await _until_all_are_back(small_pool)


async def test_connections_that_were_closed_while_nobody_used_them_harm_no_request(
    small_pool: Pool, engines: Settings
) -> None:
    """As a database that was started again leaves a full pool, or a firewall that ends what is idle."""
    with psycopg.connect(engines.postgres_url.get_secret_value(), autocommit=True) as other:
        # Waits for each of them to be gone. An autovacuum is not ours to end.
        ended = other.execute(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 30000)) FROM pg_stat_activity "
            "WHERE datname = %s AND usename = current_user",
            (str(small_pool.conninfo).rpartition("/")[2],),
        ).fetchone()
    assert ended == (SIZE,)
    await _use_all(small_pool)
    await _until_all_are_back(small_pool)
    assert small_pool.get_stats()["pool_size"] == SIZE


async def test_a_start_waits_longer_than_a_request_for_a_database_that_lets_it_in(postgres_url: str) -> None:
    async with open_pool(postgres_url, size=1, wait_seconds=0.2) as pool:
        await require_current_schema(pool)

        async def hold() -> None:
            async with connection(pool):
                held.set()
                await asyncio.sleep(0.6)

        held = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(hold())
            await held.wait()
            with pytest.raises(CatalogUnavailable):
                await _ask(pool)
            await require_current_schema(pool)
