"""What is promised of a log of queries, wherever it lies."""

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
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.documents.model.query import LoggedQuery
from toolscript.documents.ports import QueryLog
from toolscript.documents.postgres import PostgresQueryLog
from toolscript.documents.query_log import QueryLogFile, QuerySink, QueuedQueryLog
from toolscript.testing.documents import MemoryQueryLog

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.requirement("DOC-003")]

NAMES = [one.name for one in fields(LoggedQuery)]


@dataclass(frozen=True)
class Kept:
    log: QueryLog
    read: Callable[[], Awaitable[Sequence[LoggedQuery]]]


@pytest.fixture(params=["memory", "file", "postgres"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    if request.param == "memory":
        memory = MemoryQueryLog()

        async def remembered() -> Sequence[LoggedQuery]:
            return memory.queries

        yield Kept(memory, remembered)
    elif request.param == "file":
        file = QueryLogFile(tmp_path / "queries.ndjson")
        yield _queued(file, lambda: _lines(tmp_path / "queries.ndjson"))
        file.close()
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=2, wait_seconds=PATIENCE) as pool:
            yield _queued(PostgresQueryLog(pool), lambda: _rows(pool))


def _queued(sink: QuerySink, read: Callable[[], Awaitable[Sequence[LoggedQuery]]]) -> Kept:
    log = QueuedQueryLog(sink)

    async def flushed() -> Sequence[LoggedQuery]:
        await log.aclose()
        return await read()

    return Kept(log, flushed)


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


async def test_what_was_recorded_can_be_read_in_its_order(kept: Kept) -> None:
    queries = [search(number) for number in range(3)]
    for one in queries:
        kept.log.record(one)
    assert await kept.read() == queries


async def test_every_field_is_kept_as_it_is(kept: Kept) -> None:
    whole = search(
        degraded=("embedding", "rerank"),
        reranked_by="cross_encoder",
        text='a "quoted"\tquery\nof two lines, \\with ü and 漢字 \u2028',
        found=("doc-1", 'a "doc", {2}', "\\N", ""),
        total=2**40,
    )
    kept.log.record(whole)
    assert await kept.read() == [whole]


async def test_many_are_kept_as_well(kept: Kept) -> None:
    queries = [search(number) for number in range(1_234)]
    for one in queries:
        kept.log.record(one)
    assert await kept.read() == queries
