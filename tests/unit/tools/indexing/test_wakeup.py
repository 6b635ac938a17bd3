"""A change in the same process wakes the worker at once; one elsewhere is found at its next look."""

import asyncio

import pytest

from tests.unit.tools.indexing.builders import Scene, tools
from toolscript.testing import MemoryCatalogContents
from toolscript.tools.indexing.wakeup import Wakeup, WakingCatalog, WakingContents
from toolscript.tools.indexing.worker import Worker

pytestmark = pytest.mark.requirement("SK-009")

NEVER_SECONDS = 1e6
PATIENCE_SECONDS = 30.0


async def until_indexed(scene: Scene, count: int) -> None:
    index = await scene.index()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await index.count() != count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_call_ends_the_wait_also_one_that_came_before_it() -> None:
    wakeup = Wakeup()
    wakeup.call()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await wakeup.wait(NEVER_SECONDS)
    await wakeup.wait(0.001)


async def test_each_write_in_this_process_wakes_a_worker_that_would_sleep_for_days() -> None:
    scene, wakeup = Scene(), Wakeup()
    catalog = WakingCatalog(scene.catalog, wakeup.call).of("default")
    contents = WakingContents(MemoryCatalogContents(scene.catalog), wakeup.call).within(None)
    worker = await scene.worker(wakeup=wakeup)
    running = asyncio.ensure_future(worker.run_forever(poll_seconds=NEVER_SECONDS))
    await catalog.store("file", tools(6))
    await until_indexed(scene, 6)
    await catalog.remove("file", ["tool_0"])
    await until_indexed(scene, 5)
    await catalog.keep_only("file", ["tool_1", "tool_2", "tool_3"])
    await until_indexed(scene, 3)
    (first, *_) = await catalog.scan(0, 10)
    await contents.remove(first.id)
    await until_indexed(scene, 2)
    await contents.remove_source("file", 10)
    await until_indexed(scene, 0)
    await ended(worker, running)


async def ended(worker: Worker, running: "asyncio.Future[None]") -> None:
    worker.end()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await running


async def test_a_worker_that_ends_finishes_its_batch() -> None:
    scene = Scene()
    scene.embedder.gate = asyncio.Event()
    await scene.catalog.store("file", tools(3))
    worker = await scene.worker(batch=2)
    running = asyncio.ensure_future(worker.run_forever())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await scene.embedder.was_called.wait()
    worker.end()
    scene.embedder.gate.set()
    await ended(worker, running)
    assert (await scene.dirty.pending(1)).total == 1
    assert len((await scene.dirty.claim(1, 10, lease_seconds=60)).versions) == 1
