"""A throttled job rests by its share, and longer while searches are slow."""

import asyncio
import time
from collections.abc import Callable

import pytest

from toolscript.core.errors import IndexUnavailable
from toolscript.documents import throttle
from toolscript.documents.throttle import MAX_REST_SECONDS, MAX_TIMES, PROBES, Throttle

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "PROBE_EVERY_SECONDS", 0.001)


class Engine:
    """Searches in the given time, or fails."""

    def __init__(self) -> None:
        self.seconds = 0.002
        self.is_down = False
        self.searches = 0

    async def search(self) -> None:
        self.searches += 1
        if self.is_down:
            raise IndexUnavailable("away", hint="start it")
        await asyncio.sleep(self.seconds)


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never came to that")


async def test_a_pause_rests_in_proportion_to_the_work() -> None:
    began = time.monotonic()
    await Throttle(rest=2.0).pause(began - 0.05)
    assert 0.09 < time.monotonic() - began < 1.0


async def test_rests_get_longer_while_searches_are_slow_and_shorter_afterwards() -> None:
    engine = Engine()
    pace = Throttle(1.0, engine.search)
    async with pace.watched():
        assert pace.times_longer == 1.0
        engine.seconds = 0.05
        await until(lambda: pace.times_longer >= 4.0)
        engine.seconds = 0.0
        await until(lambda: pace.times_longer == 1.0)


async def test_an_engine_that_does_not_respond_counts_as_slow() -> None:
    engine = Engine()
    pace = Throttle(1.0, engine.search)
    async with pace.watched():
        engine.is_down = True
        await until(lambda: pace.times_longer == MAX_TIMES)


async def test_a_rest_has_a_maximum_however_slow_searches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_REST_SECONDS", 0.2)
    pace = Throttle(1.0)
    pace.times_longer = MAX_TIMES
    began = time.monotonic()
    await pace.pause(began - 0.1)
    assert 0.19 < time.monotonic() - began < 2.0
    assert MAX_REST_SECONDS <= 10


async def test_the_baseline_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow searches because of high traffic at noon do not slow the job until night."""
    engine = Engine()
    pace = Throttle(1.0, engine.search)
    async with pace.watched():
        engine.seconds = 0.05
        await until(lambda: pace.times_longer >= 4.0)
        monkeypatch.setattr(throttle, "LOOK_AGAIN_SECONDS", 0.0)
        await pace.pause(time.monotonic())
        monkeypatch.setattr(throttle, "LOOK_AGAIN_SECONDS", 300.0)
        await until(lambda: pace.times_longer == 1.0)


async def test_a_throttle_without_rests_sends_no_probes() -> None:
    engine = Engine()
    async with Throttle(0.0, engine.search).watched():
        await asyncio.sleep(0.05)
    assert engine.searches == 0


async def test_probes_stop_when_the_job_is_done() -> None:
    engine = Engine()
    async with Throttle(1.0, engine.search).watched():
        pass
    searches = engine.searches
    assert searches >= PROBES
    await asyncio.sleep(0.05)
    assert engine.searches == searches
