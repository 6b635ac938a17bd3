"""The plot of results: read as XML, every mark stands where its scale says, and every system is there."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from tests.unit.eval.quality_reports import HOSTILE, measure, report, with_ndcg
from toolscript.eval.dataset import EvalReport, Measure
from toolscript.eval.page import one_line
from toolscript.eval.plot import FIGURES, MARGIN, PAINT, SHAPES, WIDTH, quality_plot

SVG = "{http://www.w3.org/2000/svg}"
ELSEWHERE = re.compile(r"href|url\(|@import|<script|<image|<foreignObject|data:", re.IGNORECASE)
PLACE = re.compile(r"translate\(([\d.]+) ([\d.]+)\)")
SETS = ("azure", "etom", "live")
REPORTS = [
    *(report(name, ndcg=0.9 - at / 10) for at, name in enumerate(SETS)),
    *(report(name, "service", 0.88 - at / 10) for at, name in enumerate(SETS)),
]


def drawn(*reports: EvalReport) -> ET.Element:
    return ET.fromstring(quality_plot(reports))


def texts(picture: ET.Element, kind: str = "") -> list[str]:
    return [
        one.text or ""
        for one in picture.iter(f"{SVG}text")
        if kind in (one.get("class") or "").split() or not kind
    ]


def place(mark: ET.Element) -> tuple[float, float]:
    found = PLACE.fullmatch(mark.get("transform", ""))
    assert found is not None
    return float(found[1]), float(found[2])


def marks(picture: ET.Element) -> dict[str, tuple[float, float]]:
    """Where each mark is, by the set and system it says it stands for."""
    found = {}
    for mark in picture.iter(f"{SVG}path"):
        title = mark.findtext(f"{SVG}title")
        if title is not None:
            found[title.partition(":")[0]] = place(mark)
    return found


def ticks(picture: ET.Element) -> dict[float, float]:
    found = [one for one in picture.iter(f"{SVG}text") if "tick" in (one.get("class") or "")]
    return {float(one.text or ""): float(one.get("x", "")) for one in found}


def on_scale(picture: ET.Element, value: float) -> float:
    """Where the ticks say that a value is."""
    known = ticks(picture)
    low, high = min(known), max(known)
    return known[low] + (value - low) / (high - low) * (known[high] - known[low])


def named(label: ET.Element) -> str:
    """What a label with a title of its own shows."""
    return "".join(child.tail or "" for child in label)


def labels(picture: ET.Element) -> Iterator[ET.Element]:
    return (one for one in picture.iter(f"{SVG}text") if one.find(f"{SVG}title") is not None)


def test_every_set_and_every_system_is_in_it() -> None:
    picture = drawn(*REPORTS)
    systems = ("gateway", "service", "BM25", "dense", "RRF", "z-score")
    assert set(marks(picture)) == {f"{name}, {system}" for name in SETS for system in systems}
    assert [named(one) for one in labels(picture)] == list(SETS)
    assert set(systems) <= set(texts(picture, "small"))
    assert texts(picture, "gateway") == ["0.900", "0.800", "0.700"]
    assert texts(picture, "service") == ["0.880", "0.780", "0.680"]
    assert "z-score 0.660" in texts(picture, "figure")


def test_values_and_intervals_stand_where_the_scale_says() -> None:
    picture = drawn(*REPORTS)
    found = marks(picture)
    for name, value in (
        ("azure, gateway", 0.9),
        ("live, service", 0.68),
        ("etom, BM25", 0.61),
        ("etom, dense", 0.52),
    ):
        assert found[name][0] == pytest.approx(on_scale(picture, value), abs=0.11)
    lines = {
        float(one.get("y1", "")): one for one in picture.iter(f"{SVG}line") if "interval" in one.get("class", "")
    }
    interval = lines[found["azure, gateway"][1]]
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
    given = with_ndcg(report(plain={}), Measure((low + high) / 2, low, high, 4))
    picture = drawn(given)
    known = ticks(picture)
    assert (min(known), max(known), len(known)) == (first, last, count)
    places = [known[value] for value in sorted(known)]
    steps = [after - before for before, after in pairwise(places)]
    assert max(steps) - min(steps) < 0.3
    assert 0 < min(places) < max(places) == WIDTH - MARGIN - FIGURES
    assert min(places) <= marks(picture)["small, gateway"][0] <= max(places)


def test_nothing_is_drawn_outside_of_it_or_over_another_row() -> None:
    picture = drawn(*REPORTS)
    height = float(picture.get("height", ""))
    assert picture.get("viewBox") == f"0 0 {WIDTH} {height:.0f}"
    found = marks(picture)
    for x, y in found.values():
        assert 0 < x < WIDTH
        assert 0 < y < height
    by_set = [[y for name, (_, y) in found.items() if name.startswith(one)] for one in SETS]
    assert [max(first) < min(second) for first, second in pairwise(by_set)] == [True, True]
    lanes = {name: y for name, (_, y) in found.items() if name.startswith("azure")}
    assert len(set(lanes.values())) == 3
    assert lanes["azure, gateway"] < lanes["azure, service"] < lanes["azure, RRF"] == lanes["azure, BM25"]


def test_it_is_told_to_whoever_cannot_see_it() -> None:
    picture = drawn(*REPORTS)
    known = {one.get("id"): one.text for one in picture if one.get("id")}
    assert picture.get("role") == "img"
    title, description = [known[one] for one in picture.get("aria-labelledby", "").split()]
    assert title == "nDCG@10 on every set"
    assert description is not None
    assert "A scale from 0.5 to 1" in description
    assert "etom: gateway 0.800, service 0.780, BM25 0.610, dense 0.520, RRF 0.640, z-score 0.660" in description


def test_a_hostile_name_is_only_text() -> None:
    picture = drawn(report(HOSTILE), report("<g onload='x'>", distractors="\"&'</svg>"))
    assert {one.tag.removeprefix(SVG) for one in picture.iter()} == {
        *("svg", "title", "desc", "style", "rect", "text", "line", "path")
    }
    titles = [one.findtext(f"{SVG}title") for one in labels(picture)]
    assert titles == [one_line(HOSTILE), "<g onload='x'> + \"&'</svg>"]
    attributes = {name for one in picture.iter() for name in one.keys()}  # noqa: SIM118
    assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.parametrize(
    "name", ["n" * 500, "集" * 200, "a long name of a set with many words + and distractors of it"]
)
def test_a_long_name_is_cut_and_still_told(name: str) -> None:
    (label,) = labels(drawn(report(name)))
    assert label.findtext(f"{SVG}title") == name
    shown = named(label)
    assert shown.endswith("…")
    assert len(shown) <= 40
    assert name.startswith(shown[:-1])


def test_what_was_not_measured_is_not_drawn() -> None:
    picture = drawn(report("a", plain={"BM25": 0.5}), report("b", plain={}))
    assert set(marks(picture)) == {"a, gateway", "a, BM25", "b, gateway"}
    assert not {"service", "dense", "RRF", "z-score"} & set(texts(picture, "small"))


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 7.5, -1.0, 1e300])
def test_a_figure_that_cannot_be_is_not_drawn(odd: float) -> None:
    picture = drawn(with_ndcg(report("a"), measure(odd, 0)), report("b"))
    assert "a, gateway" not in marks(picture)
    assert "a, BM25" in marks(picture)
    assert (min(ticks(picture)), max(ticks(picture))) == (0.5, 0.8)
    assert drawn(replace(with_ndcg(report("a", plain={}), measure(odd, 0)))).findtext(f"{SVG}title")


def test_it_needs_nothing_from_elsewhere() -> None:
    text = quality_plot(REPORTS)
    assert ELSEWHERE.findall(text) == []
    assert text.count("http") == 1


def test_no_two_systems_look_the_same() -> None:
    assert len(set(SHAPES.values())) == len(SHAPES) == 6
    shown = {one.get("d") for one in drawn(*REPORTS).iter(f"{SVG}path")}
    assert shown == set(SHAPES.values())


def brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_marks_are_legible_on_a_light_and_on_a_dark_page(dark: bool) -> None:
    colours = {who: paint[dark] for who, _, *paint in PAINT}
    read = ("text", ".quiet", ".gateway", ".service", "path.baseline")
    worst = {who: min(contrast(colours[who], colours[under]) for under in (".back", ".band")) for who in read}
    assert {who: ratio for who, ratio in worst.items() if ratio < 4.5} == {}
    style = drawn(*REPORTS).findtext(f"{SVG}style") or ""
    light, _, in_the_dark = style.partition("@media (prefers-color-scheme:dark)")
    assert all(f"{who}{{{what}:{paint[dark]}}}" in (in_the_dark if dark else light) for who, what, *paint in PAINT)
