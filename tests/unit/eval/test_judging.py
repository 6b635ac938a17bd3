"""Every query runs, relevant items are really removed when they should be, and the metrics follow."""

import json
from dataclasses import replace

import pytest

from tests.unit.eval.engines import ITEMS, JUDGED, QUERIES, NamingEngine, query
from toolscript.core.errors import InvalidRequest
from toolscript.core.values import Progress
from toolscript_eval.dataset import CalibrationBin, Dataset, EvalReport, Measure, SystemRole
from toolscript_eval.judging import evenly_spread, judge
from toolscript_eval.report import report_from_json, report_text, report_to_json

pytestmark = pytest.mark.slow

ANSWERABLE = [query for query in QUERIES if query.answerable]


def value(report: EvalReport, measure: str, system: int = 0) -> float:
    return report.systems[system].measures[measure].value


async def test_an_engine_that_finds_everything_is_perfect() -> None:
    report = await judge(NamingEngine(), JUDGED, model="none")
    assert (report.dataset, report.engine, report.model) == ("small", "naming", "none")
    assert (report.items, report.queries, report.unanswerable) == (13, 15, 2)
    engine = report.systems[0]
    assert engine.measures["ndcg@10"] == Measure(1.0, 1.0, 1.0, 13)
    assert {value(report, name) for name in ("recall@5", "recall@10", "mrr", "hit@1", "step_recall")} == {1.0}
    assert value(report, "recall@1") == pytest.approx(12.5 / 13), "one of the queries needs two items"
    assert engine.by_query == {query.id: 1.0 for query in ANSWERABLE}


async def test_wrong_answers_lower_every_measure() -> None:
    report = await judge(NamingEngine(wrong=frozenset({"t3", "t4"})), JUDGED, model="none")
    measures = report.systems[0].measures
    assert value(report, "hit@1") == pytest.approx(11 / 13)
    assert value(report, "mrr") == pytest.approx(12 / 13)
    assert report.systems[0].by_query["q3"] == pytest.approx(0.6309, abs=1e-4)
    assert measures["ndcg@10"].low < measures["ndcg@10"].value < measures["ndcg@10"].high


async def test_confidence_is_judged_on_answers_and_on_none() -> None:
    report = await judge(NamingEngine(wrong=frozenset({"t3"})), JUDGED, model="none")
    assert value(report, "nothing_fits_auroc") == 1.0
    assert (value(report, "false_answers"), value(report, "false_refusals")) == (0.0, 0.0)
    assert report.systems[0].measures["false_answers"].queries == 2
    expected = (13 * abs(0.9 - 12 / 13) + 2 * 0.2) / 15
    assert value(report, "calibration_error") == pytest.approx(expected)
    low, high = report.calibration
    assert low == CalibrationBin(0.2, 0.0, 2)
    assert high.queries == 13
    assert high.right == pytest.approx(12 / 13)


async def test_slices_are_measured_apart_by_the_fields_of_the_queries() -> None:
    labelled = [
        replace(query, labels={"lang": "de" if index < 5 else "en", "kind": "yes" if query.answerable else "no"})
        for index, query in enumerate(QUERIES)
    ]
    report = await judge(
        NamingEngine(wrong=frozenset({"t3"}), unsure=0.9),
        replace(JUDGED, queries=labelled),
        model="none",
        by=("lang", "kind"),
    )
    slices = {(part.name, part.value): part for part in report.slices}
    assert list(slices) == [("lang", "en"), ("lang", "de"), ("kind", "yes"), ("kind", "no")], "the largest first"
    assert (slices["lang", "en"].queries, slices["lang", "de"].queries) == (10, 5)
    assert slices["lang", "en"].measures["hit@1"].value != slices["lang", "de"].measures["hit@1"].value
    assert set(slices["kind", "no"].measures) == {"false_answers"}
    assert slices["kind", "no"].measures["false_answers"] == Measure(1.0, 1.0, 1.0, 2)
    assert "false_answers" not in slices["kind", "yes"].measures
    text = report_text(report)
    assert "by lang" in text
    assert "by kind" in text
    assert report_from_json(json.loads(json.dumps(report_to_json(report)))).slices == tuple(
        replace(part, measures={name: _rounded(measure) for name, measure in part.measures.items()})
        for part in report.slices
    )


def _rounded(measure: Measure) -> Measure:
    return Measure(round(measure.value, 6), round(measure.low, 6), round(measure.high, 6), measure.queries)


async def test_a_report_tells_how_many_queries_there_were_to_sample_from() -> None:
    report = await judge(NamingEngine(), evenly_spread(JUDGED, 5), model="none", without_gold=False)
    assert (report.queries, report.sampled_from) == (5, 15)
    assert "5 queries of 15, evenly sampled" in report_text(report)
    assert report_from_json(json.loads(json.dumps(report_to_json(report)))).sampled_from == 15
    whole = await judge(NamingEngine(), evenly_spread(JUDGED, 15), model="none", without_gold=False)
    assert whole.sampled_from is None
    assert "sampled" not in report_text(whole)


async def test_a_field_that_no_query_has_is_refused_before_anything_is_measured() -> None:
    engine = NamingEngine()
    with pytest.raises(InvalidRequest, match="no query has a field 'colour'"):
        await judge(engine, JUDGED, model="none", by=("colour",))


