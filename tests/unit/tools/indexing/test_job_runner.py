"""Jobs run with bounded concurrency, report progress, and always get an end state."""

import asyncio
from collections.abc import Callable

import pytest

from toolscript.core.audit import Change
from toolscript.core.errors import CatalogUnavailable, InvalidRequest, Unavailable
from toolscript.core.items import JsonObject
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.values import OnProgress, Progress
from toolscript.testing.catalog import MemorySyncJobs
from toolscript.tools.catalog.jobs import UNEXPECTED, JobRunner, Outcome, Work
from toolscript.tools.model.catalog import SILENT_SECONDS, JobState, SyncJob

pytestmark = pytest.mark.requirement("SK-010")

SOON = 20.0


class WatchedJobs(MemorySyncJobs):
    """Signals every write; fails while it is `down`."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(now)
        self.down = False
        self.write_failed = asyncio.Event()
        self._written = asyncio.Event()

    async def add(self, source: str, namespace: str = DEFAULT_NAMESPACE, change: Change | None = None) -> SyncJob:
        if self.down:
            raise CatalogUnavailable("the catalog is down")
        return await super().add(source, namespace, change)

    async def finish(
        self,
        job_id: int,
        state: JobState,
        report: JsonObject | None = None,
        error: str | None = None,
        count: int = 0,
    ) -> None:
        if self.down:
            self.write_failed.set()
            raise CatalogUnavailable("the catalog is down")
        await super().finish(job_id, state, report, error, count)

    def _write(self, job: SyncJob) -> None:
        super()._write(job)
        self._written.set()

    async def until(self, job_id: int, holds: Callable[[SyncJob], bool]) -> SyncJob:
        async with asyncio.timeout(SOON):
            while not holds(await self.find(job_id)):
                self._written.clear()
                await self._written.wait()
        return await self.find(job_id)


class Scene:
    def __init__(self) -> None:
        self.time = 0.0
        self.jobs = WatchedJobs(lambda: self.time)
        self.gate = asyncio.Event()
        self.started = 0
        self.max_at_once = 0
        self._at_once = 0

    def runner(self, at_once: int = 2, max_waiting: int = 20) -> JobRunner:
        return JobRunner(self.jobs, at_once=at_once, max_waiting=max_waiting, beat_seconds=0.01)

    async def gated(self, on_progress: OnProgress) -> Outcome:
        self.started += 1
        self._at_once += 1
        self.max_at_once = max(self.max_at_once, self._at_once)
        on_progress(Progress("sync", 3, 10))
        await self.gate.wait()
        self._at_once -= 1
        return Outcome({"added": 10})


def failing(error: Exception) -> Work:
    async def work(_: OnProgress) -> Outcome:
        raise error

    return work


def is_over(job: SyncJob) -> bool:
    return not job.state.is_open


async def test_a_job_is_returned_at_once_runs_reports_progress_and_ends() -> None:
    scene = Scene()
    async with scene.runner().running() as runner:
        job = await runner.submit("catalog", scene.gated)
        assert job.state is JobState.QUEUED
        running = await scene.jobs.until(job.id, lambda now: now.done == 3)
        assert (running.state, running.total) == (JobState.RUNNING, 10)
        scene.gate.set()
        done = await scene.jobs.until(job.id, is_over)
    assert (done.state, done.report, done.error) == (JobState.DONE, {"added": 10}, None)


async def test_only_a_few_jobs_run_at_once_and_the_others_wait() -> None:
    scene = Scene()
    async with scene.runner().running() as runner:
        jobs = [await runner.submit(f"catalog {number}", scene.gated) for number in range(5)]
        await scene.jobs.until(jobs[1].id, lambda now: now.state is JobState.RUNNING)
        assert [(await scene.jobs.find(job.id)).state for job in jobs[2:]] == [JobState.QUEUED] * 3
        assert scene.started == 2
        scene.gate.set()
        for job in jobs:
            assert (await scene.jobs.until(job.id, is_over)).state is JobState.DONE
    assert scene.max_at_once == 2


@pytest.mark.requirement("AP-005")
async def test_jobs_of_two_namespaces_do_not_wait_for_each_other() -> None:
    scene = Scene()
    async with scene.runner().running() as runner:
        jobs = [await runner.submit("catalog", scene.gated, namespace) for namespace in ("team-a", "team-b")]
        for job in jobs:
            await scene.jobs.until(job.id, lambda now: now.state is JobState.RUNNING)
        assert [(await scene.jobs.find(job.id)).namespace for job in jobs] == ["team-a", "team-b"]
        scene.gate.set()


async def test_a_full_queue_refuses_jobs_until_one_has_ended() -> None:
    scene = Scene()
    async with scene.runner(at_once=1, max_waiting=1).running() as runner:
        first = await runner.submit("catalog", scene.gated)
        await runner.submit("catalog", scene.gated)
        with pytest.raises(Unavailable, match="2 syncs"):
            await runner.submit("catalog", scene.gated)
        with pytest.raises(Unavailable):
            runner.require_room()
        assert len(await scene.jobs.page(None, 10)) == 2
        scene.gate.set()
        await scene.jobs.until(first.id, is_over)
        await runner.submit("catalog", scene.gated)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidRequest("no item could be read", hint="send some"), "no item could be read; send some"),
        (CatalogUnavailable("PostgreSQL is down"), "PostgreSQL is down"),
        (ZeroDivisionError("secret of the inside"), UNEXPECTED),
    ],
)
async def test_a_failed_job_has_a_reason(error: Exception, message: str) -> None:
    scene = Scene()
    async with scene.runner().running() as runner:
        job = await runner.submit("catalog", failing(error))
        failed = await scene.jobs.until(job.id, is_over)
    assert (failed.state, failed.error) == (JobState.FAILED, message)


async def test_text_that_no_database_stores_does_not_keep_a_job_from_ending() -> None:
    async def work(_: OnProgress) -> Outcome:
        return Outcome({"servers": [{"failed": "nul \0 and \ud800"}]}, "nul \0")

    scene = Scene()
    async with scene.runner().running() as runner:
        failed = await scene.jobs.until((await runner.submit("catalog", work)).id, is_over)
    assert failed.report == {"servers": [{"failed": "nul \ufffd and \ufffd"}]}
    assert failed.error == "nul \ufffd"


async def test_a_job_that_waits_or_works_long_has_heartbeats() -> None:
    scene = Scene()
    async with scene.runner(at_once=1).running() as runner:
        jobs = [await runner.submit("catalog", scene.gated) for _ in range(2)]
        for job in jobs:
            scene.time += SILENT_SECONDS + 1
            before = await scene.jobs.find(job.id)
            assert before.state is JobState.INTERRUPTED
            await scene.jobs.until(job.id, lambda now: now.state.is_open)


async def test_jobs_that_have_not_ended_are_interrupted_when_the_runner_ends() -> None:
    scene = Scene()
    async with scene.runner(at_once=1).running() as runner:
        done = await runner.submit("catalog", failing(InvalidRequest("no")))
        await scene.jobs.until(done.id, is_over)
        running = await runner.submit("catalog", scene.gated)
        await scene.jobs.until(running.id, lambda now: now.state is JobState.RUNNING)
        waiting = await runner.submit("catalog", scene.gated)
    states = [(await scene.jobs.find(job.id)).state for job in (done, running, waiting)]
    assert states == [JobState.FAILED, JobState.INTERRUPTED, JobState.INTERRUPTED]


async def test_a_job_whose_end_cannot_be_recorded_frees_its_slot_and_gets_no_heartbeats() -> None:
    scene = Scene()
    async with scene.runner(at_once=1, max_waiting=0).running() as runner:
        lost = await runner.submit("catalog", scene.gated)
        scene.jobs.down = True
        scene.gate.set()
        await asyncio.wait_for(scene.jobs.write_failed.wait(), SOON)
        scene.jobs.down = False
        scene.time += SILENT_SECONDS + 1
        next_job = await runner.submit("catalog", scene.gated)
        await scene.jobs.until(next_job.id, is_over)
        assert (await scene.jobs.find(lost.id)).state is JobState.INTERRUPTED


async def test_a_job_that_cannot_be_recorded_is_refused_and_takes_no_slot() -> None:
    scene = Scene()
    async with scene.runner(at_once=1, max_waiting=0).running() as runner:
        scene.jobs.down = True
        with pytest.raises(CatalogUnavailable):
            await runner.submit("catalog", scene.gated)
        runner.require_room()


async def test_jobs_of_one_source_run_in_the_order_they_came() -> None:
    scene = Scene()
    ended: list[int] = []

    def work(number: int) -> Work:
        async def run(_: OnProgress) -> Outcome:
            for _turn in range(10 - number):
                await asyncio.sleep(0)
            ended.append(number)
            return Outcome({})

        return run

    async with scene.runner(at_once=10).running() as runner:
        jobs = [await runner.submit("catalog", work(number)) for number in range(5)]
        await scene.jobs.until(jobs[-1].id, is_over)
    assert ended == [0, 1, 2, 3, 4]
