"""Contract of Index for writers: the newest version wins, in any order."""

import pytest

from tests.contracts.builders import axis, point, terms
from toolscript.core.retrieval.model import IndexQuery, PointVersion
from toolscript.core.retrieval.ports import Index

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")


async def versions(index: Index) -> dict[int, int]:
    return {seen.id: seen.version for seen in await index.scan(0, 1000)}


async def name_of(index: Index, id_: int) -> object:
    return (await index.fields([id_]))[id_]["name"]


async def test_a_newer_version_replaces_an_older_one(index: Index) -> None:
    await index.put([point(1, 1, words="old", name="old")])
    await index.put([point(1, 2, words="new", name="new")])
    assert (await versions(index), await name_of(index, 1)) == ({1: 2}, "new")
    assert (await index.search(IndexQuery(terms=terms("old")))).words == []


async def test_an_older_version_never_replaces_a_newer_one(index: Index) -> None:
    await index.put([point(1, 2, name="new")])
    await index.put([point(1, 1, name="old")])
    assert (await versions(index), await name_of(index, 1)) == ({1: 2}, "new")


async def test_the_same_version_may_be_put_again(index: Index) -> None:
    await index.put([point(1, 5, name="first")])
    await index.put([point(1, 5, name="again")])
    assert (await versions(index), await name_of(index, 1)) == ({1: 5}, "again")


async def test_each_point_of_a_batch_is_compared_by_its_own_version(index: Index) -> None:
    await index.put([point(1, 10), point(2, 20), point(3, 30)])
    await index.put([point(1, 15), point(2, 15), point(3, 35), point(4, 1)])
    assert await versions(index) == {1: 15, 2: 20, 3: 35, 4: 1}


async def test_a_point_is_removed_by_its_own_or_a_later_version(index: Index) -> None:
    await index.put([point(1, 5), point(2, 5), point(3, 5)])
    await index.remove([PointVersion(1, 5), PointVersion(2, 6)])
    assert await versions(index) == {3: 5}


async def test_a_late_removal_does_not_take_what_is_newer(index: Index) -> None:
    await index.put([point(1, 5), point(2, 5)])
    await index.remove([PointVersion(1, 4), PointVersion(2, 9)])
    assert await versions(index) == {1: 5}


async def test_removing_what_is_absent_does_nothing(index: Index) -> None:
    await index.put([point(1)])
    await index.remove([PointVersion(99, 100)])
    assert await index.count() == 1


async def test_a_removed_point_is_found_by_no_retriever(index: Index) -> None:
    await index.put([point(1, words="read"), point(2, words="read")])
    await index.remove([PointVersion(1, 1)])
    answer = await index.search(IndexQuery(vector=axis(0), terms=terms("read")))
    for arm in (answer.dense or (), answer.words or ()):
        assert [item.id for item in arm] == [2]


async def test_nothing_to_put_or_remove_changes_nothing(index: Index) -> None:
    await index.put([point(1)])
    await index.put([])
    await index.remove([])
    assert await index.count() == 1


async def test_versions_far_apart_are_distinguished(index: Index) -> None:
    await index.put([point(1, 2**52)])
    await index.put([point(1, 2**52 - 1, name="old")])
    await index.put([point(1, 2**52 + 1, name="new")])
    assert await versions(index) == {1: 2**52 + 1}


async def test_a_scan_goes_through_all_points_in_order_of_id_page_by_page(index: Index) -> None:
    await index.put([point(id_, id_ * 7) for id_ in (9, 2, 40, 5, 7)])
    first = await index.scan(0, 2)
    second = await index.scan(first[-1].id, 2)
    last = await index.scan(second[-1].id, 2)
    assert [[seen.id for seen in page] for page in (first, second, last)] == [[2, 5], [7, 9], [40]]
    assert [seen.version for seen in (*first, *second, *last)] == [14, 35, 49, 63, 280]
    assert await index.scan(40, 2) == []


async def test_a_scan_of_an_empty_index_is_empty(index: Index) -> None:
    assert await index.scan(0, 10) == []
    assert await index.count() == 0
