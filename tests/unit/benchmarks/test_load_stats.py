"""Saturation, the order of rates and targets, and ratios that count only where both curves reach saturation."""

import sys
from collections.abc import Callable, Sequence

import pytest

from benchmarks.cli import bench_commands
from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats, is_saturated, rise, usual_rates
from toolscript.cli.app import run
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


Benched = Callable[[LoadCurve, LoadCurve], tuple[int, str]]


def curve(carried: float, answered: Sequence[float] = ()) -> LoadCurve:
    """`answered`: responses per second at the saturating rate."""
    metrics = LoadStats(carried, carried, 10, 1.0, 1.0, 1.0, 1.0, saturated=False)
    beyond = [LoadStats(100.0, item, 10, 9.0, 9.0, 9.0, 9.0, saturated=True) for item in answered]
    return LoadCurve((metrics, *beyond))


@pytest.fixture
def benched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Benched:
    def bench(bare: LoadCurve, ours: LoadCurve) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["benchmarks", "search", "--load", "--least", "0.8"])
        measured = LoadComparison(Strategy.DIRECT, 40, False, bare, ours)
        monkeypatch.setattr("benchmarks.search.bench_load", lambda **_: measured)
        with pytest.raises(SystemExit) as ended:
            run(bench_commands())
        return int(ended.value.code or 0), capsys.readouterr().err

    return bench


def test_the_ratio_decides_when_both_are_saturated(benched: Benched) -> None:
    assert benched(curve(40, [50]), curve(40, [45]))[0] == 0
    code, message = benched(curve(40, [50]), curve(20, [30]))
    assert (code, "--rates" in message) == (2, False)


@pytest.mark.parametrize(
    ("bare", "ours", "endless"),
    [
        (curve(40), curve(40), "search and bare"),
        (curve(40), curve(40, [45]), "bare"),
        (curve(40, [50]), curve(40), "search"),
    ],
)
def test_without_saturation_it_fails_and_suggests_higher_rates(
    benched: Benched, bare: LoadCurve, ours: LoadCurve, endless: str
) -> None:
    code, message = benched(bare, ours)
    assert code == 2
    assert f"no rate saturated {endless}:" in message
    assert "higher --rates" in message
