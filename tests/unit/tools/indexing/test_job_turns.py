"""Jobs of several namespaces: in turns, a few of each, and a place for administrators."""

import asyncio

import pytest

from toolscript.core.errors import TooManyRequests, Unavailable
from toolscript.core.taxonomy import Actor
from toolscript.core.values import OnProgress
from toolscript.testing.catalog import MemorySyncJobs
from toolscript.tools.catalog.jobs import MAX_OF_NAMESPACE, JobClient, JobRunner, Outcome

pytestmark = pytest.mark.requirement("SK-010")
MANAGER = JobClient(Actor("mia"), "items.import")
ADMIN = JobClient(Actor("admin"), "items.import", is_admin=True)


class Work:
    """Jobs that note when they begin, and end when they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gate = asyncio.Semaphore(0)
        self.changed = asyncio.Condition()

    def named(self, name: str):  # type: ignore[no-untyped-def]
        async def work(_: OnProgress) -> Outcome:
            async with self.changed:
                self.begun.append(name)
                self.changed.notify_all()
            await self.gate.acquire()
            return Outcome({}, count=3)

        return work

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= count)


async def test_a_namespace_that_queued_many_waits_for_itself_and_not_another_one_for_it() -> None:
    work = Work()
    async with JobRunner(MemorySyncJobs(), at_once=1).running() as runner:
        for number in range(3):
            await runner.submit(f"busy {number}", work.named("busy"), "busy", MANAGER)
        await work.until_begun(1)
        await runner.submit("calm", work.named("calm"), "calm", MANAGER)
        for count in (2, 3):
            work.gate.release()
            await work.until_begun(count)
        # "busy" was there first, and "calm" is served before its second waiting one.
        assert "calm" in work.begun[:3]
        for _ in range(4):
            work.gate.release()


async def test_a_namespace_has_a_few_open_jobs_and_the_next_one_is_429() -> None:
    work = Work()
    async with JobRunner(MemorySyncJobs()).running() as runner:
        for number in range(MAX_OF_NAMESPACE):
            await runner.submit(f"busy {number}", work.named("busy"), "busy", MANAGER)
        with pytest.raises(TooManyRequests) as refused:
            await runner.submit("one more", work.named("busy"), "busy", MANAGER)
        assert refused.value.details["retry_after_seconds"]
        await runner.submit("calm", work.named("calm"), "calm", MANAGER)


async def test_namespaces_cannot_take_the_last_places_from_administrators() -> None:
    work = Work()
    async with JobRunner(MemorySyncJobs(), at_once=2, max_waiting=4).running() as runner:
        for number in range(4):
            await runner.submit("source", work.named("any"), f"team-{number}", MANAGER)
        with pytest.raises(Unavailable):
            await runner.submit("source", work.named("any"), "team-9", MANAGER)
        for number in range(2):
            await runner.submit(f"own {number}", work.named("admin"), "team-0", ADMIN)
        with pytest.raises(Unavailable):
            runner.require_room()


async def test_a_job_is_one_entry_with_what_it_changed() -> None:
    work, jobs = Work(), MemorySyncJobs()
    work.gate.release()
    async with JobRunner(jobs).running() as runner:
        job = await runner.submit("bills", work.named("bills"), "default", MANAGER)
        async with asyncio.timeout(10):
            while (await jobs.find(job.id)).state.is_open:  # noqa: ASYNC110
                await asyncio.sleep(0)
    (change,) = jobs.changes.values()
    assert (change.actor.name, change.action, change.subject, change.count) == ("mia", "items.import", "bills", 3)
