"""Runs syncs that somebody asked for and does not wait for: a few at once, a few more waiting, none unheard of."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

from toolscript.core.errors import ToolscriptError, Unavailable
from toolscript.core.item_json import storable
from toolscript.core.items import JsonObject
from toolscript.core.text import readable
from toolscript.core.values import OnProgress, Progress
from toolscript.tools.model.catalog import JobProgress, JobState, SyncJob
from toolscript.tools.ports import SyncJobs

AT_ONCE = 2
MAX_WAITING = 20
BEAT_SECONDS = 2.0
GOODBYE_SECONDS = 2.0
RETRY_SECONDS = 10
UNEXPECTED = "something unexpected went wrong on our side"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What a job did; with an `error` it failed, whatever it did."""

    report: JsonObject
    error: str | None = None


Work = Callable[[OnProgress], Awaitable[Outcome]]


class JobRunner:
    def __init__(
        self,
        jobs: SyncJobs,
        *,
        at_once: int = AT_ONCE,
        max_waiting: int = MAX_WAITING,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._jobs = jobs
        self._maximum = at_once + max_waiting
        self._beat_seconds = beat_seconds
        self._turns = asyncio.Semaphore(at_once)
        self._last_of: dict[str, asyncio.Task[None]] = {}
        self._taken = 0
        self._progress: dict[int, JobProgress] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["JobRunner"]:
        """Jobs that have not ended when this does are interrupted."""
        beating = asyncio.create_task(self._keep_beating())
        try:
            yield self
        finally:
            for task in (beating, *self._tasks):
                task.cancel()
            await asyncio.gather(beating, *self._tasks, return_exceptions=True)
            await self._interrupt_the_rest()

    def require_room(self) -> None:
        if self._taken >= self._maximum:
            raise Unavailable(
                f"{self._taken} syncs are running or waiting, and no more are taken",
                hint="try again once one of them has ended: GET /api/v1/sync",
                details={"running_or_waiting": self._taken, "retry_after_seconds": RETRY_SECONDS},
            )

    async def submit(self, source: str, work: Work) -> SyncJob:
        """Answers at once, with the job that will do the work when its turn comes."""
        self.require_room()
        self._taken += 1
        try:
            job = await self._jobs.add(source)
        except BaseException:
            self._taken -= 1
            raise
        self._progress[job.id] = JobProgress(job.id, 0, None)
        task = asyncio.create_task(self._run_after(self._last_of.get(source), job.id, work))
        self._last_of[source] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(source, done))
        return job

    def _ended(self, source: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._last_of.get(source) is task:
            del self._last_of[source]

    async def _run_after(self, earlier: asyncio.Task[None] | None, job_id: int, work: Work) -> None:
        """Jobs of one source run one after the other: what was sent first must not overwrite what came later."""
        if earlier is not None:
            await asyncio.wait([earlier])
        await self._run(job_id, work)

    async def _run(self, job_id: int, work: Work) -> None:
        def on_progress(at: Progress) -> None:
            self._progress[job_id] = JobProgress(job_id, at.done, at.total)

        try:
            async with self._turns:
                await self._jobs.start(job_id)
                outcome = await _outcome(work, on_progress)
                await self._jobs.beat([self._progress[job_id]])
                await self._finish(job_id, outcome)
            del self._progress[job_id]
        except ToolscriptError as error:
            # Nobody can be told: it beats no more, and so reads as interrupted.
            del self._progress[job_id]
            logger.warning("a sync could not be recorded", extra={"reason": error.message})
        finally:
            self._taken -= 1

    async def _finish(self, job_id: int, outcome: Outcome) -> None:
        """What servers said is in it, and may hold what no database does."""
        state = JobState.FAILED if outcome.error else JobState.DONE
        report = cast("JsonObject", storable(outcome.report)) if outcome.report else None
        await self._jobs.finish(job_id, state, report, outcome.error and readable(outcome.error))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._beat_seconds)
            if self._progress:
                try:
                    await self._jobs.beat(list(self._progress.values()))
                except ToolscriptError as error:
                    logger.warning("a sync could not be told of", extra={"reason": error.message})

    async def _interrupt_the_rest(self) -> None:
        if self._progress:
            with suppress(ToolscriptError, TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._jobs.interrupt(list(self._progress))


async def _outcome(work: Work, on_progress: OnProgress) -> Outcome:
    try:
        return await work(on_progress)
    except ToolscriptError as error:
        return Outcome({}, f"{error.message}; {error.hint}" if error.hint else error.message)
    except Exception:
        logger.exception("a sync failed unexpectedly")
        return Outcome({}, UNEXPECTED)
