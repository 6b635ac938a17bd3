"""A process that answers requests runs on the faster loop, and collects garbage seldom."""

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
def test_what_is_there_at_the_start_is_not_looked_at_again() -> None:
    raise_gc_thresholds()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] > 10_000
