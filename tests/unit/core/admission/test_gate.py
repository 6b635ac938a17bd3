"""Which requests are admitted, wait or are rejected."""

import asyncio
from dataclasses import dataclass

import pytest

from toolscript.core.web.admission import (
    FIRST_GUESS_SECONDS,
    LATE_SECONDS,
    MIN_CONCURRENT,
    Gate,
    Limits,
    QueueTimeout,
    Ticket,
)

pytestmark = pytest.mark.requirement("OP-006")
PUNCTUAL, LATE = 0.0, LATE_SECONDS * 2


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def taken(gate: Gate, count: int) -> list[Ticket]:
    entered = [gate.enter() for _ in range(count)]
    assert None not in entered
    return [ticket for ticket in entered if ticket is not None]


async def test_beyond_the_limit_requests_are_rejected_without_a_queue() -> None:
    gate = Gate(Limits(2))
    first, _ = taken(gate, 2)
    assert gate.enter() is None
    first.release()
    assert gate.enter() is not None


async def test_the_expected_wait_limits_the_queue() -> None:
    gate = Gate(Limits(2, max_queue_seconds=FIRST_GUESS_SECONDS * 3))
    taken(gate, 2 + 3)
    assert (gate.running, gate.waiting, gate.is_full) == (2, 3, True)
    assert gate.enter() is None


async def test_a_burst_is_taken_however_slow_the_requests_are() -> None:
    clock = Clock()
    gate = Gate(Limits(24, max_queue_seconds=0.5, burst=50), clock)
    for _ in range(40):
        tickets = taken(gate, MIN_CONCURRENT)
        clock.now += 5.0
        for ticket in tickets:
            ticket.release()
    taken(gate, 50)
    assert (gate.running, gate.waiting) == (MIN_CONCURRENT, 50 - MIN_CONCURRENT)
    assert gate.enter() is None


async def test_the_last_of_a_burst_waits_longer_than_the_queue_alone_allows() -> None:
    gate = Gate(Limits(1, max_queue_seconds=0.0, burst=2, burst_seconds=30.0))
    first, second = taken(gate, 2)
    waiting = asyncio.ensure_future(second.turn())
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    first.release()
    await asyncio.wait_for(waiting, 10)


async def test_slow_requests_make_the_queue_short_and_quick_ones_make_it_long() -> None:
    clock = Clock()

    def length_after(seconds_each: float) -> int:
        gate = Gate(Limits(1, max_queue_seconds=1.0), clock)
        (running,) = taken(gate, 1)
        for _ in range(100):
            (following,) = taken(gate, 1)
            clock.now += seconds_each
            running.release()
            running = following
        while gate.enter() is not None:
            pass
        return gate.waiting

    assert length_after(0.5) <= 2
    assert 50 <= length_after(0.01) <= 110


async def test_waiting_requests_are_admitted_in_order() -> None:
    gate = Gate(Limits(1, max_queue_seconds=1.0))
    running, second, third = taken(gate, 3)
    running.release()
    assert (second.waits, third.waits) == (False, True)
    await second.turn()
    second.release()
    await third.turn()


async def test_a_request_that_gives_up_leaves_the_queue_and_takes_no_place() -> None:
    gate = Gate(Limits(1, max_queue_seconds=1.0))
    running, second, third = taken(gate, 3)
    second.release()
    running.release()
    running.release()
    assert (gate.running, gate.waiting, third.waits) == (1, 0, False)


async def test_a_request_does_not_wait_forever() -> None:
    gate = Gate(Limits(1, max_queue_seconds=0.05))
    _, second = taken(gate, 2)
    with pytest.raises(QueueTimeout):
        await asyncio.wait_for(second.turn(), 10)
    assert gate.waiting == 0


async def test_a_request_within_the_hard_limit_waits_no_longer_than_its_maximum() -> None:
    gate = Gate(Limits(MIN_CONCURRENT + 1, max_queue_seconds=0.05))
    *_, last = taken(gate, MIN_CONCURRENT + 1)
    assert last.waits
    await asyncio.wait_for(last.turn(), 10)
    assert (gate.running, gate.waiting) == (MIN_CONCURRENT + 1, 0)


async def test_more_run_while_some_wait_and_the_event_loop_is_not_late() -> None:
    gate = Gate(Limits(MIN_CONCURRENT * 3))
    tickets = taken(gate, MIN_CONCURRENT * 3)
    assert gate.running == MIN_CONCURRENT
    for _ in range(10):
        gate.adapt(LATE)
    assert gate.running == MIN_CONCURRENT
    for _ in range(10):
        gate.adapt(PUNCTUAL)
    assert gate.running == MIN_CONCURRENT * 3
    for ticket in tickets:
        ticket.release()
    for _ in range(10):
        gate.adapt(PUNCTUAL)
    assert gate.limit == MIN_CONCURRENT
