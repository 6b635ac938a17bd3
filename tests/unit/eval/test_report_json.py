"""A report survives being written down, and two of them can be compared."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.eval.engines import JUDGED, NamingEngine
from toolscript.core.errors import InvalidRequest
from toolscript_eval.dataset import EvalReport, EvalRequest, SystemReport
from toolscript_eval.judging import judge
from toolscript_eval.report import (
    change_to_json,
    compare,
    differences_of_setup,
    earlier_report,
    report_from_json,
    report_to_json,
    result_of,
)

pytestmark = pytest.mark.slow

ASKED = EvalRequest(Path("set"))


async def report(wrong: frozenset[str] = frozenset()) -> EvalReport:
    engine = NamingEngine(wrong=wrong)
    baselines = {"echo": lambda text, depth: text.split()[:depth]}
    return await judge(engine, JUDGED, model="none", baselines=baselines, ablated={"ears": NamingEngine()}, seed=4)


def without_fractions(original: EvalReport) -> EvalReport:
    """Return the report with rounded values."""
    return report_from_json(report_to_json(original))


async def test_a_report_read_again_is_the_same() -> None:
    written = json.dumps(report_to_json(await report()))
    again = report_from_json(json.loads(written))
    assert json.dumps(report_to_json(again)) == written
    assert again == without_fractions(await report())
    original = await report()
    assert again.systems[0].measures["mrr"].value == pytest.approx(
        original.systems[0].measures["mrr"].value, abs=1e-6
    )
    assert [system.role for system in again.systems] == [system.role for system in original.systems]
    assert (again.curve[5].threshold, again.seed, again.unanswerable) == (0.25, 4, 2)


async def test_held_out_is_kept_and_empty_in_an_older_report() -> None:
    noted = replace(await report(), held_out="weights were fitted without this set")
    data = report_to_json(noted)
    assert report_from_json(data).held_out == noted.held_out
    del data["held_out"]
    assert report_from_json(data).held_out == ""


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"format": 99},
        {"systems": [{"system": "x"}]},
        {"systems": None},
        {"calibration": [{"right": 1}]},
        {"queries": "many"},
        {"systems": []},
    ],
)
async def test_something_else_is_refused_with_a_hint(broken: dict[str, object]) -> None:
    data = {**report_to_json(await report()), **broken} if broken else {}
    with pytest.raises(InvalidRequest) as raised:
        report_from_json(data)
    assert "--out" in raised.value.hint


async def test_a_comparison_pairs_the_queries() -> None:
    before, after = await report(wrong=frozenset({"t3", "t4", "t5"})), await report()
    changes = {change.measure: change for change in compare(before, after)}
    ndcg = changes["ndcg@10"]
    assert ndcg.paired is not None
    assert ndcg.paired.value == pytest.approx(ndcg.difference) == pytest.approx(3 * (1 - 0.63093) / 13, abs=1e-5)
    assert ndcg.paired.low <= ndcg.paired.value <= ndcg.paired.high
    assert ndcg.paired.queries == 13
    assert changes["hit@1"].difference == pytest.approx(3 / 13)
    assert changes["hit@1"].paired is None
    assert change_to_json(ndcg)["difference"] == round(ndcg.difference, 6)


async def test_only_what_both_have_is_compared() -> None:
    whole = await report()
    engine = whole.systems[0]
    less = SystemReport(engine.system, {"ndcg@10": engine.measures["ndcg@10"]}, {"q1": 0.5, "gone": 0.1})
    (only,) = compare(replace(whole, systems=(less,)), whole)
    assert only.paired is not None
    assert (only.paired.queries, only.paired.value) == (1, 0.5)
    strangers = replace(less, by_query={"gone": 0.1})
    assert compare(replace(whole, systems=(strangers,)), whole)[0].paired is None


async def test_another_setup_is_named() -> None:
    whole = await report()
    assert differences_of_setup(whole, whole) == []
    other = replace(whole, distractors="noise", items=99)
    assert differences_of_setup(whole, other) == ["distractors was none, is noise", "items was 13, is 99"]


async def test_a_result_has_the_comparison_when_there_is_something_to_compare_with() -> None:
    whole = await report()
    assert "compared" not in result_of(whole, ASKED, None).data
    result = result_of(whole, ASKED, without_fractions(whole))
    compared = result.data["compared"]
    assert isinstance(compared, list)
    assert [change["difference"] for change in compared] == pytest.approx([0.0] * len(compared), abs=1e-5)
    assert "compared with the earlier report" in result.text
    assert json.loads(json.dumps(result.data)) == result.data


async def test_an_earlier_report_may_be_one_that_was_a_comparison_itself() -> None:
    whole = await report()
    request = EvalRequest(Path("set"), before=result_of(whole, ASKED, whole).data)
    assert earlier_report(request) == without_fractions(whole)
    assert earlier_report(EvalRequest(Path("set"))) is None
