"""A server process runs on the faster event loop, and rarely collects garbage."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from toolscript.server.processes import raise_gc_thresholds, run


@pytest.fixture
def usual_collecting() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_a_faster_event_loop_is_used_where_there_is_one() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(run(loop()), uvloop.Loop)


@pytest.mark.usefixtures("usual_collecting")
def test_objects_of_the_start_are_never_scanned_again() -> None:
    raise_gc_thresholds()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] > 10_000
