"""Runs requested syncs in the background: a bounded number at once, a bounded queue, each recorded as a job.

Namespaces take turns, and none of them fills the queue. Administrators have a line of their own, and places that
are kept for them.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

from toolscript.core.audit import Change
from toolscript.core.errors import ToolscriptError, TooManyRequests, Unavailable
from toolscript.core.fair_queue import FairQueue
from toolscript.core.item_json import storable
from toolscript.core.items import JsonObject
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.taxonomy import Actor
from toolscript.core.text import readable
from toolscript.core.values import OnProgress, Progress
from toolscript.tools.model.catalog import JobProgress, JobState, SyncJob
from toolscript.tools.ports import SyncJobs

AT_ONCE = 2
MAX_WAITING = 20
# Open jobs of a namespace, and places that are kept for administrators.
MAX_OF_NAMESPACE = 4
KEPT_PLACES = 2
# Their line in the queue, which is that of no namespace.
ADMINISTRATORS = ""
BEAT_SECONDS = 2.0
SHUTDOWN_SECONDS = 2.0
RETRY_SECONDS = 10
UNEXPECTED = "something unexpected went wrong on our side"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """The result of a job; with an `error` the job failed, whatever it reports. `count`: the items it changed."""

    report: JsonObject
    error: str | None = None
    count: int = 0


Work = Callable[[OnProgress], Awaitable[Outcome]]


@dataclass(frozen=True)
class JobClient:
    """Who requested a job, and what it is in the audit."""

    actor: Actor
    action: str
    is_admin: bool = False


OPERATOR = JobClient(Actor("operator"), "job.run", is_admin=True)


class JobRunner:
    def __init__(
        self,
        jobs: SyncJobs,
        *,
        at_once: int = AT_ONCE,
        max_waiting: int = MAX_WAITING,
        max_of_namespace: int = MAX_OF_NAMESPACE,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._jobs = jobs
        self._capacity = at_once + max_waiting
        self._beat_seconds = beat_seconds
        self._at_once = at_once
        self._max_of_namespace = max_of_namespace
        self._queue: FairQueue[str, asyncio.Future[None]] = FairQueue()
        # By namespace and source.
        self._last_of: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._open: Counter[str] = Counter()
        self._progress: dict[int, JobProgress] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["JobRunner"]:
        """Run jobs while the block runs; jobs that are still open at its end are interrupted."""
        beating = asyncio.create_task(self._keep_beating())
        try:
            yield self
        finally:
            for task in (beating, *self._tasks):
                task.cancel()
            await asyncio.gather(beating, *self._tasks, return_exceptions=True)
            await self._interrupt_open_jobs()

    def require_room(self, line: str | None = ADMINISTRATORS) -> None:
        """Raise where a job would not be queued. `line`: the namespace of a client; None: not known yet."""
        if line and self._open[line] >= self._max_of_namespace:
            raise TooManyRequests(
                f"{self._open[line]} syncs of the namespace {line!r} are running or waiting, as many as may",
                hint="try again once one of them has ended: GET /api/v1/jobs",
                details={"running_or_waiting": self._open[line], "retry_after_seconds": RETRY_SECONDS},
            )
        kept = 0 if line == ADMINISTRATORS else min(KEPT_PLACES, self._capacity - 1)
        if self._open.total() >= self._capacity - kept:
            raise Unavailable(
                f"{self._open.total()} syncs are running or waiting, and the queue is full",
                hint="try again once one of them has ended: GET /api/v1/jobs",
                details={"running_or_waiting": self._open.total(), "retry_after_seconds": RETRY_SECONDS},
            )

    async def submit(
        self, source: str, work: Work, namespace: str = DEFAULT_NAMESPACE, by: JobClient = OPERATOR
    ) -> SyncJob:
        """Queue the work and return its job at once."""
        line = ADMINISTRATORS if by.is_admin else namespace
        self.require_room(line)
        self._open[line] += 1
        try:
            job = await self._jobs.add(source, namespace, Change(by.actor, by.action, source, namespace))
        except BaseException:
            self._open[line] -= 1
            raise
        self._progress[job.id] = JobProgress(job.id, 0, None)
        task = asyncio.create_task(self._run_after(self._last_of.get((namespace, source)), job.id, work, line))
        self._last_of[namespace, source] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended((namespace, source), done))
        return job

    def _ended(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._last_of.get(key) is task:
            del self._last_of[key]

    async def _run_after(self, earlier: asyncio.Task[None] | None, job_id: int, work: Work, line: str) -> None:
        """Run jobs of one source one after the other: an earlier request must not overwrite a later one."""
        if earlier is not None:
            await asyncio.wait([earlier])
        await self._run(job_id, work, line)

    @asynccontextmanager
    async def _turn(self, line: str) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        self._queue.wait(line, turn)
        self._begin_next()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._queue.end(line)
            self._queue.leave(line, turn)
            self._begin_next()

    def _begin_next(self) -> None:
        while self._queue.running < self._at_once and (turn := self._queue.next()) is not None:
            turn.set_result(None)

    async def _run(self, job_id: int, work: Work, line: str) -> None:
        def on_progress(progress: Progress) -> None:
            self._progress[job_id] = JobProgress(job_id, progress.done, progress.total)

        try:
            async with self._turn(line):
                await self._jobs.start(job_id)
                outcome = await _outcome(work, on_progress)
                await self._jobs.beat([self._progress[job_id]])
                await self._finish(job_id, outcome)
            del self._progress[job_id]
        except ToolscriptError as error:
            # The store does not answer: the job gets no more heartbeats, and so reads as interrupted.
            del self._progress[job_id]
            logger.warning("a sync could not be recorded", extra={"reason": error.message})
        finally:
            self._open[line] -= 1

    async def _finish(self, job_id: int, outcome: Outcome) -> None:
        """Record the outcome, without the characters in servers' text that no database stores."""
        state = JobState.FAILED if outcome.error else JobState.DONE
        report = cast("JsonObject", storable(outcome.report)) if outcome.report else None
        await self._jobs.finish(job_id, state, report, outcome.error and readable(outcome.error), outcome.count)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._beat_seconds)
            if self._progress:
                try:
                    await self._jobs.beat(list(self._progress.values()))
                except ToolscriptError as error:
                    logger.warning("no heartbeat could be recorded for a sync", extra={"reason": error.message})

    async def _interrupt_open_jobs(self) -> None:
        if self._progress:
            with suppress(ToolscriptError, TimeoutError):
                async with asyncio.timeout(SHUTDOWN_SECONDS):
                    await self._jobs.interrupt(list(self._progress))


async def _outcome(work: Work, on_progress: OnProgress) -> Outcome:
    try:
        return await work(on_progress)
    except ToolscriptError as error:
        return Outcome({}, f"{error.message}; {error.hint}" if error.hint else error.message)
    except Exception:
        logger.exception("a sync failed unexpectedly")
        return Outcome({}, UNEXPECTED)
