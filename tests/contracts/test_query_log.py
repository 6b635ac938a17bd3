"""Contract of query logs, in any store."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row

from tests.conftest import PATIENCE
from tests.unit.documents.query_log_builders import search
from toolscript.core.observability.queued_log import LogSink, QueuedLog
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.documents.model.query import LoggedQuery
from toolscript.documents.ports import QueryLog
from toolscript.documents.postgres import PostgresQueryLog
from toolscript.documents.query_log import QueryLogFile
from toolscript.testing.documents import MemoryQueryLog

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.requirement("DOC-003")]

NAMES = [field.name for field in fields(LoggedQuery)]


@dataclass(frozen=True)
class ReadableLog:
    log: QueryLog
    read: Callable[[], Awaitable[Sequence[LoggedQuery]]]


@pytest.fixture(params=["memory", "file", "postgres"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ReadableLog]:
    if request.param == "memory":
        memory = MemoryQueryLog()

        async def recorded() -> Sequence[LoggedQuery]:
            return memory.queries

        yield ReadableLog(memory, recorded)
    elif request.param == "file":
        file = QueryLogFile(tmp_path / "queries.ndjson")
        yield _queued(file, lambda: _lines(tmp_path / "queries.ndjson"))
        file.close()
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=2, wait_seconds=PATIENCE) as pool:
            yield _queued(PostgresQueryLog(pool), lambda: _rows(pool))


def _queued(sink: LogSink[LoggedQuery], read: Callable[[], Awaitable[Sequence[LoggedQuery]]]) -> ReadableLog:
    log = QueuedLog(sink)

    async def flushed() -> Sequence[LoggedQuery]:
        await log.aclose()
        return await read()

    return ReadableLog(log, flushed)


async def _lines(path: Path) -> Sequence[LoggedQuery]:
    text = await asyncio.to_thread(path.read_text, "utf-8")
    return [_query(json.loads(line)) for line in text.splitlines()]


async def _rows(pool: Pool) -> Sequence[LoggedQuery]:
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"SELECT {', '.join(NAMES)} FROM documents.queries ORDER BY id".encode())
        return [_query(row) for row in await cursor.fetchall()]


def _query(row: dict[str, Any]) -> LoggedQuery:
    moment = row["at"].astimezone().isoformat() if isinstance(row["at"], datetime) else row["at"]
    return LoggedQuery(
        **{**row, "at": _utc(moment), "degraded": tuple(row["degraded"]), "found": tuple(row["found"])}
    )


def _utc(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(tz=datetime.fromisoformat(search().at).tzinfo).isoformat()


async def test_recorded_queries_are_read_back_in_order(target: ReadableLog) -> None:
    queries = [search(number) for number in range(3)]
    for query in queries:
        target.log.record(query)
    assert await target.read() == queries


async def test_every_field_is_kept_as_it_is(target: ReadableLog) -> None:
    whole = search(
        degraded=("embedding", "rerank"),
        reranked_by="cross_encoder",
        text='a "quoted"\tquery\nof two lines, \\with ü and 漢字 \u2028',
        found=("doc-1", 'a "doc", {2}', "\\N", ""),
        total=2**40,
    )
    target.log.record(whole)
    assert await target.read() == [whole]


async def test_many_queries_are_stored(target: ReadableLog) -> None:
    queries = [search(number) for number in range(1_234)]
    for query in queries:
        target.log.record(query)
    assert await target.read() == queries
