"""The connection pool: requests are cancelled at any moment, and the database restarts."""

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
    """A pool to PostgreSQL itself, without a proxy."""
    own = engines.postgres_url.get_secret_value().rpartition("/")[0] + "/" + postgres_url.rpartition("/")[2]
    async with open_pool(own, size=SIZE, wait_seconds=30) as pool:
        await _use_all(pool)
        yield pool


async def _query(pool: Pool) -> None:
    async with connection(pool) as conn:
        await conn.execute("SELECT 1")


async def _use_all(pool: Pool) -> None:
    """Use all connections at once: each is held until all are in use."""
    all_of_them = asyncio.Barrier(SIZE)

    async def use() -> None:
        async with connection(pool) as conn:
            await conn.execute("SELECT 1")
            await all_of_them.wait()

    async with asyncio.timeout(60):
        await asyncio.gather(*(use() for _ in range(SIZE)))


async def _query_in_transaction(pool: Pool) -> None:
    async with transaction(pool) as conn:
        await conn.execute("SELECT 1")


def _held(pool: Pool) -> int:
    """Return the number of connections that are neither idle nor in use; called without concurrent requests."""
    stats = pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


async def _yield_to_others(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def _until_all_are_returned(pool: Pool) -> None:
    async with asyncio.timeout(30):
        while _held(pool):  # noqa: ASYNC110 - the pool has no event for it
            await asyncio.sleep(0.01)


async def test_no_connection_is_lost_whenever_a_request_is_cancelled(small_pool: Pool) -> None:
    """Cancel in every order: the request that waits for a connection, and then the one that returns it."""
    chance = random.Random(1)
    for _ in range(ROUNDS):
        queries = [asyncio.create_task(_query(small_pool)) for _ in range(CLIENTS)]
        await _yield_to_others(chance.randrange(30))
        for task in chance.sample(queries, CLIENTS):
            task.cancel()
            await _yield_to_others(chance.randrange(4))
        await asyncio.gather(*queries, return_exceptions=True)
    await _until_all_are_returned(small_pool)
    await _use_all(small_pool)


async def test_no_connection_is_lost_to_deadlines(small_pool: Pool) -> None:
    chance = random.Random(2)

    async def search() -> None:
        with suppress(TimeoutError, CatalogUnavailable):
            await Deadline(chance.uniform(0, 0.05)).spend(1.0, _query_in_transaction(small_pool))

    for _ in range(10):
        await asyncio.gather(*(search() for _ in range(CLIENTS * 2)))
    await _until_all_are_returned(small_pool)


async def test_idle_connections_closed_by_the_server_fail_no_request(small_pool: Pool, engines: Settings) -> None:
    """As after a restart of the database, or a firewall that closes idle connections."""
    with psycopg.connect(engines.postgres_url.get_secret_value(), autocommit=True) as other:
        # Waits for each backend to end, except autovacuum workers.
        ended = other.execute(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 30000)) FROM pg_stat_activity "
            "WHERE datname = %s AND usename = current_user",
            (str(small_pool.conninfo).rpartition("/")[2],),
        ).fetchone()
    assert ended == (SIZE,)
    await _use_all(small_pool)
    await _until_all_are_returned(small_pool)
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
                await _query(pool)
            await require_current_schema(pool)
