"""An index version with namespaces: where points go, and what a search in some of them sees."""

from dataclasses import replace

import pytest

from tests.contracts.builders import CARD, axis, between, point, terms
from toolscript.core.retrieval import namespaced
from toolscript.core.retrieval.model import IndexQuery, Point, PointVersion
from toolscript.core.retrieval.namespaced import ABSENT_SECONDS, DefaultNamespace, NamespacedIndex
from toolscript.core.retrieval.ports import Index, Indexes, IndexReader

pytestmark = pytest.mark.requirement("AP-005")


class Clock:
    time = 1_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def whole(some_indexes: Indexes, clock: Clock) -> NamespacedIndex:
    await some_indexes.create(CARD)
    return NamespacedIndex(some_indexes, await some_indexes.open(CARD), now=clock)


def in_namespace(namespace: str, *points: Point) -> list[Point]:
    return [replace(each, namespace=namespace) for each in points]


async def ids(index: IndexReader, ask: IndexQuery | None = None) -> list[int]:
    found = await index.search(ask or IndexQuery(axis(0), limit=10))
    return [hit.id for hit in found.dense or found.words or ()]


async def test_a_search_sees_the_points_of_its_namespaces_only(whole: NamespacedIndex) -> None:
    await whole.put([point(1), *in_namespace("blue", point(2)), *in_namespace("red", point(3))])
    assert await ids(whole.within(("default",))) == [1]
    assert await ids(whole.within(("blue",))) == [2]
    assert sorted(await ids(whole.within(("blue", "default")))) == [1, 2]
    assert await ids(whole.within(("absent",))) == []
    assert await ids(whole.within(())) == []
    assert sorted(await ids(whole)) == [1, 2, 3]


async def test_payloads_of_other_namespaces_cannot_be_read(whole: NamespacedIndex) -> None:
    await whole.put([point(1), *in_namespace("blue", point(2))])
    assert set(await whole.within(("blue",)).fields([1, 2])) == {2}
    assert set(await whole.within(("blue", "default")).fields([1, 2, 3])) == {1, 2}
    assert await whole.within(("absent",)).fields([1, 2]) == {}
    assert set(await whole.fields([1, 2])) == {1, 2}


async def test_the_default_namespace_is_asked_without_a_layer(some_indexes: Indexes) -> None:
    await some_indexes.create(CARD)
    default = await some_indexes.open(CARD)
    assert NamespacedIndex(some_indexes, default).within(("default",)) is default


async def test_statistics_are_those_of_the_namespaces(whole: NamespacedIndex) -> None:
    word = terms("file")
    await whole.put(
        [
            point(1, words="file"),
            *in_namespace("blue", point(2, words="file"), point(3, words="mail"), point(4, words="mail")),
        ]
    )
    (term,) = word
    alone = await whole.within(("blue",)).search(IndexQuery(terms=word))
    both = await whole.within(("blue", "default")).search(IndexQuery(terms=word))
    assert (alone.points, both.points) == (3, 4)
    assert [alone.shares[term], both.shares[term]] == pytest.approx([1 / 3, 2 / 4])
    assert (alone.unskilled, both.unskilled) == (3, 4)


async def test_several_namespaces_are_merged_by_score_and_limited(whole: NamespacedIndex) -> None:
    await whole.put(
        [
            point(1, vector=between(0, 1, 0.9)),
            point(2, vector=between(0, 1, 0.5)),
            *in_namespace("blue", point(3, vector=between(0, 1, 0.7)), point(4, vector=between(0, 1, 0.3))),
        ]
    )
    asks = [IndexQuery(axis(0), limit=3), IndexQuery(terms={}, limit=3)]
    dense, sparse = await whole.within(("blue", "default")).search_all(asks)
    assert [hit.id for hit in dense.dense or ()] == [1, 3, 2]
    assert (dense.words, sparse.dense, sparse.words) == (None, None, [])


async def test_an_empty_view_answers_like_an_empty_index(whole: NamespacedIndex) -> None:
    asks = [IndexQuery(axis(0)), IndexQuery(terms=terms("file")), IndexQuery(axis(0), terms("file"))]
    expected = await whole.within(("default",)).search_all(asks)
    assert await whole.within(()).search_all(asks) == expected
    assert await whole.within(("absent",)).search_all(asks) == expected


async def test_a_namespace_that_another_process_creates_appears_after_a_moment(
    whole: NamespacedIndex, some_indexes: Indexes, clock: Clock
) -> None:
    view = whole.within(("blue",))
    assert await ids(view) == []
    other = await NamespacedIndex.open(some_indexes, CARD)
    await other.put(in_namespace("blue", point(2)))
    assert await ids(view) == []
    clock.time += ABSENT_SECONDS
    assert await ids(view) == [2]


async def test_two_processes_may_create_a_namespace_at_once(whole: NamespacedIndex, some_indexes: Indexes) -> None:
    other = await NamespacedIndex.open(some_indexes, CARD)
    await whole.put(in_namespace("blue", point(1)))
    await other.put(in_namespace("blue", point(2)))
    assert sorted(await ids(whole.within(("blue",)))) == [1, 2]


