"""The log of tool searches in the database: partitions, races, outages and bounded waits."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg
import pytest

from tests.contracts.search_log_builders import LONG_AGO, NOW, logged, missed
from tests.engines.postgres_stores import rows_read, sent, through_a_relay
from tests.support.faults import Fault
from tests.unit.core.observability.queued_log_builders import SOON, Losses
from toolscript.core.errors import CatalogUnavailable, SetupError
from toolscript.core.observability.queued_log import BATCH, QueuedLog
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.server.search_log import keep_search_log
from toolscript.tools.model.search_log import LoggedSearch, SearchFilter
from toolscript.tools.postgres.search_log import AHEAD_DAYS, MAX_SCOPES, PostgresSearchLog

pytestmark = [pytest.mark.requirement("DOC-007")]

ALL = SearchFilter(LONG_AGO)
PARTITIONS = """
SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'mcp.tool_searches'::regclass ORDER BY relname
"""
TODAY = NOW.date()


def partition(days: int) -> str:
    """Return the name of the partition of a day, so many days after today."""
    return f"tool_searches_p{TODAY + timedelta(days=days):%Y%m%d}"


async def rows(pool: Pool, query: str) -> Sequence[object]:
    async with pool.connection() as conn:
        return [row[0] for row in await (await conn.execute(query.encode())).fetchall()]


async def test_days_are_prepared_ahead_and_old_ones_dropped_with_what_was_known_of_them(pool: Pool) -> None:
    log = PostgresSearchLog(pool)
    await log.write([logged(1, at=NOW - timedelta(days=40), namespaces=("old",)), logged(2)])
    await log.keep(TODAY, 30, ahead=True)
    assert await rows(pool, PARTITIONS) == [partition(ahead) for ahead in range(AHEAD_DAYS + 1)]
    assert await rows(pool, "SELECT scope FROM mcp.tool_search_scopes") == ["default"]
    await log.keep(TODAY + timedelta(days=31), 30, ahead=False)
    assert await rows(pool, PARTITIONS) == [partition(1), partition(2)]


async def test_a_log_that_is_off_drops_old_days_and_makes_none(pool: Pool) -> None:
    log = PostgresSearchLog(pool)
    await log.write([logged(1, at=NOW - timedelta(days=40))])
    await keep_search_log(log, 30, ahead=False)
    assert await rows(pool, PARTITIONS) == []


async def test_processes_that_make_and_drop_the_same_partitions_at_once_all_succeed(postgres_url: str) -> None:
    async with open_pool(postgres_url, size=8, wait_seconds=30) as pool:
        logs = [PostgresSearchLog(pool) for _ in range(8)]
        await asyncio.gather(*(log.write([logged(number)]) for number, log in enumerate(logs)))
        assert len(await logs[0].page(ALL, None, 100)) == 8
        await asyncio.gather(*(log.keep(TODAY, 30, ahead=True) for log in logs))
        later = TODAY + timedelta(days=60)
        await asyncio.gather(*(log.keep(later, 30, ahead=number % 2 == 0) for number, log in enumerate(logs)))
        assert await rows(pool, PARTITIONS) == [partition(60 + ahead) for ahead in range(AHEAD_DAYS + 1)]


class ObservedLog(PostgresSearchLog):
    """Reports when a batch was written."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.wrote = asyncio.Event()

    async def write(self, searches: Sequence[LoggedSearch], /) -> None:
        await super().write(searches)
        self.wrote.set()


async def test_a_partition_that_is_gone_is_made_again_by_the_next_try(pool: Pool) -> None:
    log, losses = ObservedLog(pool), Losses()
    await log.write([logged(1)])
    log.wrote.clear()
    async with pool.connection() as conn:
        await conn.execute(f"DROP TABLE mcp.{partition(0)}".encode())
    queue = QueuedLog(log, losses, every_seconds=0.0, pause_seconds=0.0)
    queue.record(logged(2))
    await asyncio.wait_for(log.wrote.wait(), SOON)
    await queue.aclose()
    assert (await log.page(ALL, None, 10), losses.by_reason) == ([logged(2)], {})


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING])
async def test_recording_goes_on_while_the_database_is_down_and_the_loss_is_counted(
    postgres_url: str, pool: Pool, fault: Fault
) -> None:
    async with through_a_relay(postgres_url) as (between, relayed):
        log, losses = PostgresSearchLog(relayed), Losses()
        await log.write([logged(0)])
        queue = QueuedLog(log, losses, every_seconds=0.0, pause_seconds=0.01, write_seconds=0.5)
        await between.fail(fault)
        began = time.perf_counter()
        for number in range(BATCH):
            queue.record(logged(number))
        assert time.perf_counter() - began < 1.0
        await losses.until(failed=BATCH)
        await keep_search_log(log, 30, ahead=True)
        await between.heal()
        await queue.aclose()
        assert losses.by_reason == {"failed": BATCH}
    assert await PostgresSearchLog(pool).page(ALL, None, 10) == [logged(0)]


