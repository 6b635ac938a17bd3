"""The effect of skill routing, and what it loses: measured, written, read and shown."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.unit.eval.engines import ITEMS, JUDGED, NamingEngine, query
from tests.unit.eval.quality_reports import report
from tests.unit.eval.test_quality_page import page, tables
from toolscript.core.errors import InvalidRequest
from toolscript.tools.model.query import Strategy
from toolscript_eval.dataset import Dataset, EngineAnswer, EvalReport, EvalRequest, Route
from toolscript_eval.judging import judge
from toolscript_eval.plot import quality_plot
from toolscript_eval.report import differences_of_setup, report_from_json, report_text, report_to_json, result_of

pytestmark = pytest.mark.slow

SKILLS_OF = {f"t{number}": ("even",) if number % 2 == 0 else ("odd", "late") for number in range(12)}
FIGURES = {"routed": 0.95, "skills_used": 4.5, "catalog_searched": 0.3, "gold_lost": 0.02}


@dataclass
class RoutedEngine(NamingEngine):
    """Routes by these skills, except for queries about the last item."""

    strategy: Strategy = Strategy.HIERARCHICAL
    skills: Sequence[str] = ("even",)

    async def answer(self, query: str) -> EngineAnswer:
        answer = await super().answer(query)
        if "t11" in query:
            return replace(answer, route=Route(Strategy.DIRECT, skills_of=SKILLS_OF))
        share = 0.25 if self.strategy is Strategy.HIERARCHICAL else 1.0
        return replace(answer, route=Route(self.strategy, tuple(self.skills), share, SKILLS_OF))


QUERIES = [query("one", "t0"), query("two", "t1", "t2", "t3"), query("all", "t11"), query("none")]


async def judged(engine: NamingEngine) -> EvalReport:
    return await judge(engine, Dataset("small", ITEMS, QUERIES), model="none", without_gold=False)


async def metrics(engine: NamingEngine) -> dict[str, float]:
    measures = (await judged(engine)).systems[0].measures
    return {name: measures[name].value for name in FIGURES if name in measures}


async def test_the_effect_of_skill_routing_is_measured() -> None:
    measures = await metrics(RoutedEngine(skills=("even", "none")))
    assert measures == pytest.approx(
        {"routed": 3 / 4, "skills_used": 2.0, "catalog_searched": (3 * 0.25 + 1) / 4, "gold_lost": 2 / 5}
    )
    assert (await metrics(RoutedEngine(skills=("even", "late"))))["gold_lost"] == 0.0


async def test_a_hybrid_search_loses_no_items() -> None:
    measures = await metrics(RoutedEngine(strategy=Strategy.HYBRID))
    assert (measures["routed"], measures["catalog_searched"], measures["gold_lost"]) == (0.75, 1.0, 0.0)


async def test_without_routed_queries_no_skill_is_used() -> None:
    measures = await metrics(RoutedEngine(strategy=Strategy.DIRECT, skills=()))
    assert measures == {"routed": 0.0, "catalog_searched": 1.0, "gold_lost": 0.0}


async def test_an_engine_without_skills_is_not_judged_by_them() -> None:
    assert await metrics(NamingEngine()) == {}
    assert "catalog_searched" not in report_text(await judge(NamingEngine(), JUDGED, model="none"))


def test_an_item_without_a_skill_is_out_of_reach_of_all_skills() -> None:
    route = Route(Strategy.HIERARCHICAL, ("even", "odd"), 1.0, {"t0": ("even",), "none": ()})
    assert [route.reaches(key) for key in ("t0", "none", "unknown")] == [True, False, False]


async def test_the_strategy_is_written_down_and_read_again() -> None:
    whole = replace(await judged(RoutedEngine()), strategy=Strategy.HIERARCHICAL)
    data = json.loads(json.dumps(result_of(whole, EvalRequest(Path("set")), None).data))
    assert data["strategy"] == "hierarchical"
    again = report_from_json(data)
    assert again.strategy is Strategy.HIERARCHICAL
    assert again.systems[0].measures["gold_lost"].value == pytest.approx(2 / 5)
    assert "strategy was direct, is hierarchical" in differences_of_setup(await judged(RoutedEngine()), again)


async def test_a_report_from_before_there_was_a_choice_is_a_direct_one() -> None:
    data = report_to_json(await judged(NamingEngine()))
    del data["strategy"]
    assert report_from_json(data).strategy is Strategy.DIRECT
    with pytest.raises(InvalidRequest):
        report_from_json({**data, "strategy": "sideways"})


async def test_the_text_names_the_strategy_and_explains_its_metrics() -> None:
    text = report_text(replace(await judged(RoutedEngine()), strategy=Strategy.HIERARCHICAL))
    assert "naming, hierarchical search, model none" in text
    rows = {line.split()[0]: line.split()[1] for line in text.splitlines() if line.startswith(tuple(FIGURES))}
    assert rows == {"routed": "0.750", "skills_used": "1.000", "catalog_searched": "0.438", "gold_lost": "0.400"}


def routed(dataset: str, strategy: Strategy, ndcg: float) -> EvalReport:
    return replace(report(dataset, "service", ndcg, others=FIGURES), strategy=strategy)


def test_the_page_shows_routed_searches_beside_the_direct_one() -> None:
    direct = (report("a"), report("a", "service", 0.7), report("b", "service", 0.6))
    assert "Routed by skills" not in page(*direct)
    text = page(*direct, routed("a", Strategy.HIERARCHICAL, 0.69), routed("b", Strategy.HYBRID, 0.6), report("c"))
    assert "## Routed by skills" in text
    (routed_table,) = [table for table in tables(text) if table[0][1] == "Strategy"]
    figure = ["0.950 ±.020", "4.500 ±.020", "0.300 ±.020", "0.020 ±.020"]
    direct_a, direct_b = "0.700 ±.020", "0.600 ±.020"
    assert routed_table[1:] == [
        ["a", "hierarchical", direct_a, "0.690 ±.020", "-0.010 (-0.010 to -0.010)", *figure],
        ["b", "hybrid", direct_b, direct_b, "+0.000 (+0.000 to +0.000)", *figure],
    ]
    (of_sets,) = [table for table in tables(text) if table[0][1] == "Model"]
    assert [row[0] for row in of_sets[1:]] == ["a", "b", "c"], "a routed search is no set of its own"


def test_the_search_without_skills_of_the_same_run_is_the_better_one_to_compare_with() -> None:
    own = report("a", "service", 0.69, others=FIGURES, parts={"skills": 0.71})
    text = page(report("a", "service", 0.7), replace(own, strategy=Strategy.HIERARCHICAL))
    (routed_table,) = [table for table in tables(text) if table[0][1] == "Strategy"]
    assert routed_table[1][2:5] == ["0.710 ±.020", "0.690 ±.020", "-0.020 (-0.020 to -0.020)"]


def test_the_plot_is_of_direct_searches() -> None:
    direct = [report("a", "service", 0.7)]
    assert quality_plot([*direct, routed("a", Strategy.HYBRID, 0.5)]) == quality_plot(direct)


@pytest.mark.parametrize(
    ("reports", "problem"),
    [
        ([], "nothing to compare"),
        ([report("a")], "nothing to compare"),
        ([replace(report("a", "service"), queries=2)], "nothing to compare"),
        ([report("a", "service"), routed("a", Strategy.HYBRID, 0.1)], "two reports"),
    ],
)
def test_a_routed_search_without_its_direct_one_or_twice_is_refused(
    reports: list[EvalReport], problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        page(*reports, routed("a", Strategy.HYBRID, 0.6))
