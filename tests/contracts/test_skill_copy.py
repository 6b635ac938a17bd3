"""A copy of the skill index returns the same results as the index, and follows its changes."""

import numpy as np
import pytest

from tests.contracts.builders import DIMENSIONS, axis, between, point
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.model import Candidates, Condition, IndexQuery, Point, Vector
from toolscript.core.retrieval.ports import Index
from toolscript.tools.skill_copy import CHECK_SECONDS, MAX_SKILLS, READ_AGAIN_SECONDS, STALE_SECONDS, SkillCopy

ACTIVE = Condition("is_active", (True,))


class Scene:
    """An index, its copy, the recorded versions, and a manual clock."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.versions: dict[int, int] = {}
        self.asked = 0
        self.clock = 1_000.0
        self.is_down = False
        self.copy = SkillCopy(index, self._written, lambda: self.clock)

    async def _written(self) -> dict[int, int]:
        self.asked += 1
        if self.is_down:
            raise IndexUnavailable("gone")
        return dict(self.versions)

    async def write(self, *points: Point) -> None:
        """Write like another process: the index first, then the record."""
        await self.index.put(points)
        self.versions.update({item.id: item.version for item in points})

    async def later(self, seconds: float) -> None:
        self.clock += seconds
        await self.copy.check()

    async def both(self, ask: IndexQuery) -> tuple[Candidates, Candidates]:
        return await self.copy.search(ask), await self.index.search(ask)

    async def found(self) -> list[int]:
        ask = IndexQuery(axis(0), where=(ACTIVE,), limit=10)
        return [item.id for item in (await self.copy.search(ask)).dense or ()]


@pytest.fixture
async def scene(index: Index) -> Scene:
    opened = Scene(index)
    await opened.write(
        point(1, vector=axis(0)),
        point(2, vector=between(0, 1, 0.6)),
        point(3, vector=between(0, 2, 0.6), is_active=False),
        point(4, vector=-axis(0)),
    )
    await opened.copy.check()
    return opened


def random_vector(seed: int) -> Vector:
    drawn = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn))


@pytest.mark.states("S3-220")
@pytest.mark.parametrize("seed", range(5))
async def test_the_copy_finds_what_the_index_finds_in_the_same_order(scene: Scene, seed: int) -> None:
    await scene.write(*(point(10 + number, vector=random_vector(100 + number)) for number in range(60)))
    await scene.later(1.0)
    asks = [
        IndexQuery(random_vector(seed), where=(ACTIVE,), limit=3),
        IndexQuery(random_vector(seed), where=(ACTIVE,), limit=100),
        IndexQuery(random_vector(seed), where=(ACTIVE,), limit=5, only=(1, 3, 12, 30, 999)),
    ]
    for ask in asks:
        mine, its = await scene.both(ask)
        assert [item.id for item in mine.dense or ()] == [item.id for item in its.dense or ()] != []
        expected = [item.score for item in its.dense or ()]
        assert [item.score for item in mine.dense or ()] == pytest.approx(expected, abs=1e-5)
    output = await scene.copy.fields([1, 3, 999], ("is_active",))
    assert (
        output
        == await scene.index.fields([1, 3, 999], ("is_active",))
        == {
            1: {"is_active": True},
            3: {"is_active": False},
        }
    )


async def test_a_fresh_copy_sends_no_request_to_the_index(scene: Scene) -> None:
    await scene.index.put([point(5, vector=axis(0))])
    assert await scene.found() == [1, 2, 4]


async def test_added_changed_and_deactivated_points_are_seen_by_the_next_check(scene: Scene) -> None:
    await scene.write(
        point(5, vector=between(0, 3, 0.9)),
        point(2, version=2, vector=axis(1)),
        point(1, version=2, vector=axis(0), is_active=False),
    )
    await scene.later(CHECK_SECONDS)
    assert await scene.found() == [5, 2, 4]


async def test_an_index_without_points_has_an_empty_copy(index: Index) -> None:
    empty = Scene(index)
    await empty.copy.check()
    assert await empty.found() == []


async def test_what_this_process_writes_is_seen_at_once(scene: Scene) -> None:
    await scene.copy.put([point(1, version=2, vector=axis(0), is_active=False)])
    assert await scene.found() == [2, 4]


async def test_a_copy_that_cannot_be_verified_is_not_used(scene: Scene) -> None:
    scene.is_down = True
    await scene.index.put([point(5, vector=axis(0))])
    await scene.later(STALE_SECONDS)
    assert await scene.found() == [1, 2, 4]
    await scene.later(0.1)
    assert await scene.found() == [1, 5, 2, 4]


async def test_unrecorded_changes_are_seen_after_a_minute(scene: Scene) -> None:
    await scene.index.put([point(5, vector=between(0, 3, 0.9))])
    await scene.later(READ_AGAIN_SECONDS)
    assert await scene.found() == [1, 2, 4]
    await scene.later(1.0)
    assert await scene.found() == [1, 5, 2, 4]


async def test_searches_begin_a_check_only_now_and_then(scene: Scene) -> None:
    for _ in range(5):
        await scene.found()
    assert scene.asked == 1


async def test_more_points_than_a_copy_holds_are_left_to_the_index(scene: Scene) -> None:
    await scene.write(*(point(100 + number, vector=axis(1)) for number in range(MAX_SKILLS)))
    await scene.later(1.0)
    await scene.index.put([point(5, vector=axis(0))])
    assert (await scene.found())[:2] == [1, 5]
    assert await scene.index.whole(MAX_SKILLS) is None


async def test_sparse_queries_go_to_the_index(scene: Scene) -> None:
    await scene.write(point(6, words="read"))
    requests = IndexQuery(terms=point(0, words="read").terms)
    assert [word.id for word in (await scene.copy.search(requests)).words or ()] == [6]