async def test_a_lock_on_the_log_is_not_awaited_for_long(postgres_url: str, pool: Pool) -> None:
    log = PostgresSearchLog(pool)
    await log.write([logged(1, at=NOW - timedelta(days=40)), logged(2)])
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        await other.execute("LOCK TABLE mcp.tool_searches IN ACCESS EXCLUSIVE MODE")
        for work in (log.write([logged(3)]), log.keep(TODAY, 30, ahead=True), log.page(ALL, None, 1)):
            async with asyncio.timeout(20):
                with pytest.raises(CatalogUnavailable):
                    await work
    await log.keep(TODAY, 30, ahead=True)
    await log.write([logged(3)])
    assert await log.page(ALL, None, 10) == [logged(3), logged(2)]


async def test_an_unmigrated_database_says_what_to_do(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("DROP TABLE mcp.tool_searches")
    with pytest.raises(SetupError) as refused:
        await PostgresSearchLog(pool).write([logged()])
    assert refused.value.hint == "run `toolscript migrate`"


async def test_only_administrators_see_searches_in_more_sets_of_namespaces_than_are_known(pool: Pool) -> None:
    log = PostgresSearchLog(pool)
    sets = [("a", f"b{number:04}") for number in range(MAX_SCOPES + 1)]
    await log.write([logged(number, namespaces=names) for number, names in enumerate(sets)])
    assert await rows(pool, "SELECT count(*) FROM mcp.tool_search_scopes") == [MAX_SCOPES]
    assert len(await log.page(ALL, None, 1000)) == MAX_SCOPES + 1
    assert len(await log.within(frozenset(sets[0])).page(ALL, None, 10)) == 1
    assert await log.within(frozenset(sets[-1])).page(ALL, None, 10) == []


@pytest.mark.parametrize("namespaces", [None, frozenset({"default"})])
async def test_days_before_the_requested_ones_are_not_read(
    pool: Pool, namespaces: frozenset[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = PostgresSearchLog(pool, namespaces)
    await log.write([missed(ago, "text", at=NOW - timedelta(days=ago)) for ago in range(20)])
    since = datetime.combine(TODAY, datetime.min.time(), UTC) - timedelta(days=2)
    with sent(monkeypatch) as statements:
        assert len(await log.page(SearchFilter(since), None, 10)) == 3
        assert (await log.gaps(since, 10)).counted == 3
    reads = [(query, values) for query, values in statements if "ORDER BY at DESC" in query]
    assert len(reads) == 2
    for query, values in reads:
        async with pool.connection() as conn:
            plan = await (await conn.execute(f"EXPLAIN {query}".encode(), values)).fetchall()
        read = {name for name in await rows(pool, PARTITIONS) if f" on {name} " in str(plan)}
        assert read == {partition(0), partition(-1), partition(-2)}


SKEWED = """
INSERT INTO mcp.tool_searches
SELECT now() - n * interval '1 second', md5(n::text)::uuid,
       CASE WHEN n % 1000 = 999 THEN 'rare' ELSE 'x' || n % 3 END,
       'http', 'hybrid', 'direct', 1, n % 3 <> 0, 1, '{}', 'text', n % 50, '{}', n, 0.5
FROM generate_series(1, 40000) n;
ANALYZE mcp.tool_searches;
"""


@pytest.mark.parametrize("good_match", [None, False])
async def test_a_page_of_a_rare_scope_reads_no_entries_of_others(
    pool: Pool, good_match: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = PostgresSearchLog(pool, frozenset({"rare"}))
    await log.keep(TODAY, 30, ahead=True)
    await log.write([logged(1, at=NOW - timedelta(days=1), namespaces=("rare",))])
    async with pool.connection() as conn:
        await conn.execute(SKEWED)
    with sent(monkeypatch) as statements:
        assert len(await log.page(SearchFilter(LONG_AGO, good_match), None, 10)) == 10
    ((query, values),) = [pair for pair in statements if "ORDER BY at DESC" in pair[0]]
    async with pool.connection() as conn:
        plan = await (await conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".encode(), values)).fetchone()
    assert rows_read(cast("Any", plan)[0][0]["Plan"]) <= 40