async def test_points_are_removed_from_their_namespace_or_from_all(whole: NamespacedIndex) -> None:
    await whole.put([point(1), *in_namespace("blue", point(1), point(2)), *in_namespace("red", point(3))])
    await whole.remove([PointVersion(1, 1, "blue"), PointVersion(2, 1, "default"), PointVersion(3, 1, "absent")])
    assert sorted(await ids(whole)) == [1, 2, 3]
    await whole.remove([PointVersion(2, 1), PointVersion(3, 1)])
    assert await ids(whole) == [1]
    assert await ids(whole.within(("default",))) == [1]


async def test_a_removal_reaches_a_namespace_that_another_process_has_just_created(
    whole: NamespacedIndex, some_indexes: Indexes
) -> None:
    assert await ids(whole.within(("blue",))) == []
    await (await NamespacedIndex.open(some_indexes, CARD)).put(in_namespace("blue", point(1), point(2)))
    await whole.remove([PointVersion(1, 1), PointVersion(2, 1, "blue")])
    assert await whole.count() == 0


async def test_newer_points_stay(whole: NamespacedIndex) -> None:
    await whole.put(in_namespace("blue", replace(point(1), version=5)))
    await whole.put(in_namespace("blue", replace(point(1), version=4)))
    await whole.remove([PointVersion(1, 4), PointVersion(1, 4, "blue")])
    assert await whole.scan(0, 10) == [PointVersion(1, 5)]


async def scanned(whole: NamespacedIndex, limit: int) -> list[tuple[int, str | None]]:
    seen: list[tuple[int, str | None]] = []
    after = 0
    while page := await whole.scan(after, limit):
        seen += [(each.id, each.namespace) for each in page]
        after = page[-1].id
    return seen


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_a_scan_names_every_point_once_with_its_namespace(
    whole: NamespacedIndex, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(namespaced, "MIN_SCANNED", 2)
    places = {"default": (1, 4, 6, 9), "blue": (2, 4, 5, 20, 21, 22), "red": (3, 4)}
    for namespace, numbers in places.items():
        await whole.put(in_namespace(namespace, *map(point, numbers)))
    expected = sorted((number, namespace) for namespace, numbers in places.items() for number in numbers)
    assert await scanned(whole, limit) == expected
    assert await whole.count() == len(expected)


async def test_all_points_can_be_read_up_to_a_maximum(whole: NamespacedIndex) -> None:
    await whole.put([point(1), *in_namespace("blue", point(2), point(3))])
    points = await whole.whole(3)
    assert points is not None
    assert sorted(each.id for each in points) == [1, 2, 3]
    assert await whole.whole(2) is None


async def test_idfs_of_all_namespaces_are_weighted_by_their_points(whole: NamespacedIndex) -> None:
    await whole.put(
        [point(1, words="file"), *in_namespace("blue", point(2, words="file"), point(3, words="file"))]
    )
    (term,) = terms("file")
    here, there = [await (await found(whole, name)).idfs([term]) for name in ("default", "blue")]
    assert (await whole.idfs([term]))[term] == pytest.approx((here[term] + 2 * there[term]) / 3)


async def found(whole: NamespacedIndex, namespace: str) -> Index:
    index = await whole.of(namespace)
    assert index is not None
    return index


async def test_only_some_namespaces_stay_open(whole: NamespacedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaced, "MAX_OPEN", 2)
    for number, namespace in enumerate(("blue", "red", "green"), 1):
        await whole.put(in_namespace(namespace, point(number)))
    assert len(whole.opened) == 3
    assert [await ids(whole.within((namespace,))) for namespace in ("blue", "red", "green")] == [[1], [2], [3]]
    assert len(whole.opened) == 3


async def test_each_namespace_gets_its_layer(whole: NamespacedIndex) -> None:
    layers: list[str] = []

    def layer(index: Index, namespace: str) -> Index:
        layers.append(namespace)
        return index

    wrapped = whole.wrapped(layer).wrapped(layer)
    await wrapped.put([point(1), *in_namespace("blue", point(2))])
    assert await ids(wrapped.within(("blue",))) == [2]
    assert layers == ["default", "default", "default", "blue", "blue"]


async def test_a_plain_index_is_that_of_the_default_namespace(index: Index) -> None:
    await index.put([point(1)])
    views = DefaultNamespace(index)
    assert views.card == CARD
    assert [await ids(views.within(names)) for names in (("default",), ("blue", "default"), ("blue",), ())] == [
        [1],
        [1],
        [],
        [],
    ]


async def test_the_vocabulary_is_that_of_the_namespaces(whole: NamespacedIndex) -> None:
    await whole.put(
        [
            point(1, words="file", name="file"),
            *in_namespace("blue", point(2, words="ocean", name="ocean")),
            *in_namespace("red", point(3, words="brick", name="brick")),
        ]
    )
    blue, both = whole.within(("blue",)), whole.within(("blue", "default"))
    assert (await blue.vocabulary()).words == {"ocean"}
    assert (await both.vocabulary()).words == {"ocean", "file"}
    assert await both.vocabulary() is await both.vocabulary(), "merged once"
    assert [(await both.vocabulary()).knows(word) for word in ("ocean", "file", "brick")] == [True, True, False]
    assert not (await whole.within(("absent",)).vocabulary()).words
    assert (await whole.vocabulary()).words == {"ocean", "file", "brick"}
