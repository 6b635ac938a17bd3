"""An open loop against servers that are quick, slow, stalled or silent, in virtual time."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from benchmarks.measurements import LoadStats, by_minute, stats_of
from benchmarks.open_loop import UNANSWERED, UNSENT, Answer, OpenLoop, Run, Schedule
from tests.unit.benchmarks.virtual_time import FakeLine, in_virtual_time
from toolscript.core.values import Progress

PATIENCE = 5.0


def quick(now: float) -> float:
    return now + 0.02


def stalled(since: float, until: float) -> Callable[[float], float]:
    """Return a server that stalls: requests during the stall are answered after it."""
    return lambda now: (until if since <= now < until else now) + 0.02


class EveryOtherIsWrong(FakeLine):
    def send(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        if len(self.requests) % 2:
            self.requests.append(request)
            asyncio.get_running_loop().call_soon(answered, Answer("degraded"))
        else:
            super().send(request, answered)


def run(lines: Sequence[FakeLine], rate: float, seconds: float, requests: Sequence[bytes] = (b"a", b"b")) -> Run:
    loop = OpenLoop(lines, requests, patience_seconds=PATIENCE)
    return in_virtual_time(loop.run(Schedule(rate, seconds)))


def metrics(lines: Sequence[FakeLine], rate: float, seconds: float) -> LoadStats:
    return stats_of(run(lines, rate, seconds))


def test_requests_are_sent_evenly_and_in_turn() -> None:
    line = FakeLine(quick)
    done = run([line], rate=10, seconds=2)
    gaps = [round(request.due - done.began, 6) for request in done.requests]
    assert gaps == [round(number / 10, 6) for number in range(20)]
    assert line.requests == [b"a", b"b"] * 10


def test_a_server_that_keeps_up_shows_its_own_latency_and_the_whole_rate() -> None:
    result = metrics([FakeLine(quick) for _ in range(4)], rate=50, seconds=4)
    assert (result.p50_ms, result.p99_ms, result.max_ms) == pytest.approx((20, 20, 20), abs=0.01)
    assert result.achieved == pytest.approx(50, rel=0.02)
    assert not result.saturated
    assert result.errors == {}


@pytest.mark.parametrize(("rate", "seconds"), [(50, 1), (50, 4), (3.5, 1), (0.8, 2)])
def test_no_more_is_answered_in_a_second_than_was_offered(rate: float, seconds: float) -> None:
    late = 0.5 / rate
    lines = [FakeLine(lambda now: now + late) for _ in range(4)]
    assert metrics(lines, rate, seconds).achieved == pytest.approx(rate, abs=0.01)
    assert metrics(lines, rate, seconds).achieved <= rate


def test_the_time_before_the_first_answer_counts() -> None:
    result = metrics([FakeLine(lambda now: now + 2.0) for _ in range(64)], rate=10, seconds=4)
    assert result.achieved == pytest.approx(5, abs=0.3)
    assert result.saturated


@pytest.mark.parametrize("connections", [1, 64])
def test_a_stall_delays_every_request_that_was_due_meanwhile(connections: int) -> None:
    """A closed loop would have sent one request into the stall, and seen one slow response."""
    lines = [FakeLine(stalled(1.0, 2.0)) for _ in range(connections)]
    done = run(lines, rate=20, seconds=4)
    waited = {round(request.due - done.began, 2): request.done - request.due for request in done.requests}
    assert waited[0.5] == pytest.approx(0.02, abs=0.02)
    assert waited[1.05] > 0.9
    assert waited[1.5] > 0.45
    assert sum(wait > 0.1 for wait in waited.values()) >= 17
    result = stats_of(done)
    assert result.p95_ms > 700
    assert result.errors == {}


def test_a_server_slower_than_the_rate_is_saturated_at_its_own_throughput() -> None:
    result = metrics([FakeLine(lambda now: now + 0.5)], rate=10, seconds=10)
    assert result.achieved == pytest.approx(2, abs=0.2)
    assert result.saturated
    assert result.p50_ms > 5_000


def test_unanswered_and_unsent_requests_count_with_the_time_they_waited() -> None:
    line = FakeLine(lambda _: None)
    done = run([line], rate=4, seconds=1)
    assert [request.fault for request in done.requests] == [UNANSWERED, UNSENT, UNSENT, UNSENT]
    assert line.given_up == 1
    result = stats_of(done)
    assert result.errors == {UNANSWERED: 1, UNSENT: 3}
    assert result.p50_ms > PATIENCE * 1000
    assert result.achieved == 0
    assert result.saturated


def test_a_quick_invalid_response_is_an_error_and_improves_no_metric() -> None:
    result = metrics([EveryOtherIsWrong(lambda now: now + 0.09)], rate=10, seconds=4)
    assert result.errors == {"degraded": 20}
    assert result.achieved == pytest.approx(5, abs=0.5)
    assert result.p50_ms == pytest.approx(90, abs=0.1)
    assert result.saturated


def test_requests_that_waited_for_a_connection_do_not_make_the_generator_look_late() -> None:
    result = metrics([FakeLine(lambda now: now + 0.5)], rate=10, seconds=4)
    assert result.late_p95_ms < 1


def test_results_by_minute_show_a_drift() -> None:
    slower_later = FakeLine(lambda now: now + (0.01 if now < 60 else 0.4))
    done = run([slower_later, FakeLine(slower_later._when), FakeLine(slower_later._when)], rate=2, seconds=90)
    first, second = by_minute(done)
    assert (first.requests, second.requests) == (120, 60)
    assert first.p95_ms < 20
    assert second.p50_ms == pytest.approx(400, abs=1)
    assert second.achieved == pytest.approx(2, rel=0.05)


def test_reported_stages_and_strategies_are_counted() -> None:
    result = metrics([FakeLine(quick, Answer("", "direct", {"embedding": 7.0}))], rate=5, seconds=2)
    assert result.strategies == {"direct": 10}
    assert [(stage.name, stage.count, stage.p95_ms) for stage in result.stages] == [("embedding", 10, 7.0)]


def test_progress_counts_responses() -> None:
    output: list[Progress] = []
    in_virtual_time(OpenLoop([FakeLine(quick)], [b"a"], on_progress=output.append).run(Schedule(5, 1), "x"))
    assert output[-1] == Progress("x", 5, 5)
