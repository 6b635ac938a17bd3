"""`python -m benchmarks search --load --least`: a ratio is judged only where both curves have an end."""

import sys
from collections.abc import Callable, Sequence

import pytest

from benchmarks.cli import bench_commands
from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats
from toolscript.cli.app import run
from toolscript.tools.model.query import Strategy

Benched = Callable[[LoadCurve, LoadCurve], tuple[int, str]]


def curve(carried: float, answered: Sequence[float] = ()) -> LoadCurve:
    """`answered` is what became of a rate that was too much."""
    metrics = LoadStats(carried, carried, 10, 1.0, 1.0, 1.0, 1.0, saturated=False)
    beyond = [LoadStats(100.0, one, 10, 9.0, 9.0, 9.0, 9.0, saturated=True) for one in answered]
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


def test_where_both_have_an_end_the_ratio_decides(benched: Benched) -> None:
    assert benched(curve(40, [50]), curve(40, [45]))[0] == 0
    code, said = benched(curve(40, [50]), curve(20, [30]))
    assert (code, "--rates" in said) == (2, False)


@pytest.mark.parametrize(
    ("bare", "ours", "endless"),
    [
        (curve(40), curve(40), "search and bare"),
        (curve(40), curve(40, [45]), "bare"),
        (curve(40, [50]), curve(40), "search"),
    ],
)
def test_without_an_end_it_fails_and_says_to_go_higher(
    benched: Benched, bare: LoadCurve, ours: LoadCurve, endless: str
) -> None:
    code, said = benched(bare, ours)
    assert code == 2
    assert f"no rate was too much for {endless}:" in said
    assert "higher --rates" in said
