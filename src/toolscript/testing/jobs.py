"""Syncs that somebody asked for, in memory, with a clock that a test can move."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.model.items import JsonObject
from toolscript.model.jobs import (
    MOST_JOBS_KEPT,
    SILENT_SECONDS,
    JobProgress,
    JobState,
    SyncJob,
    unknown_job,
)


@dataclass(frozen=True)
class _Row:
    job: SyncJob
    heard_at: float


class MemorySyncJobs:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ids = count(1)
        self._rows: dict[int, _Row] = {}

    async def add(self, source: str) -> SyncJob:
        job = SyncJob(next(self._ids), JobState.QUEUED, source, datetime.now(UTC))
        self._write(job)
        for id_ in sorted(self._rows, reverse=True)[MOST_JOBS_KEPT:]:
            if not self._read(id_).state.is_open:
                del self._rows[id_]
        return job

    async def start(self, job_id: int) -> None:
        self._change(job_id, state=JobState.RUNNING, started_at=datetime.now(UTC))

    async def beat(self, progress: Sequence[JobProgress]) -> None:
        for one in progress:
            if one.id in self._rows and self._rows[one.id].job.state.is_open:
                self._change(one.id, done=one.done, total=one.total)

    async def finish(
        self, job_id: int, state: JobState, report: JsonObject | None = None, error: str | None = None
    ) -> None:
        self._change(job_id, state=state, report=report, error=error, finished_at=datetime.now(UTC))

    async def interrupt(self, job_ids: Sequence[int]) -> None:
        for id_ in job_ids:
            if id_ in self._rows and self._rows[id_].job.state.is_open:
                self._change(id_, state=JobState.INTERRUPTED, finished_at=datetime.now(UTC))

    async def find(self, job_id: int) -> SyncJob:
        return self._read(job_id)

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        wanted = [id_ for id_ in sorted(self._rows, reverse=True) if before is None or id_ < before]
        return [self._read(id_) for id_ in wanted[:limit]]

    def _read(self, job_id: int) -> SyncJob:
        if job_id not in self._rows:
            raise unknown_job(job_id)
        row = self._rows[job_id]
        is_silent = row.job.state.is_open and self._now() - row.heard_at > SILENT_SECONDS
        return replace(row.job, state=JobState.INTERRUPTED) if is_silent else row.job

    def _change(self, job_id: int, **changed: object) -> None:
        if job_id in self._rows:
            self._write(replace(self._rows[job_id].job, **changed))  # type: ignore[arg-type]

    def _write(self, job: SyncJob) -> None:
        self._rows[job.id] = _Row(job, self._now())
