"""The latency plot: parsed as XML, every dot is at the position of its values."""

import re
from xml.etree import ElementTree as ET

import pytest

from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats
from benchmarks.plot import BOTTOM, LEFT, RIGHT, TOP, latency_plot
from toolscript.tools.model.query import Strategy

SVG = "{http://www.w3.org/2000/svg}"
ELSEWHERE = re.compile(r"href|url\(|@import|<script|<image|<foreignObject|data:", re.IGNORECASE)


def step(rate: float, p50: float, p95: float, *, saturated: bool = False) -> LoadStats:
    return LoadStats(rate, rate, 100, p50, p95, p95 * 2, p95 * 3, saturated)


def compared(ours: tuple[LoadStats, ...], bare: tuple[LoadStats, ...]) -> LoadComparison:
    return LoadComparison(Strategy.HIERARCHICAL, 100, False, LoadCurve(bare), LoadCurve(ours))


USUAL = compared(
    (step(10, 20, 30), step(20, 25, 40), step(40, 900, 2_500, saturated=True)),
    (step(10, 15, 25), step(20, 18, 30), step(40, 30, 60)),
)


def dots(picture: ET.Element, name: str) -> list[tuple[float, float, str]]:
    result = [dot for dot in picture.iter(f"{SVG}circle") if name in dot.get("class", "").split()]
    return [(float(dot.get("cx", "")), float(dot.get("cy", "")), dot.get("class", "")) for dot in result]


def ticks(picture: ET.Element, anchor: str, along: str) -> dict[float, float]:
    result = [
        item
        for item in picture.iter(f"{SVG}text")
        if "tick" in item.get("class", "") and item.get("text-anchor") == anchor
    ]
    return {float(item.text or ""): float(item.get(along, "")) for item in result}


def test_dots_are_at_their_rate_and_p95() -> None:
    picture = ET.fromstring(latency_plot(USUAL))
    rates, times = ticks(picture, "middle", "x"), ticks(picture, "end", "y")
    (_, _, _), (x, y, _), (late_x, late_y, late) = dots(picture, "ours")
    assert x == pytest.approx(rates[20], abs=0.2)
    assert times[50] < y + 4 < times[20]
    assert late_x == pytest.approx(rates[40], abs=0.2)
    assert times[5_000] < late_y + 4 < times[2_000]
    assert late.split() == ["ours", "hollow"]


def test_nothing_is_drawn_outside_of_the_scales() -> None:
    picture = ET.fromstring(latency_plot(USUAL))
    places = [*dots(picture, "ours"), *dots(picture, "bare")]
    assert len(places) == 6
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y, _ in places)


def test_the_plot_is_self_contained_and_has_a_text_description() -> None:
    text = latency_plot(USUAL)
    assert not ELSEWHERE.search(text)
    output = ET.fromstring(text).findtext(f"{SVG}desc") or ""
    assert "search over HTTP at 40 a second: 40.0 answered, p50 900.0 ms, p95 2500.0 ms" in output


@pytest.mark.parametrize("ours", [(), (step(10, 0.0, 0.0, saturated=True),)])
def test_a_benchmark_without_responses_can_be_drawn(ours: tuple[LoadStats, ...]) -> None:
    picture = ET.fromstring(latency_plot(compared(ours, ())))
    assert len(dots(picture, "ours")) == len(ours)
