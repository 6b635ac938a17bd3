"""Contract of SyncJobs: request, progress and outcome of a job."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import PATIENCE
from tests.contracts.paging import stays_whole
from tests.contracts.source_builders import Working, working_in_memory, working_in_postgres
from toolscript.core.errors import NotFound
from toolscript.core.postgres.pool import open_pool
from toolscript.tools.model.catalog import MAX_JOBS_KEPT, SILENT_SECONDS, JobProgress, JobState

pytestmark = pytest.mark.requirement("SK-010")


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Working]:
    if request.param == "memory":
        yield working_in_memory()
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=4, wait_seconds=PATIENCE) as pool:
            yield working_in_postgres(pool)


async def test_a_job_is_queued_runs_and_is_done(scene: Working) -> None:
    job = await scene.jobs.add("catalog")
    assert (job.state, job.source, job.done, job.total) == (JobState.QUEUED, "catalog", 0, None)
    assert (job.started_at, job.finished_at, job.report, job.error) == (None, None, None, None)
    assert await scene.jobs.find(job.id) == job
    await scene.jobs.start(job.id)
    await scene.jobs.beat([JobProgress(job.id, 3, 10)])
    running = await scene.jobs.find(job.id)
    assert (running.state, running.done, running.total) == (JobState.RUNNING, 3, 10)
    assert running.started_at is not None
    assert running.started_at >= job.created_at
    await scene.jobs.finish(job.id, JobState.DONE, {"added": 10})
    done = await scene.jobs.find(job.id)
    assert (done.state, done.report, done.error) == (JobState.DONE, {"added": 10}, None)
    assert done.finished_at is not None


async def test_a_job_that_failed_says_why_and_may_have_a_report_all_the_same(scene: Working) -> None:
    job = await scene.jobs.add("catalog")
    await scene.jobs.finish(job.id, JobState.FAILED, {"added": 1}, "a server is down")
    failed = await scene.jobs.find(job.id)
    assert (failed.state, failed.report, failed.error) == (JobState.FAILED, {"added": 1}, "a server is down")


async def test_a_job_without_a_heartbeat_reads_as_interrupted(scene: Working) -> None:
    queued, running, beating, done = [await scene.jobs.add(f"catalog {number}") for number in range(4)]
    await scene.jobs.start(running.id)
    await scene.jobs.start(beating.id)
    await scene.jobs.finish(done.id, JobState.DONE)
    await scene.let_pass(SILENT_SECONDS - 5)
    await scene.jobs.beat([JobProgress(beating.id, 1, None)])
    await scene.let_pass(10)
    result = {job.id: job.state for job in await scene.jobs.page(None, 10)}
    assert result == {
        queued.id: JobState.INTERRUPTED,
        running.id: JobState.INTERRUPTED,
        beating.id: JobState.RUNNING,
        done.id: JobState.DONE,
    }
    assert (await scene.jobs.find(running.id)).state is JobState.INTERRUPTED


async def test_only_open_jobs_are_interrupted_and_an_ended_one_has_no_heartbeat(scene: Working) -> None:
    first, second = [await scene.jobs.add("catalog") for _ in range(2)]
    await scene.jobs.finish(first.id, JobState.DONE)
    await scene.jobs.interrupt([first.id, second.id, 99])
    await scene.jobs.beat([JobProgress(first.id, 5, 5), JobProgress(second.id, 5, 5), JobProgress(99, 5, 5)])
    ended = [await scene.jobs.find(job.id) for job in (first, second)]
    assert [job.state for job in ended] == [JobState.DONE, JobState.INTERRUPTED]
    assert [job.done for job in ended] == [0, 0]
    assert ended[1].finished_at is not None


async def test_jobs_come_page_by_page_the_latest_first(scene: Working) -> None:
    added = [(await scene.jobs.add("catalog")).id for _ in range(5)]
    first = await scene.jobs.page(None, 3)
    second = await scene.jobs.page(first[-1].id, 3)
    assert [job.id for job in [*first, *second]] == added[::-1]
    assert len(second) == 2


async def test_the_latest_jobs_are_kept_and_those_that_are_open(scene: Working) -> None:
    still_open = await scene.jobs.add("open")
    for _ in range(3):
        await scene.jobs.finish((await scene.jobs.add("ended")).id, JobState.DONE)
    for _ in range(MAX_JOBS_KEPT):
        latest = await scene.jobs.add("later")
    kept = await scene.jobs.page(None, 2 * MAX_JOBS_KEPT)
    assert {job.source for job in kept} == {"open", "later"}
    assert (len(kept), kept[0].id, kept[-1].id) == (MAX_JOBS_KEPT + 1, latest.id, still_open.id)


async def test_an_unknown_job_is_not_found(scene: Working) -> None:
    with pytest.raises(NotFound, match="job 7"):
        await scene.jobs.find(7)


@pytest.mark.requirement("AP-001")
async def test_jobs_that_appear_between_pages_neither_repeat_nor_hide_others(scene: Working) -> None:
    for _ in range(8):
        await scene.jobs.add("catalog")

    async def ids(before: int | None, limit: int) -> list[int]:
        return [job.id for job in await scene.jobs.page(before, limit)]

    await stays_whole(ids, None, vanish=None, appear=lambda: scene.jobs.add("later"))
