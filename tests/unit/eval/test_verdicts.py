"""The verdict is measured on each kind of unanswerable queries, and its trade-off is drawn to scale."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.unit.eval.engines import JUDGED, QUERIES, NamingEngine
from tests.unit.eval.quality_reports import HOSTILE, measure, report
from tests.unit.eval.test_quality_plot import ELSEWHERE
from toolscript.core.errors import InvalidRequest
from toolscript_eval.dataset import DatasetQuery, EngineAnswer, EvalReport, TradeOff, Verdict
from toolscript_eval.judging import judge
from toolscript_eval.metrics import JudgedAnswer, verdict_score
from toolscript_eval.plot import _limit, _panels, has_verdicts, verdict_plot
from toolscript_eval.report import report_from_json, report_text, report_to_json
from toolscript_eval.verdict import MAX_POINTS, trade_off, verdicts_of

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
CURVE = (
    TradeOff(0.0, 0.0, 1.0),
    TradeOff(0.2, 0.04, 0.5),
    TradeOff(0.4, 0.1, 0.05),
    TradeOff(0.6, 0.4, 0.0),
    TradeOff(1.0, 1.0, 0.0),
)


def answer(id_: str, score: float, *, fits: bool, kind: str = "", threshold: float = 0.5) -> JudgedAnswer:
    relevant = {"t": 1} if fits else {}
    query = DatasetQuery(id_, id_, relevant, labels={"kind": kind} if kind else {})
    return JudgedAnswer(query, EngineAnswer(("t",), score, score >= threshold))


ANSWERED = [
    *(
        answer(f"a{number}", score, fits=True, kind="answerable")
        for number, score in enumerate((0.3, 0.7, 0.9, 0.95))
    ),
    *(
        answer(f"u{number}", score, fits=False, kind="unanswerable")
        for number, score in enumerate((0.1, 0.2, 0.25))
    ),
    *(answer(f"n{number}", score, fits=False, kind="near_miss") for number, score in enumerate((0.6, 0.8))),
]


def verdict(kind: str, refusals: float = 0.04, answers: float = 0.5) -> Verdict:
    values = {"false_refusals": refusals, "false_answers": answers, "nothing_fits_auroc": 0.9}
    return Verdict(kind, 40, {name: measure(value) for name, value in values.items()}, CURVE)


def judged_report(dataset: str = "desk", engine: str = "gateway", *kinds: str) -> EvalReport:
    return replace(report(dataset, engine), verdicts=tuple(map(verdict, kinds or ("unanswerable", "near_miss"))))


def test_each_kind_of_unanswerable_queries_has_figures_of_its_own() -> None:
    far, near = verdicts_of(ANSWERED, seed=1)
    assert [(far.kind, far.queries), (near.kind, near.queries)] == [("unanswerable", 3), ("near_miss", 2)]
    assert (far.measures["false_answers"].value, near.measures["false_answers"].value) == (0.0, 1.0)
    assert (far.measures["nothing_fits_auroc"].value, near.measures["nothing_fits_auroc"].value) == (1.0, 0.625)
    for part in (far, near):
        assert part.measures["false_refusals"].value == 0.25, "over all queries with an answer"
        assert part.measures["false_refusals"].queries == 4
    assert near.measures["nothing_fits_auroc"].low < 0.625 < near.measures["nothing_fits_auroc"].high


def test_queries_without_a_kind_are_simply_unanswerable() -> None:
    plain = [replace(judged, query=replace(judged.query, labels={})) for judged in ANSWERED]
    (whole,) = verdicts_of(plain, seed=1)
    assert (whole.kind, whole.queries, whole.measures["false_answers"].value) == ("unanswerable", 5, 0.4)


def test_without_confidence_or_without_unanswerable_queries_there_is_no_verdict() -> None:
    silent = [replace(judged, answer=EngineAnswer(("t",))) for judged in ANSWERED]
    assert verdicts_of(silent, seed=1) == ()
    assert verdicts_of(ANSWERED[:4], seed=1) == ()


def test_the_score_of_a_verdict_is_the_confidence_and_0_without_results() -> None:
    assert verdict_score(EngineAnswer(("t",), 0.4)) == 0.4
    assert verdict_score(EngineAnswer(())) == 0.0


def test_the_trade_off_goes_from_answering_everything_to_refusing_everything() -> None:
    curve = trade_off(np.array([0.3, 0.7, 0.9]), np.array([0.1, 0.3]))
    assert [(point.false_refusals, point.false_answers) for point in curve] == [
        (0.0, 1.0),
        (0.0, 0.5),
        (pytest.approx(1 / 3), 0.0),
        (pytest.approx(2 / 3), 0.0),
        (1.0, 0.0),
    ]
    assert [point.threshold for point in curve] == pytest.approx([0.1, 0.3, 0.7, 0.9, 0.9])


def test_a_curve_of_many_queries_is_thinned_and_keeps_its_ends() -> None:
    chance = np.random.default_rng(3)
    curve = trade_off(chance.uniform(0.4, 0.42, 3_000), chance.uniform(0.39, 0.41, 500))
    assert len(curve) == MAX_POINTS
    assert (curve[0].false_refusals, curve[0].false_answers) == (0.0, 1.0)
    assert (curve[-1].false_refusals, curve[-1].false_answers) == (1.0, 0.0)
    assert len({point.false_answers for point in curve}) > 40, "a score that uses a small part of its range"


async def test_a_report_keeps_its_verdicts_in_json_and_tells_them_in_text() -> None:
    kinds = {"n1": "unanswerable", "n2": "near_miss"}
    labelled = [replace(query, labels={"kind": kinds.get(query.id, "answerable")}) for query in QUERIES]
    judged = await judge(NamingEngine(), replace(JUDGED, queries=labelled), model="none", without_gold=False)
    data = json.loads(json.dumps(report_to_json(judged)))
    assert [part["kind"] for part in data["verdicts"]] == ["near_miss", "unanswerable"]
    again = report_from_json(data)
    assert report_to_json(again) == report_to_json(judged)
    assert again.verdicts[0].curve[-1].false_refusals == 1.0
    del data["verdicts"]
    assert report_from_json(data).verdicts == (), "a report of an earlier version"
    lines = report_text(judged).splitlines()
    assert any(line.split()[:3] == ["near_miss", "1", "0.000"] for line in lines)


def drawn(*reports: EvalReport) -> ET.Element:
    return ET.fromstring(verdict_plot(reports))


def titled(picture: ET.Element, name: str) -> list[ET.Element]:
    return [item for item in picture.iter(f"{SVG}g") if item.get("id") == name]


def path_of(curve: ET.Element) -> list[float]:
    (path,) = curve.iter(f"{SVG}path")
    return [float(number) for number in NUMBER.findall(path.get("d", ""))]


def test_every_kind_has_a_curve_and_a_dot_where_the_threshold_in_use_is() -> None:
    picture = drawn(judged_report())
    shown = "".join(picture.itertext())
    assert "unanswerable (40)" in shown
    assert "near_miss (40)" in shown
    assert "desk, near_miss (40), in use 0.040 and 0.500, AUROC 0.900" in shown
    for number in (0, 1):
        (curve,), (dot,) = titled(picture, f"curve-{number}"), titled(picture, f"used-{number}")
        across = path_of(curve)[::2]
        (mark,) = dot.iter(f"{SVG}use")
        assert min(across) < float(mark.get("x", "")) < max(across)


def test_the_scale_ends_where_every_curve_is_down_at_few_false_answers() -> None:
    shown = "".join(drawn(judged_report()).itertext())
    assert "10%" in shown
    assert _limit_of(judged_report()) == 0.1


def test_the_scale_has_room_for_the_dots() -> None:
    assert _limit_of(replace(judged_report(), verdicts=(verdict("unanswerable", refusals=0.38),))) == 0.5


def _limit_of(judged: EvalReport) -> float:
    return _limit([curve for panel in _panels([judged]) for curve in panel.curves])


def test_each_set_with_unanswerable_queries_has_a_panel_and_engines_are_told_apart() -> None:
    reports = [
        judged_report(),
        judged_report("desk", "service", "near_miss"),
        judged_report("etom"),
        report("azure"),
    ]
    picture = drawn(*reports)
    shown = "".join(picture.itertext())
    assert "azure" not in shown
    assert "etom, unanswerable (40), in use 0.040 and 0.500, AUROC 0.900" in shown
    assert "service, near_miss (40)" in shown
    assert len([dot for number in range(3) for dot in titled(picture, f"used-{number}")]) == 5


def test_a_hostile_or_impossible_report_is_drawn_as_far_as_it_can_be() -> None:
    odd = replace(verdict(HOSTILE), curve=(TradeOff(0.0, -3.0, 7.0), *CURVE, TradeOff(0.0, float("nan"), 0.0)))
    text = verdict_plot([replace(report(HOSTILE), verdicts=(odd,))])
    assert not ELSEWHERE.search(text)
    (curve,), (usual,) = (
        titled(picture, "curve-0")
        for picture in (ET.fromstring(text), drawn(judged_report("desk", "gateway", "unanswerable")))
    )
    assert len(path_of(curve)) == len(path_of(usual)), "shares that are none are left out"


def test_a_dataset_whose_queries_all_have_an_answer_has_no_trade_off() -> None:
    assert not has_verdicts([report()])
    with pytest.raises(InvalidRequest, match="every query has an answer"):
        verdict_plot([report()])
