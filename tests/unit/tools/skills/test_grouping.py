"""Clusters are those that a name fits, and hold the items that fit the name."""

from collections.abc import Sequence

import numpy as np
import pytest

from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import Matrix
from toolscript.tools.skills.clustering import unit_rows
from toolscript.tools.skills.grouping import Grouping, GroupLimits
from toolscript.tools.skills.naming import ClusterText
from toolscript.tools.skills.phrases import sampled, term_shares
from toolscript.tools.skills.sentences import boilerplate_of, first_sentence, without_boilerplate
from toolscript.tools.skills.subjects import subject_space

pytestmark = pytest.mark.requirement("SK-011")

FILLERS = ("anchor", "basket", "compass", "dragon", "engine", "feather", "glacier", "hammer", "island", "jacket")
OTHERS = [
    Item(word, ItemKind.TOOL, f"{word}s", f"paint_{word}", f"Paint the {word}s.")
    for word in FILLERS
    for _ in "123"
]


def tools(noun: str, count: int, first: int = 0) -> list[Item]:
    return [
        Item(f"{noun}{place}", ItemKind.TOOL, f"{noun} {place}", f"get_{noun}_{place}", f"Get the {noun}s.")
        for place in range(first, first + count)
    ]


def grouping(items: Sequence[Item], vectors: Matrix, may_wait: int = 0) -> Grouping:
    samples = [sampled(item) for item in items]
    shares = term_shares([*samples, *map(sampled, OTHERS)])

    def text_of(rows: np.ndarray) -> ClusterText:
        return ClusterText([samples[row] for row in rows.tolist()], (), shares)

    return Grouping(vectors, samples, text_of, GroupLimits(3, 100, may_wait))


def around(*groups: tuple[Sequence[float], int]) -> Matrix:
    rows = np.array([direction for direction, count in groups for _ in range(count)], dtype=np.float64)
    return unit_rows(rows + np.random.default_rng(3).normal(size=rows.shape) * 0.02)


def test_a_cluster_that_no_name_fits_becomes_its_halves_if_names_fit_these() -> None:
    items = [*tools("violin", 4), *tools("candle", 4), *tools("rocket", 4), *tools("mirror", 4)]
    axes = np.eye(4) + 0.8
    vectors = around(*((axis, 4) for axis in axes.tolist()))
    labels = grouping(items, vectors).grouped(np.zeros(16, dtype=np.int32))
    assert [len(set(labels[start : start + 4])) for start in range(0, 16, 4)] == [1, 1, 1, 1]
    assert len(set(labels)) > 1


def test_an_item_goes_to_a_cluster_about_as_near_whose_name_it_has() -> None:
    items = [*tools("violin", 5), *tools("candle", 5), *tools("candle", 1, first=9)]
    vectors = around(([1, 0], 5), ([0, 1], 5), ([0.71, 0.7], 1))
    labels = grouping(items, vectors).grouped(np.array([0] * 5 + [1] * 5 + [0], dtype=np.int32))
    assert labels.tolist() == [0] * 5 + [1] * 5 + [1]


def test_an_item_far_from_a_cluster_of_its_name_stays() -> None:
    items = [*tools("violin", 5), *tools("candle", 5), *tools("candle", 1, first=9)]
    vectors = around(([1, 0], 5), ([0, 1], 5), ([1, 0.1], 1))
    labels = grouping(items, vectors).grouped(np.array([0] * 5 + [1] * 5 + [0], dtype=np.int32))
    assert labels.tolist() == [0] * 5 + [1] * 5 + [0]


@pytest.mark.parametrize(("near", "count"), [(0.9, 1), (0.0, 2)], ids=["near", "a word of two meanings"])
def test_near_clusters_of_one_name_are_one(near: float, count: int) -> None:
    items = [
        *tools("violin", 4),
        *tools("violin", 4, first=5),
        *(item for word in FILLERS for item in tools(word, 30)),
    ]
    axes = np.eye(12)
    vectors = around((axes[0], 4), (near * axes[0] + (1 - near) * axes[1], 4), *((axis, 30) for axis in axes[2:]))
    labels = grouping(items, vectors).grouped(np.repeat(np.arange(12, dtype=np.int32), [4, 4, *[30] * 10]))
    assert len(set(labels[:8])) == count


def test_items_that_no_name_fits_do_not_take_the_names_of_clusters_away() -> None:
    strays = [Item(f"x{n}", ItemKind.TOOL, f"stray {n}", f"do_{n}", f"Handle {n}{n}{n}.") for n in range(24)]
    items = [*tools("violin", 8), *tools("candle", 8), *tools("rocket", 8), *strays]
    axes = np.eye(4)
    vectors = around(*((axis, 8) for axis in axes[:3]), (axes[3] + 0.3, 24))
    grouped = grouping(items, vectors).grouped(np.repeat(np.arange(4, dtype=np.int32), [8, 8, 8, 24]))
    assert [len(set(grouped[start : start + 8])) for start in (0, 8, 16)] == [1, 1, 1]
    assert len(set(grouped[:24])) == 3


def test_a_full_cluster_takes_no_more_items() -> None:
    items = [*tools("violin", 5), *tools("violin", 5, first=5), *tools("violin", 4, first=10)]
    vectors = around(([1, 0.1], 5), ([0.8, 0.5], 5), ([1, 0.12], 4))
    full = grouping(items, vectors)
    full.limits = GroupLimits(3, 5)
    labels = full._fitted(np.array([0] * 5 + [1] * 5 + [-1] * 4, dtype=np.int32), _texts(full))
    assert np.bincount(labels[labels >= 0]).tolist() == [5, 5]


def _texts(made: Grouping) -> list[ClusterText]:
    return [made.text(np.arange(5)), made.text(np.arange(5, 10))]


def framed(count: int, text: str) -> list[Item]:
    return [
        Item(
            f"a{place}",
            ItemKind.TOOL,
            f"Server {place}",
            f"do_{place}",
            text.format(f"Server {place}", f"do_{place}"),
        )
        for place in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "text", "is_empty"),
    [
        (8, "No details here.", True),
        (8, "Install {} @user/thing, then open {} today.", True),
        (7, "No details here.", False),
    ],
    ids=["the same sentence", "the same but for names", "too few"],
)
def test_a_sentence_of_many_servers_says_nothing_about_one_tool(count: int, text: str, is_empty: bool) -> None:
    items = framed(count, text)
    assert [not item.description for item in without_boilerplate(items, boilerplate_of(items))] == [
        is_empty
    ] * count


def test_what_a_sentence_of_many_adds_to_a_vector_joins_no_items() -> None:
    items = [*framed(10, "No details here."), *tools("violin", 10)]
    shared = np.zeros((20, 32))
    shared[:10, 0] = 2.0
    own = np.random.default_rng(5).normal(size=(20, 32)) * 0.2
    vectors = unit_rows(shared + own)
    found = subject_space(items, vectors).own(items, vectors)[:10, :32]
    assert np.abs(found @ found.T - np.eye(10)).mean() < 0.3
    assert np.abs(vectors[:10] @ vectors[:10].T - np.eye(10)).mean() > 0.5


def test_an_abbreviation_ends_no_sentence() -> None:
    assert (
        first_sentence("Read a file, e.g. a page, i.e. text. Then stop.") == "Read a file, e.g. a page, i.e. text."
    )