async def test_an_overconfident_engine_is_measured_as_such() -> None:
    report = await judge(NamingEngine(unsure=0.9), JUDGED, model="none")
    assert value(report, "nothing_fits_auroc") == 0.5
    assert value(report, "false_answers") == 1.0
    assert (value(report, "refused_without_gold"), value(report, "without_gold_auroc")) == (0.0, 0.5)


async def test_the_right_items_of_a_query_are_really_gone() -> None:
    engine = NamingEngine()
    report = await judge(engine, JUDGED, model="none", seed=7)
    assert engine.loaded[0] == {item.key for item in ITEMS}
    assert len(engine.loaded) == 1 + 5
    without = engine.asked[1 + len(QUERIES) :]
    assert sorted(text for text, _ in without) == sorted(query.text for query in ANSWERABLE)
    assert all(there.isdisjoint(text.split()) for text, there in without)
    assert all("decoy" in there for _, there in without)
    assert (value(report, "refused_without_gold"), value(report, "without_gold_auroc")) == (1.0, 1.0)


async def test_the_folds_follow_the_seed() -> None:
    def folds(engine: NamingEngine) -> list[frozenset[str]]:
        return engine.loaded[1:]

    engines = [NamingEngine() for _ in range(3)]
    reports = [
        await judge(engine, JUDGED, model="none", seed=seed)
        for engine, seed in zip(engines, (1, 1, 2), strict=True)
    ]
    assert folds(engines[0]) == folds(engines[1]) != folds(engines[2])
    assert reports[0].systems[0].measures["mrr"] == reports[1].systems[0].measures["mrr"]


async def test_without_gold_can_be_left_out() -> None:
    engine = NamingEngine()
    report = await judge(engine, JUDGED, model="none", without_gold=False)
    assert len(engine.loaded) == 1
    assert "without_gold_auroc" not in report.systems[0].measures
    assert report.curve[0].refused_without_gold is None


async def test_the_curve_refuses_more_with_a_higher_threshold() -> None:
    report = await judge(NamingEngine(), JUDGED, model="none")
    assert [point.threshold for point in report.curve] == pytest.approx([number * 0.05 for number in range(20)])
    points = {round(point.threshold, 2): point for point in report.curve}
    assert (points[0.0].false_refusals, points[0.0].refused_unanswerable, points[0.0].refused_without_gold) == (
        0,
        0,
        0,
    )
    assert (points[0.2].refused_unanswerable, points[0.25].refused_unanswerable) == (0.0, 1.0)
    assert points[0.25].refused_without_gold == 1.0
    assert (points[0.9].false_refusals, points[0.95].false_refusals) == (0.0, 1.0)


async def test_costs_exclude_the_first_query() -> None:
    report = await judge(NamingEngine(), JUDGED, model="none")
    assert value(report, "p50_ms:total") == 9.0, "the second to the sixteenth question"
    assert value(report, "p95_ms:total") == pytest.approx(15.3)
    assert value(report, "tokens") == pytest.approx(14 / 15)


async def test_an_engine_without_confidence_is_not_judged_by_it() -> None:
    report = await judge(NamingEngine(tells=False), JUDGED, model="none")
    measures = report.systems[0].measures.keys()
    assert measures == {"ndcg@10", "recall@1", "recall@5", "recall@10", "mrr", "hit@1", "step_recall"}
    assert (report.calibration, report.curve) == ((), ())


async def test_baselines_and_ablated_engines_follow_the_engine() -> None:
    deaf = NamingEngine("deaf", wrong=frozenset(query.text for query in QUERIES))
    baselines = {"echo": lambda text, depth: text.split()[:depth], "silent": lambda text, depth: []}
    report = await judge(NamingEngine(), JUDGED, model="none", baselines=baselines, ablated={"ears": deaf})
    assert [(system.system, system.role) for system in report.systems] == [
        ("naming", SystemRole.ENGINE),
        ("echo", SystemRole.BASELINE),
        ("silent", SystemRole.BASELINE),
        ("without ears", SystemRole.ABLATED),
    ]
    assert [value(report, "hit@1", number) for number in range(4)] == [1.0, 1.0, 0.0, 0.0]
    assert "calibration_error" not in report.systems[1].measures
    assert "calibration_error" in report.systems[3].measures
    assert deaf.loaded == [frozenset(item.key for item in ITEMS)]


async def test_progress_reaches_the_end_of_every_part() -> None:
    seen: list[Progress] = []
    await judge(NamingEngine(), JUDGED, model="none", baselines={"none": lambda *_: []}, on_progress=seen.append)
    last = {progress.task: (progress.done, progress.total) for progress in seen}
    assert last == {"ask": (15, 15), "baselines": (13, 13), "ask without the right items": (13, 13)}


async def test_one_query_is_enough_and_no_answer_is_not() -> None:
    single = Dataset("one", ITEMS, [query("q", "t1")])
    report = await judge(NamingEngine(), single, model="none")
    assert value(report, "refused_without_gold") == 1.0
    with pytest.raises(InvalidRequest):
        await judge(NamingEngine(), Dataset("none", ITEMS, [query("n")]), model="none")


def test_a_slice_is_spread_over_all_queries() -> None:
    assert [query.id for query in evenly_spread(JUDGED, 3).queries] == ["q0", "q5", "q10"]
    assert evenly_spread(JUDGED, None) is JUDGED
    assert evenly_spread(JUDGED, 99) is JUDGED
