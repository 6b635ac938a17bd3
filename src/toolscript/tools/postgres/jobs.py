"""Requested syncs, in schema `mcp`."""

import json
from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import MAX_ID, JsonObject
from toolscript.core.postgres.pool import Pool, connection, transaction
from toolscript.tools.model.catalog import (
    MAX_JOBS_KEPT,
    SILENT_SECONDS,
    JobProgress,
    JobState,
    SyncJob,
    unknown_job,
)

_OPEN = "state IN ('queued', 'running')"
_SILENT = f"{_OPEN} AND heartbeat_at < now() - make_interval(secs => {SILENT_SECONDS})"

_JOBS = f"""
SELECT id, CASE WHEN {_SILENT} THEN 'interrupted' ELSE state END AS state, source, created_at, started_at,
       finished_at, done, total, report, error
FROM mcp.sync_jobs
"""  # noqa: S608 - built from constants only
_FIND = f"{_JOBS} WHERE id = %s"
_PAGE = f"{_JOBS} WHERE id < %s ORDER BY id DESC LIMIT %s"

_ADD = "INSERT INTO mcp.sync_jobs (source) VALUES (%s) RETURNING id"

_DELETE_OLDER = f"""
DELETE FROM mcp.sync_jobs
WHERE id <= (SELECT id FROM mcp.sync_jobs ORDER BY id DESC OFFSET %s LIMIT 1)
  AND (NOT {_OPEN} OR {_SILENT})
"""  # noqa: S608 - built from constants only

_START = "UPDATE mcp.sync_jobs SET state = 'running', started_at = now(), heartbeat_at = now() WHERE id = %s"

_BEAT = """
UPDATE mcp.sync_jobs jobs SET heartbeat_at = now(), done = now_at.done, total = now_at.total
FROM unnest(%(ids)s::bigint[], %(done)s::bigint[], %(total)s::bigint[]) AS now_at (id, done, total)
WHERE jobs.id = now_at.id AND jobs.state IN ('queued', 'running')
"""

_FINISH = """
UPDATE mcp.sync_jobs SET state = %s, report = %s, error = %s, finished_at = now(), heartbeat_at = now()
WHERE id = %s
"""

_INTERRUPT = f"""
UPDATE mcp.sync_jobs SET state = 'interrupted', finished_at = now() WHERE id = ANY(%s) AND {_OPEN}
"""  # noqa: S608 - built from constants only


class PostgresSyncJobs:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, source: str) -> SyncJob:
        async with transaction(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ADD, (source,))
            added = await cursor.fetchone()
            await cursor.execute(_DELETE_OLDER, (MAX_JOBS_KEPT,))
            await cursor.execute(_FIND, (added and added["id"],))
            return _job((await cursor.fetchall())[0])

    async def start(self, job_id: int) -> None:
        await self._write(_START, (job_id,))

    async def beat(self, progress: Sequence[JobProgress]) -> None:
        values = {
            "ids": [job_progress.id for job_progress in progress],
            "done": [job_progress.done for job_progress in progress],
            "total": [job_progress.total for job_progress in progress],
        }
        await self._write(_BEAT, values)

    async def finish(
        self, job_id: int, state: JobState, report: JsonObject | None = None, error: str | None = None
    ) -> None:
        written = None if report is None else json.dumps(report, ensure_ascii=False)
        await self._write(_FINISH, (state, written, error, job_id))

    async def interrupt(self, job_ids: Sequence[int]) -> None:
        await self._write(_INTERRUPT, (list(job_ids),))

    async def find(self, job_id: int) -> SyncJob:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_FIND, (job_id,))
            row = await cursor.fetchone()
        if row is None:
            raise unknown_job(job_id)
        return _job(row)

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_PAGE, (MAX_ID if before is None else before, limit))
            return [_job(row) for row in await cursor.fetchall()]

    async def _write(self, statement: str, values: Any) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(statement, values)


def _job(row: dict[str, Any]) -> SyncJob:
    return SyncJob(**{**row, "state": JobState(row["state"])})
