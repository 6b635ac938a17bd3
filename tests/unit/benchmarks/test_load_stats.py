"""Saturation, and the order of rates and targets."""

import pytest

from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats, is_saturated, rise, usual_rates
from toolscript.tools.model.query import Strategy


def step(rate: float, achieved: float | None = None, p95_ms: float = 20.0) -> LoadStats:
    got = rate if achieved is None else achieved
    saturated = is_saturated(got, rate, 10, p95_ms)
    return LoadStats(rate, got, int(rate * 10), 10.0, p95_ms, p95_ms, p95_ms, saturated)


@pytest.mark.parametrize(
    ("achieved", "p95_ms", "expected"),
    [
        (100.0, 50.0, False),
        (95.0, 50.0, False),
        (94.0, 50.0, True),
        (100.0, 1_000.0, False),
        (100.0, 1_001.0, True),
        (0.0, 0.0, True),
    ],
)
def test_a_rate_saturates_when_responses_are_missing_or_late(
    achieved: float, p95_ms: float, expected: bool
) -> None:
    assert is_saturated(achieved, 100.0, 10.0, p95_ms) is expected


def test_two_answers_at_the_edge_of_a_short_step_decide_nothing() -> None:
    assert not is_saturated(achieved=9.0, offered=10.0, seconds=2.0, p95_ms=50.0)
    assert is_saturated(achieved=9.0, offered=10.0, seconds=20.0, p95_ms=50.0)


async def test_both_get_the_same_requests_in_turn_until_each_is_saturated() -> None:
    maximum = {"search": 45.0, "bare": 65.0}
    requests: list[tuple[str, float, int]] = []

    async def measure(name: str, rate: float, first: int) -> LoadStats:
        requests.append((name, rate, first))
        return step(rate, min(rate, maximum[name]))

    curves = await rise(["search", "bare"], [20, 40, 60, 80, 100], measure)
    assert requests == [
        ("search", 20, 0),
        ("bare", 20, 0),
        ("bare", 40, 200),
        ("search", 40, 200),
        ("search", 60, 600),
        ("search", 60, 1200),
        ("bare", 60, 600),
        ("bare", 80, 1800),
        ("bare", 80, 2600),
    ]
    assert (curves["search"].throughput, curves["search"].carried) == (45, 40)
    assert (curves["bare"].throughput, curves["bare"].carried) == (65, 60)
    assert LoadComparison(Strategy.DIRECT, 9, False, curves["bare"], curves["search"]).throughput_ratio == 0.692


async def test_a_rate_that_saturates_only_once_ends_no_curve() -> None:
    answers = {20.0: [20.0], 40.0: [10.0, 40.0], 60.0: [30.0, 50.0], 80.0: [80.0]}

    async def measure(_: str, rate: float, __: int) -> LoadStats:
        return step(rate, answers[rate].pop(0))

    curve = (await rise(["search"], list(answers), measure))["search"]
    assert [(item.offered, item.achieved, item.saturated) for item in curve.steps] == [
        (20.0, 20.0, False),
        (40.0, 40.0, False),
        (60.0, 50.0, True),
    ]


def test_a_curve_without_saturation_is_incomplete() -> None:
    assert not LoadCurve((step(20), step(40))).is_complete
    assert LoadCurve((step(20), step(40, 30))).is_complete


def test_the_usual_rates_begin_low_and_rise_evenly() -> None:
    assert list(usual_rates(100)) == [10, 20, 40, 60, 80, 100]
    assert list(usual_rates(5)) == []
