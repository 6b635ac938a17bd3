"""`python -m benchmarks search --load --least`: a ratio counts only where both curves reach saturation."""

import sys
from collections.abc import Callable, Sequence

import pytest

from benchmarks.cli import bench_commands
from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats
from toolscript.cli.app import run
from toolscript.tools.model.query import Strategy

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
