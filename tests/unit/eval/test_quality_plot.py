"""The plot of results: parsed as XML, every mark is drawn to scale, and every system is present."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from tests.unit.eval.quality_reports import HOSTILE, measure, report, with_ndcg
from toolscript.eval.dataset import EvalReport, Measure
from toolscript.eval.page import BASELINES, ENGINES, one_line
from toolscript.eval.plot import FIGURES, MARGIN, PAINT, SHAPES, SMALL_LETTER, WIDTH, quality_plot

SVG = "{http://www.w3.org/2000/svg}"
ELSEWHERE = re.compile(r"href|url\(|@import|<script|<image|<foreignObject|data:", re.IGNORECASE)
PLACE = re.compile(r"translate\(([\d.]+) ([\d.]+)\)")
SETS = ("azure", "etom", "live")
REPORTS = [
    *(report(name, ndcg=0.9 - number / 10) for number, name in enumerate(SETS)),
    *(report(name, "service", 0.88 - number / 10) for number, name in enumerate(SETS)),
]


def drawn(*reports: EvalReport) -> ET.Element:
    return ET.fromstring(quality_plot(reports))


def texts(picture: ET.Element, kind: str = "") -> list[str]:
    return [
        element.text or ""
        for element in picture.iter(f"{SVG}text")
        if kind in (element.get("class") or "").split() or not kind
    ]


def place(mark: ET.Element) -> tuple[float, float]:
    match = PLACE.fullmatch(mark.get("transform", ""))
    assert match is not None
    return float(match[1]), float(match[2])


def marks(picture: ET.Element) -> dict[str, tuple[float, float]]:
    """Return the position of each mark, by dataset and system in its title."""
    positions = {}
    for mark in picture.iter(f"{SVG}path"):
        title = mark.findtext(f"{SVG}title")
        if title is not None:
            positions[title.partition(":")[0]] = place(mark)
    return positions


def ticks(picture: ET.Element) -> dict[float, float]:
    elements = [element for element in picture.iter(f"{SVG}text") if "tick" in (element.get("class") or "")]
    return {float(element.text or ""): float(element.get("x", "")) for element in elements}


def on_scale(picture: ET.Element, value: float) -> float:
    """Return the x position of a value, by the ticks."""
    positions = ticks(picture)
    low, high = min(positions), max(positions)
    return positions[low] + (value - low) / (high - low) * (positions[high] - positions[low])


def named(label: ET.Element) -> str:
    """Return the visible text of a label with a title."""
    return "".join(child.tail or "" for child in label)


def labels(picture: ET.Element) -> Iterator[ET.Element]:
    return (element for element in picture.iter(f"{SVG}text") if element.find(f"{SVG}title") is not None)


def test_every_set_and_every_system_is_in_it() -> None:
    picture = drawn(*REPORTS)
    systems = ("gateway", "service", "BM25", "dense", "RRF", "z-score")
    assert set(marks(picture)) == {f"{name}, {system}" for name in SETS for system in systems}
    assert [named(label) for label in labels(picture)] == list(SETS)
    assert set(systems) <= set(texts(picture, "small"))
    assert texts(picture, "gateway") == ["0.900", "0.800", "0.700"]
    assert texts(picture, "service") == ["0.880", "0.780", "0.680"]
    assert "z-score 0.660" in texts(picture, "figure")


def test_values_and_intervals_are_drawn_to_scale() -> None:
    picture = drawn(*REPORTS)
    positions = marks(picture)
    for name, value in (
        ("azure, gateway", 0.9),
        ("live, service", 0.68),
        ("etom, BM25", 0.61),
        ("etom, dense", 0.52),
    ):
        assert positions[name][0] == pytest.approx(on_scale(picture, value), abs=0.11)
    lines = {
        float(element.get("y1", "")): element
        for element in picture.iter(f"{SVG}line")
        if "interval" in element.get("class", "")
    }
    interval = lines[positions["azure, gateway"][1]]
    assert float(interval.get("x1", "")) == pytest.approx(on_scale(picture, 0.88), abs=0.11)
    assert float(interval.get("x2", "")) == pytest.approx(on_scale(picture, 0.92), abs=0.11)


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "count"),
    [
        (0.33, 0.95, 0.3, 1.0, 8),
        (0.81, 0.9, 0.8, 0.9, 3),
        (0.9, 0.9, 0.8, 0.9, 3),
        (0.0, 0.0, 0.0, 0.1, 3),
        (0, 1, 0, 1, 11),
    ],
)
def test_the_scale_is_evenly_ticked_and_holds_all(
    low: float, high: float, first: float, last: float, count: int
) -> None:
    plotted = with_ndcg(report(plain={}), Measure((low + high) / 2, low, high, 4))
    picture = drawn(plotted)
    positions = ticks(picture)
    assert (min(positions), max(positions), len(positions)) == (first, last, count)
    places = [positions[value] for value in sorted(positions)]
    steps = [after - before for before, after in pairwise(places)]
    assert max(steps) - min(steps) < 0.3
    assert 0 < min(places) < max(places) == WIDTH - MARGIN - FIGURES
    assert min(places) <= marks(picture)["small, gateway"][0] <= max(places)


def test_nothing_is_drawn_outside_of_it_or_over_another_row() -> None:
    picture = drawn(*REPORTS)
    height = float(picture.get("height", ""))
    assert picture.get("viewBox") == f"0 0 {WIDTH} {height:.0f}"
    positions = marks(picture)
    for x, y in positions.values():
        assert 0 < x < WIDTH
        assert 0 < y < height
    by_set = [[y for name, (_, y) in positions.items() if name.startswith(set_name)] for set_name in SETS]
    assert [max(first) < min(second) for first, second in pairwise(by_set)] == [True, True]
    lanes = {name: y for name, (_, y) in positions.items() if name.startswith("azure")}
    assert len(set(lanes.values())) == 3
    assert lanes["azure, gateway"] < lanes["azure, service"] < lanes["azure, RRF"] == lanes["azure, BM25"]


def test_the_plot_has_a_description_for_screen_readers() -> None:
    picture = drawn(*REPORTS)
    by_id = {element.get("id"): element.text for element in picture if element.get("id")}
    assert picture.get("role") == "img"
    title, description = [by_id[label_id] for label_id in picture.get("aria-labelledby", "").split()]
    assert title == "nDCG@10 on every set"
    assert description is not None
    assert "A scale from 0.5 to 1" in description
    assert "etom: gateway 0.800, service 0.780, BM25 0.610, dense 0.520, RRF 0.640, z-score 0.660" in description


def test_a_hostile_name_is_only_text() -> None:
    picture = drawn(report(HOSTILE), report("<g onload='x'>", distractors="\"&'</svg>"))
    assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
        *("svg", "title", "desc", "style", "rect", "text", "line", "path")
    }
    titles = [label.findtext(f"{SVG}title") for label in labels(picture)]
    assert titles == [one_line(HOSTILE), "<g onload='x'> + \"&'</svg>"]
    attributes = {name for element in picture.iter() for name in element.keys()}  # noqa: SIM118
    assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.parametrize(
    "name", ["n" * 500, "集" * 200, "a long name of a set with many words + and distractors of it"]
)
def test_a_long_name_is_cut_and_whole_in_its_title(name: str) -> None:
    (label,) = labels(drawn(report(name)))
    assert label.findtext(f"{SVG}title") == name
    visible = named(label)
    assert visible.endswith("…")
    assert len(visible) <= 40
    assert name.startswith(visible[:-1])


def test_missing_measures_are_not_drawn() -> None:
    picture = drawn(report("a", plain={"BM25": 0.5}), report("b", plain={}))
    assert set(marks(picture)) == {"a, gateway", "a, BM25", "b, gateway"}
    assert not {"service", "dense", "RRF", "z-score"} & set(texts(picture, "small"))


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 7.5, -1.0, 1e300])
def test_an_impossible_value_is_not_drawn(odd: float) -> None:
    picture = drawn(with_ndcg(report("a"), measure(odd, 0)), report("b"))
    assert "a, gateway" not in marks(picture)
    assert "a, BM25" in marks(picture)
    assert (min(ticks(picture)), max(ticks(picture))) == (0.5, 0.8)
    assert drawn(replace(with_ndcg(report("a", plain={}), measure(odd, 0)))).findtext(f"{SVG}title")


def test_the_svg_is_self_contained() -> None:
    text = quality_plot(REPORTS)
    assert ELSEWHERE.findall(text) == []
    assert text.count("http") == 1


def test_no_two_systems_look_the_same() -> None:
    assert set(SHAPES) == {*ENGINES, *BASELINES}
    assert len(set(SHAPES.values())) == len(SHAPES)
    every = report("azure", plain=dict.fromkeys(BASELINES, 0.5))
    shapes = {element.get("d") for element in drawn(every, *REPORTS[1:]).iter(f"{SVG}path")}
    assert shapes == set(SHAPES.values())


def test_peers_have_a_lane_and_marks_of_their_own() -> None:
    picture = drawn(report("azure", ndcg=0.9, peers={"other": 0.55, "third": 0.62}), *REPORTS[1:])
    places = marks(picture)
    assert places["azure, other"][1] == places["azure, third"][1] > places["azure, BM25"][1]
    assert places["azure, third"][0] == pytest.approx(on_scale(picture, 0.62), abs=0.1)
    by_peer = [element.get("d") for element in picture.iter(f"{SVG}path") if element.get("class") == "peer"]
    assert len(set(by_peer)) == 2
    assert "third 0.620" in texts(picture, "figure"), "the best of them is named at the right"


def test_a_legend_that_is_too_long_goes_on_in_a_second_line_above_the_rows() -> None:
    names = {f"another-project-{number}": 0.5 for number in range(6)}
    picture = drawn(report("azure", plain=dict.fromkeys(BASELINES, 0.5), peers=names))
    places = {element.text: element for element in picture.iter(f"{SVG}text")}
    ends = [float(places[name].get("x", "")) + len(name) * SMALL_LETTER for name in names]
    assert max(ends) <= WIDTH
    lines = {float(places[name].get("y", "")) for name in names}
    first_tick = min(float(element.get("y", "")) for element in picture.iter(f"{SVG}text") if _is_tick(element))
    assert len(lines) > 1
    assert max(lines) < first_tick - 10


def _is_tick(element: ET.Element) -> bool:
    return "tick" in (element.get("class") or "")


def brightness(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((brightness(first), brightness(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_marks_are_legible_on_a_light_and_on_a_dark_page(dark: bool) -> None:
    colours = {who: paint[dark] for who, _, *paint in PAINT}
    read = ("text", ".quiet", ".gateway", ".service", "path.baseline", "path.peer")
    worst = {who: min(contrast(colours[who], colours[under]) for under in (".back", ".band")) for who in read}
    assert {who: ratio for who, ratio in worst.items() if ratio < 4.5} == {}
    style = drawn(*REPORTS).findtext(f"{SVG}style") or ""
    light, _, in_the_dark = style.partition("@media (prefers-color-scheme:dark)")
    assert all(f"{who}{{{what}:{paint[dark]}}}" in (in_the_dark if dark else light) for who, what, *paint in PAINT)
