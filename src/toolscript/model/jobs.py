"""A sync that somebody asked for and does not wait for."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from toolscript.errors import NotFound
from toolscript.model.items import JsonObject

# A job whose process has said nothing for so long has no process any more.
SILENT_SECONDS = 30.0
MOST_JOBS_KEPT = 1_000


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_open(self) -> bool:
        return self in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class SyncJob:
    """`source` is where the items come from; `total` is None while nobody knows it."""

    id: int
    state: JobState
    source: str
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    done: int = 0
    total: int | None = None
    report: JsonObject | None = None
    error: str | None = None


@dataclass(frozen=True)
class JobProgress:
    id: int
    done: int
    total: int | None


def unknown_job(job_id: int) -> NotFound:
    hint = f"jobs are kept until {MOST_JOBS_KEPT:,} later ones have come; post the sync again"
    return NotFound(f"there is no sync job {job_id}", hint=hint, details={"job_id": job_id})
