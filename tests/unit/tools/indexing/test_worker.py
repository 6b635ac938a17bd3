"""A worker runs until only failing items are left."""

import asyncio
import logging

import pytest

from tests.unit.tools.indexing.builders import POISON, Scene, times_embedded, tool, tools
from toolscript.core.errors import EmbedderUnavailable, SetupError
from toolscript.core.values import Progress
from toolscript.tools.indexing.worker import WorkReport
from toolscript.tools.model.catalog import FAILING_AFTER, IndexVersionState

pytestmark = pytest.mark.requirement("SK-009")


async def test_a_drain_indexes_everything_in_batches() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(25))
    assert await scene.drain(batch=4) == WorkReport(indexed=25, left=0, failing=0)
    assert await (await scene.index()).count() == 25


async def test_a_drain_of_nothing_is_done_at_once() -> None:
    assert await Scene().drain() == WorkReport(0, 0, 0)


async def test_a_drain_ends_when_only_failing_items_are_left() -> None:
    scene = Scene()
    await scene.catalog.store("file", [*tools(5), tool(POISON)])
    assert await scene.drain(batch=2) == WorkReport(indexed=5, left=1, failing=0)
    for _ in range(FAILING_AFTER - 1):
        scene.time += 100
        report = await scene.drain()
    assert report == WorkReport(indexed=0, left=1, failing=1)


async def test_a_drain_gives_up_on_items_that_another_worker_never_finishes() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(2))
    await scene.dirty.claim(1, 1, lease_seconds=1e9)
    worker = await scene.worker()
    assert await worker.drain(patience_seconds=-1) == WorkReport(indexed=1, left=1, failing=0)


async def test_a_drain_raises_when_a_part_is_down() -> None:
    scene = Scene()
    scene.embedder.down = True
    await scene.catalog.store("file", tools(2))
    with pytest.raises(EmbedderUnavailable):
        await scene.drain()


async def test_concurrent_workers_index_each_item_once() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(40))
    reports = await asyncio.gather(*(scene.drain(batch=3) for _ in range(4)))
    assert sum(report.indexed for report in reports) == 40
    assert times_embedded(scene.embedder, tools(40)) == [1] * 40


async def test_progress_grows_to_the_total() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(9))
    seen: list[Progress] = []
    await (await scene.worker(batch=4, on_progress=seen.append)).drain()
    assert [(progress.done, progress.total) for progress in seen] == [(4, 9), (8, 9), (9, 9)]


async def test_a_worker_that_runs_forever_logs_an_unavailable_part_and_continues_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.embedder.down = True
    await scene.catalog.store("file", tools(2))
    done = asyncio.Event()
    logged: list[tuple[str, object]] = []

    def repair(record: logging.LogRecord) -> bool:
        logged.append((record.message, vars(record)["reason"]))
        scene.embedder.down = False
        scene.time += 1000
        return True

    def finish(_: Progress) -> None:
        done.set()

    caplog.handler.addFilter(repair)
    worker = await scene.worker(on_progress=finish)
    running = asyncio.ensure_future(worker.run_forever(poll_seconds=0.001))
    async with asyncio.timeout(30):
        await done.wait()
    running.cancel()
    # The handler is the same for all tests.
    caplog.handler.removeFilter(repair)
    assert logged == [("items postponed", "the embedder is down"), ("waiting", "the embedder is down")]
    assert (await scene.dirty.pending(1)).total == 0


async def test_a_worker_whose_index_was_dropped_ends_with_an_error() -> None:
    scene = Scene()
    worker = await scene.worker()
    other = await scene.dirty.begin("another model")
    await scene.dirty.set_state(other.id, IndexVersionState.LIVE)
    await scene.dirty.forget(1)
    with pytest.raises(SetupError, match="dropped"):
        await worker.run_forever()


async def test_a_stopped_worker_releases_its_batch_at_once() -> None:
    scene = Scene()
    scene.embedder.gate = asyncio.Event()
    await scene.catalog.store("file", tools(3))
    running = asyncio.ensure_future(scene.drain())
    async with asyncio.timeout(30):
        await scene.embedder.was_called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len((await scene.dirty.claim(1, 10, lease_seconds=60)).versions) == 3
