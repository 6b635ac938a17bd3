"""The text report has the metrics, and only those that were measured."""

from dataclasses import replace

import pytest

from tests.unit.eval.engines import JUDGED, NamingEngine
from toolscript_eval.dataset import EvalReport
from toolscript_eval.judging import judge
from toolscript_eval.report import compare, comparison_text, report_text

pytestmark = pytest.mark.slow


async def report(*, tells: bool = True, wrong: frozenset[str] = frozenset()) -> EvalReport:
    return await judge(
        NamingEngine(tells=tells, wrong=wrong),
        JUDGED,
        model="some-model",
        baselines={"echo": lambda text, depth: text.split()[:depth]},
        ablated={"ears": NamingEngine(wrong=frozenset({"t3"}))},
    )


def line_with(text: str, start: str) -> str:
    (match,) = [line for line in text.splitlines() if line.startswith(start)]
    return match


async def test_the_head_has_dataset_engine_and_model() -> None:
    text = report_text(replace(await report(), distractors="noise"))
    assert text.startswith("small with noise: 13 items, 15 queries, 2 of them with no answer\n")
    assert "naming, model some-model" in text


async def test_the_engine_and_each_baseline_have_a_row_under_the_same_columns() -> None:
    text = report_text(await report(wrong=frozenset({"t3", "t4"})))
    (head,) = [line.split() for line in text.splitlines() if "recall@5" in line]
    assert head == ["ndcg@10", "recall@1", "recall@5", "recall@10", "mrr", "hit@1", "step_recall"]
    engine, baseline = line_with(text, "naming  ").split(), line_with(text, "echo").split()
    assert len(engine) == len(baseline) == 1 + 2 * len(head)
    assert (engine[11], baseline[11]) == ("0.846", "1.000")
    assert engine[12].startswith("±.")
    assert baseline[12] == "±.000"
    assert max(map(len, text.splitlines())) <= 120


async def test_a_part_that_is_off_shows_what_it_is_worth() -> None:
    text = report_text(await report())
    row = line_with(text, "without ears")
    assert "0.972" in row
    assert "-0.0284" in row
    assert text.count("without ears") == 1, "it is no row of the first table"


async def test_confidence_curve_and_costs_are_below() -> None:
    text = report_text(await report())
    for name in ("calibration_error", "false_answers", "nothing_fits_auroc", "refused_without_gold"):
        assert line_with(text, name)
    assert line_with(text, "refused, nothing fits").split()[-7:] == ["0.0%", *["100.0%"] * 6]
    assert line_with(text, "refused, answer there").split()[-1] == "0.0%"
    assert line_with(text, "total").split() == ["total", "9.00", "15.30"]
    assert "tokens" in text


async def test_missing_measures_are_not_shown() -> None:
    text = report_text(await report(tells=False))
    for name in ("calibration", "refused", "p50", "tokens"):
        assert name not in text


async def test_a_comparison_names_the_difference_and_its_interval() -> None:
    before, after = await report(wrong=frozenset({"t3"})), await report()
    text = comparison_text(replace(before, model="older"), after, compare(before, after))
    assert "not the same: model was older, is some-model" in text
    row = line_with(text, "  ndcg@10")
    assert row.split()[1:4] == ["0.9716", "1.0000", "+0.0284"]
    assert "over 13 queries" in row
    assert line_with(text, "  hit@1").split() == ["hit@1", "0.9231", "1.0000", "+0.0769"]
