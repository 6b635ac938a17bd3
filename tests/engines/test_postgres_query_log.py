"""The query log in the database: outages, and deletion of old entries."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from tests.engines.postgres_stores import through_a_relay
from tests.support.faults import Fault
from tests.unit.core.observability.queued_log_builders import Losses
from tests.unit.documents.query_log_builders import search
from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError
from toolscript.core.observability.queued_log import BATCH, QueuedLog
from toolscript.core.postgres.pool import Pool
from toolscript.documents.model.query import LoggedQuery
from toolscript.documents.postgres import PostgresQueryLog

pytestmark = [pytest.mark.requirement("DOC-007")]

SIXTY_DAYS = """
INSERT INTO documents.queries (at, query_id, tenant, plan, search_type, fusion, filters, top_k, hits, total,
                               took_ms, degraded, reranked_by, text, found)
SELECT now() - make_interval(days => day), '', 'ann', '', '', '', 0, 1, 0, 0, 0, '{}', '', '', '{}'
FROM generate_series(1, 60) day, generate_series(1, 200)
"""


async def count(pool: Pool) -> int:
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) FROM documents.queries")).fetchone()
    return int(str(row and row[0]))


async def test_a_batch_is_one_statement_all_or_nothing(pool: Pool) -> None:
    log = PostgresQueryLog(pool)
    with pytest.raises(CatalogRejected, match="NUL"):
        await log.write([search(1), search(2, text="a\0b")])
    assert await count(pool) == 0
    await log.write([search(1)])
    assert await count(pool) == 1


async def test_an_unmigrated_database_is_logged(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("DROP TABLE documents.queries")
    with pytest.raises(SetupError) as refused:
        await PostgresQueryLog(pool).write([search()])
    assert refused.value.hint == "run `toolscript migrate`"


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING])
async def test_recording_does_not_fail_while_the_database_is_down(postgres_url: str, fault: Fault) -> None:
    async with through_a_relay(postgres_url) as (between, pool):
        losses = Losses()
        sink = PostgresQueryLog(pool)
        await sink.write([search(0)])
        log = QueuedLog(sink, losses, every_seconds=0.0, pause_seconds=0.01, write_seconds=0.5)
        await between.fail(fault)
        began = time.perf_counter()
        for number in range(BATCH):
            log.record(search(number))
        assert time.perf_counter() - began < 1.0
        await losses.until(failed=BATCH)
        await between.heal()
        await _until_it_answers(sink)
        log.record(search())
        await log.aclose()
        assert losses.by_reason == {"failed": BATCH}


async def _until_it_answers(sink: PostgresQueryLog) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await sink.write([search(-1)])
            except CatalogUnavailable:
                await asyncio.sleep(0.01)
            else:
                return


class IngestProgress:
    """Reports when a write failed because the database was down."""

    def __init__(self, log: PostgresQueryLog) -> None:
        self._log = log
        self.failed = asyncio.Event()
        self.wrote = asyncio.Event()

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        try:
            await self._log.write(queries)
        except CatalogUnavailable:
            self.failed.set()
            raise
        self.wrote.set()


async def test_a_short_outage_of_the_database_loses_nothing(postgres_url: str, pool: Pool) -> None:
    async with through_a_relay(postgres_url) as (between, relayed):
        losses = Losses()
        sink = IngestProgress(PostgresQueryLog(relayed))
        await between.fail(Fault.REFUSED)
        log = QueuedLog(sink, losses, every_seconds=0.0)
        log.record(search())
        async with asyncio.timeout(30):
            await sink.failed.wait()
            await between.heal()
            await sink.wrote.wait()
        await log.aclose()
        assert (await count(pool), losses.by_reason) == (1, {})


async def test_old_entries_are_deleted_as_new_ones_arrive_and_the_rest_is_kept(pool: Pool) -> None:
    log = PostgresQueryLog(pool, keep_days=30)
    async with pool.connection() as conn:
        await conn.execute(SIXTY_DAYS)
    await log.write([search()] * 10)
    assert await count(pool) == 12_000 + 10 - 20
    await log.write([search()] * 4_000)
    assert await count(pool) == 29 * 200 + 4_010
