"""Requested syncs, in schema `mcp`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.audit import Change
from toolscript.core.items import MAX_ID, JsonObject
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, valid_namespace
from toolscript.core.postgres.audit import finish_change, write_change
from toolscript.core.postgres.pool import Pool, connection, transaction
from toolscript.tools.model.catalog import (
    MAX_JOBS_KEPT,
    SILENT_SECONDS,
    JobProgress,
    JobState,
    SyncJob,
    unknown_job,
)
from toolscript.tools.postgres.views import SEEN, page_of, seen_of

_OPEN = "state IN ('queued', 'running')"
_SILENT = f"{_OPEN} AND heartbeat_at < now() - make_interval(secs => {SILENT_SECONDS})"

_JOBS = f"""
SELECT id, CASE WHEN {_SILENT} THEN 'interrupted' ELSE state END AS state, source, created_at, started_at,
       finished_at, done, total, report, error, namespace
FROM mcp.sync_jobs
"""  # noqa: S608 - built from constants only
_FIND = f"{_JOBS} WHERE id = %(id)s AND {SEEN}"
_EARLIER = "mcp.sync_jobs WHERE id < %(before)s"

_ADD = """
INSERT INTO mcp.sync_jobs (source, namespace, audit_id) VALUES (%(source)s, %(namespace)s, %(audit_id)s)
RETURNING id
"""

_DELETE_OLDER = f"""
DELETE FROM mcp.sync_jobs
WHERE namespace = %(namespace)s
  AND id <= (SELECT id FROM mcp.sync_jobs WHERE namespace = %(namespace)s
             ORDER BY id DESC OFFSET {MAX_JOBS_KEPT} LIMIT 1)
  AND (NOT {_OPEN} OR {_SILENT})
"""  # noqa: S608 - built from constants only

_START = f"""
UPDATE mcp.sync_jobs SET state = 'running', started_at = now(), heartbeat_at = now()
WHERE id = %(id)s AND {SEEN}
"""  # noqa: S608 - built from constants only

_BEAT = f"""
UPDATE mcp.sync_jobs jobs SET heartbeat_at = now(), done = now_at.done, total = now_at.total
FROM unnest(%(ids)s::bigint[], %(done)s::bigint[], %(total)s::bigint[]) AS now_at (id, done, total)
WHERE jobs.id = now_at.id AND {_OPEN} AND {SEEN}
"""  # noqa: S608 - built from constants only

_FINISH = f"""
UPDATE mcp.sync_jobs
SET state = %(state)s, report = %(report)s, error = %(error)s, finished_at = now(), heartbeat_at = now()
WHERE id = %(id)s AND {SEEN} RETURNING audit_id
"""  # noqa: S608 - built from constants only

_INTERRUPT = f"""
UPDATE mcp.sync_jobs SET state = 'interrupted', finished_at = now()
WHERE id = ANY(%(ids)s) AND {_OPEN} AND {SEEN}
"""  # noqa: S608 - built from constants only


class PostgresSyncJobs:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresSyncJobs":
        return PostgresSyncJobs(self._pool, namespaces)

    async def add(self, source: str, namespace: str = DEFAULT_NAMESPACE, change: Change | None = None) -> SyncJob:
        values = {"source": source, "namespace": valid_namespace(namespace), "seen": None}
        async with transaction(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            audit_id = None if change is None else await write_change(conn, change)
            await cursor.execute(_ADD, {**values, "audit_id": audit_id})
            added = await cursor.fetchone()
            await cursor.execute(_DELETE_OLDER, values)
            await cursor.execute(_FIND, {**values, "id": added and added["id"]})
            return _job((await cursor.fetchall())[0])

    async def start(self, job_id: int) -> None:
        await self._write(_START, {"id": job_id})

    async def beat(self, progress: Sequence[JobProgress]) -> None:
        values = {
            "ids": [job_progress.id for job_progress in progress],
            "done": [job_progress.done for job_progress in progress],
            "total": [job_progress.total for job_progress in progress],
        }
        await self._write(_BEAT, values)

    async def finish(
        self,
        job_id: int,
        state: JobState,
        report: JsonObject | None = None,
        error: str | None = None,
        count: int = 0,
    ) -> None:
        written = None if report is None else json.dumps(report, ensure_ascii=False)
        values = {"id": job_id, "state": state, "report": written, "error": error}
        async with transaction(self._pool) as conn:
            rows = await conn.execute(_FINISH, {**values, "seen": seen_of(self._namespaces)})
            row = await rows.fetchone()
            if row is not None and row[0] is not None:
                await finish_change(conn, int(str(row[0])), count, {"job": job_id, "state": state})

    async def interrupt(self, job_ids: Sequence[int]) -> None:
        await self._write(_INTERRUPT, {"ids": list(job_ids)})

    async def find(self, job_id: int) -> SyncJob:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_FIND, {"id": job_id, "seen": seen_of(self._namespaces)})
            row = await cursor.fetchone()
        if row is None:
            raise unknown_job(job_id)
        return _job(row)

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        ids = page_of(self._namespaces, _EARLIER, latest_first=True)
        values = {"before": MAX_ID if before is None else before, "limit": limit}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            query = f"{_JOBS} WHERE id IN ({ids}) ORDER BY id DESC"
            await cursor.execute(query, {**values, "seen": seen_of(self._namespaces)})
            return [_job(row) for row in await cursor.fetchall()]

    async def _write(self, statement: str, values: Mapping[str, object]) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(statement, {**values, "seen": seen_of(self._namespaces)})


def _job(row: dict[str, Any]) -> SyncJob:
    return SyncJob(**{**row, "state": JobState(row["state"])})
