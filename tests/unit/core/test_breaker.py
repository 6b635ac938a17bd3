"""When a breaker opens, and what never opens it. The same rule on the real engines: tests/chaos."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import pytest

from toolscript.core.breaker import PLACES_IN_DOUBT, Breaker, Engine, Patience
from toolscript.core.errors import CatalogUnavailable, InvalidRequest, Unavailable

QUICK = Patience(silent_seconds=0.05, probe_seconds=0.05, pause_seconds=0.01)
LATE = 5.0


@dataclass
class Hangable:
    """An engine whose queries and health can hang, each alone."""

    queries: asyncio.Event = field(default_factory=asyncio.Event)
    health: asyncio.Event = field(default_factory=asyncio.Event)
    probes: int = 0

    def hang(self) -> None:
        self.queries.clear()
        self.health.clear()

    def heal(self) -> None:
        self.queries.set()
        self.health.set()

    async def probe(self) -> None:
        self.probes += 1
        await self.health.wait()


@dataclass
class Guarded:
    engine: Hangable
    breaker: Breaker

    async def ask(self, failure: BaseException | None = None) -> str:
        with self.breaker.call() as call:
            async with call.cancelled():
                if failure is not None:
                    raise failure
                await self.engine.queries.wait()
        return "answer"


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    engine = Hangable()
    engine.heal()
    named = Engine("Engine", CatalogUnavailable, engine.probe, lambda error: isinstance(error, OSError))
    with Breaker(named, QUICK).opened() as breaker:
        yield Guarded(engine, breaker)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LATE):
        while not holds():  # noqa: ASYNC110 - a breaker has no event
            await asyncio.sleep(0.005)


async def refused(asking: Awaitable[object]) -> Unavailable:
    with pytest.raises(CatalogUnavailable) as raised:
        await asking
    return raised.value


async def test_an_engine_that_hangs_is_given_up_and_its_waiting_calls_end(guarded: Guarded) -> None:
    guarded.engine.hang()
    waiting = [asyncio.ensure_future(guarded.ask()) for _ in range(3)]
    for each in waiting:
        error = await refused(asyncio.wait_for(each, LATE))
        assert error.details == {"engine": "Engine", "retry_after_seconds": 1}
    assert guarded.breaker.is_open
    began = asyncio.get_running_loop().time()
    await refused(guarded.ask())
    assert asyncio.get_running_loop().time() - began < QUICK.silent_seconds


async def test_a_probe_in_the_background_closes_it_without_any_call(guarded: Guarded) -> None:
    guarded.engine.hang()
    await refused(guarded.ask())
    guarded.engine.heal()
    await until(lambda: not guarded.breaker.is_open)
    assert await guarded.ask() == "answer"


async def test_a_slow_query_opens_nothing_while_the_engine_answers_its_probe(guarded: Guarded) -> None:
    guarded.engine.queries.clear()
    slow = [asyncio.ensure_future(guarded.ask()) for _ in range(3)]
    await until(lambda: guarded.engine.probes >= 3)
    assert not guarded.breaker.is_open
    guarded.engine.heal()
    assert await asyncio.gather(*slow) == ["answer"] * 3


async def test_failed_calls_open_nothing_while_the_engine_answers_its_probe(guarded: Guarded) -> None:
    for count in range(1, 4):
        with pytest.raises(OSError, match="lost"):
            await guarded.ask(OSError("lost"))
        await until(lambda: guarded.engine.probes == count)  # noqa: B023
    assert not guarded.breaker.is_open


async def test_errors_of_the_caller_do_not_even_cause_a_doubt(guarded: Guarded) -> None:
    for _ in range(20):
        with pytest.raises(InvalidRequest):
            await guarded.ask(InvalidRequest("no such field"))
    assert (guarded.engine.probes, guarded.breaker.is_open) == (0, False)


async def test_a_call_that_is_answered_outweighs_a_probe_that_is_not(guarded: Guarded) -> None:
    """A busy machine may be late with the probe alone."""
    guarded.engine.health.clear()
    with pytest.raises(OSError, match="lost"):
        await guarded.ask(OSError("lost"))
    await until(lambda: guarded.engine.probes == 1)
    assert await guarded.ask() == "answer"
    await asyncio.sleep(2 * QUICK.probe_seconds)
    assert not guarded.breaker.is_open


async def test_an_engine_that_is_gone_is_given_up_after_one_call(guarded: Guarded) -> None:
    guarded.engine.health.clear()
    with pytest.raises(OSError, match="refused"):
        await guarded.ask(OSError("refused"))
    await until(lambda: guarded.breaker.is_open)


async def test_a_silent_engine_gets_only_a_few_calls_at_a_time(guarded: Guarded) -> None:
    guarded.engine.queries.clear()
    async with AsyncExitStack() as ending:
        waiting = [asyncio.ensure_future(guarded.ask()) for _ in range(PLACES_IN_DOUBT)]
        ending.callback(guarded.engine.heal)
        await until(lambda: guarded.engine.probes >= 2)
        await refused(guarded.ask())
        assert not guarded.breaker.is_open
    assert await asyncio.gather(*waiting) == ["answer"] * PLACES_IN_DOUBT
    assert await guarded.ask() == "answer"


async def test_a_caller_who_goes_away_says_nothing_of_the_engine(guarded: Guarded) -> None:
    guarded.engine.queries.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(guarded.ask(), QUICK.silent_seconds / 5)
    assert (guarded.engine.probes, guarded.breaker.is_open) == (0, False)


async def test_calls_that_begin_one_after_the_other_are_no_answer_to_the_probe(guarded: Guarded) -> None:
    guarded.engine.hang()

    async def one_after_the_other() -> None:
        while not guarded.breaker.is_open:
            with suppress(TimeoutError):
                await asyncio.wait_for(guarded.ask(), 1.6 * QUICK.silent_seconds)

    with suppress(CatalogUnavailable):
        await asyncio.wait_for(one_after_the_other(), LATE)
    assert guarded.breaker.is_open


async def test_a_probe_whose_driver_cancels_it_is_asked_again() -> None:
    cancelled = 0

    async def probe() -> None:
        nonlocal cancelled
        if cancelled < 3:
            cancelled += 1
            raise asyncio.CancelledError

    named = Engine("Engine", CatalogUnavailable, probe, lambda error: isinstance(error, OSError))
    with Breaker(named, QUICK).opened() as breaker:
        with pytest.raises(OSError, match="gone"), breaker.call():
            raise OSError("gone")
        await until(lambda: breaker.is_open)
        await until(lambda: not breaker.is_open)
    assert cancelled == 3
