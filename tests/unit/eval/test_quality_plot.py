"""The plot of results: parsed as XML, every system and set is in it, and nothing of another place."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from tests.unit.eval.quality_reports import HOSTILE, report, with_ndcg
from toolscript_eval.dataset import EvalReport, Measure
from toolscript_eval.plot import quality_plot

SVG = "{http://www.w3.org/2000/svg}"
ELSEWHERE = re.compile(
    r"@import|<script|<foreignObject|(?:href|url)\s*[=(]\s*[\"']?(?:https?:|data:|//)", re.IGNORECASE
)
SETS = ("azure", "etom", "live")
REPORTS = [
    *(report(name, ndcg=0.9 - number / 10) for number, name in enumerate(SETS)),
    *(report(name, "service", 0.88 - number / 10) for number, name in enumerate(SETS)),
]


def drawn(*reports: EvalReport) -> ET.Element:
    return ET.fromstring(quality_plot(reports))


def texts(picture: ET.Element) -> list[str]:
    return [text for item in picture.iter(f"{SVG}text") if (text := "".join(item.itertext()).strip())]


def marks(picture: ET.Element, system: int) -> list[tuple[float, float]]:
    """Return where the marks of a system are, one for each set that has it."""
    (line,) = [item for item in picture.iter(f"{SVG}g") if item.get("id") == f"system-{system}"]
    return [(float(mark.get("x", "")), float(mark.get("y", ""))) for mark in line.iter(f"{SVG}use")]


def test_every_set_and_every_system_is_in_it() -> None:
    shown = texts(drawn(*REPORTS))
    assert {*SETS, "gateway", "service", "BM25", "dense", "RRF", "z-score"} <= set(shown)


def test_a_system_has_a_mark_on_each_set_and_better_is_further_right() -> None:
    picture = drawn(*REPORTS)
    gateway = marks(picture, 0)
    assert len(gateway) == len(SETS)
    assert gateway[0][0] > gateway[1][0] > gateway[2][0]
    assert gateway[0][1] < gateway[1][1] < gateway[2][1], "sets in the order given"
    assert marks(picture, 1)[0][0] < gateway[0][0]


def test_the_figures_are_there_for_screen_readers() -> None:
    text = quality_plot(REPORTS)
    assert "azure: gateway 0.900, service 0.880" in text


def test_a_peer_is_drawn_as_one() -> None:
    assert "other" in texts(drawn(report("azure", peers={"other": 0.7})))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -3.0, 7.0])
def test_a_value_that_is_none_is_left_out(value: float) -> None:
    odd = with_ndcg(report("azure"), Measure(value, value, value, 4))
    assert "gateway" not in texts(drawn(odd))


def test_a_report_without_any_value_is_still_drawn() -> None:
    bare = replace(report(plain={}), curve=())
    assert texts(drawn(replace(bare, systems=(replace(bare.systems[0], measures={}),))))


@pytest.mark.parametrize("name", [HOSTILE, "$x^{2", "_hidden", "a" * 300, "数" * 50, r"\frac{a"])
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    text = quality_plot([report(name)])
    ET.fromstring(text)
    assert not ELSEWHERE.search(text)


def test_the_same_reports_give_the_same_plot() -> None:
    assert quality_plot(REPORTS) == quality_plot(REPORTS)
