"""Contract of SkillVectors: centroids are exactly those of the items, after any changes."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tests.contracts.builders import DIMENSIONS, Record, axis, tools
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Centroid, Counted, SkillState

pytestmark = pytest.mark.requirement("SK-007")

FIRST = 1  # the index version that is live from the start


@pytest.fixture
async def record(record: Record) -> Record:
    for name in ("files", "mail", "maps"):
        await record.taxonomy.add(Skill(name, name.title(), f"About {name}."), "ann")
    await record.catalog.store("file", tools(4))
    return record


async def claimed(record: Record) -> Claim:
    return await record.dirty.claim(FIRST, 1000, 60)


async def states(record: Record) -> dict[str, SkillState]:
    await record.skill_vectors.all_behind(FIRST)
    return {each.skill.id: each for each in await record.skill_vectors.behind(FIRST, 100)}


def item(id_: int, vector: Vector, text: str = "text", **weights: int) -> Counted:
    return Counted(id_, text, vector, weights)


async def count(record: Record, claim: Claim, *items: Counted) -> None:
    await record.skill_vectors.count(FIRST, claim, items)


def mean_of(state: SkillState) -> list[float]:
    mean = state.total.mean()
    assert mean is not None
    return [round(float(each), 4) for each in mean]


async def test_it_is_known_whether_any_item_has_been_counted(record: Record) -> None:
    assert not await record.skill_vectors.has_counted(FIRST)
    each, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(0), mail=8_000))
    assert await record.skill_vectors.has_counted(FIRST)
    assert not await record.skill_vectors.has_counted(FIRST + 1)


async def test_a_point_written_while_all_are_set_behind_stays_behind(record: Record) -> None:
    written = await record.skill_vectors.behind(FIRST, 100)
    await record.skill_vectors.all_behind(FIRST)
    await record.skill_vectors.mark_indexed(FIRST, written)
    assert {each.skill.id for each in await record.skill_vectors.behind(FIRST, 100)} == {"files", "mail", "maps"}


async def test_a_skill_is_the_mean_of_its_items_by_their_weight(record: Record) -> None:
    each, other, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(0), mail=8_000), item(other, axis(1), mail=6_000, maps=5_000))
    result = await states(record)
    assert mean_of(result["mail"]) == [0.8, 0.6] + [0.0] * (DIMENSIONS - 2)
    assert (result["mail"].total.weight, result["mail"].total.members) == (14_000, 2)
    assert result["maps"].total.members == 1
    assert result["files"].total.members == 0
    assert result["files"].total.mean() is None


async def test_counting_again_changes_nothing(record: Record) -> None:
    each, *_ = (claim := await claimed(record)).versions
    for _ in range(3):
        await count(record, claim, item(each, axis(0), mail=8_000))
    assert (await states(record))["mail"].total.weight == 8_000


async def test_an_item_that_moves_leaves_nothing_behind(record: Record) -> None:
    each, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(0), mail=8_000))
    await count(record, claim, item(each, axis(1), "another", maps=7_000))
    result = await states(record)
    assert result["mail"].total.is_nothing
    assert mean_of(result["maps"])[1] == 1.0


async def test_a_claimed_item_that_is_not_counted_is_subtracted(record: Record) -> None:
    each, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(0), mail=8_000))
    await count(record, claim)
    assert (await states(record))["mail"].total.is_nothing
    assert await record.skill_vectors.recall(FIRST, {each: "text"}) == {}


async def test_items_of_another_worker_are_left_alone(record: Record) -> None:
    each, *_ = (lost := await claimed(record)).versions
    await record.let_pass(120)
    await count(record, await claimed(record), item(each, axis(1), mail=9_000))
    await count(record, lost, item(each, axis(0), mail=5_000))
    assert (await states(record))["mail"].total.weight == 9_000


async def test_an_item_that_changed_since_it_was_read_is_left_for_the_next_run(record: Record) -> None:
    each, *_ = (claim := await claimed(record)).versions
    await record.catalog.store("file", tools(4, "changed"))
    await count(record, claim, item(each, axis(0), mail=8_000))
    assert (await states(record))["mail"].total.is_nothing


async def test_the_vector_of_the_same_text_is_known_and_of_another_is_not(record: Record) -> None:
    each, other, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(3)), item(other, axis(4), "changed"))
    existing = await record.skill_vectors.recall(FIRST, {each: "text", other: "text", 10**9: "text"})
    assert list(existing) == [each]
    assert np.array_equal(existing[each], axis(3))


async def test_a_new_generation_starts_with_every_skill_and_no_item(record: Record) -> None:
    each, *_ = (claim := await claimed(record)).versions
    await count(record, claim, item(each, axis(0), mail=8_000))
    begun = await record.dirty.begin("another")
    result = await record.skill_vectors.behind(begun.id, 100)
    assert [(state.skill.id, state.total.members) for state in result] == [("files", 0), ("mail", 0), ("maps", 0)]
    assert await record.skill_vectors.recall(begun.id, {each: "text"}) == {}


async def test_only_skills_that_moved_or_changed_are_behind(record: Record) -> None:
    claim = await claimed(record)
    await follow(record)
    assert await record.skill_vectors.behind(FIRST, 10) == []
    await count(record, claim, item(next(iter(claim.versions)), axis(0), mail=8_000))
    assert await follow(record) == ["mail"]
    await record.taxonomy.change(Skill("maps", "Maps", "Places."), "ann")
    assert [each.skill.description for each in await record.skill_vectors.behind(FIRST, 10)] == ["Places."]
    assert await record.skill_vectors.behind(FIRST, 10, ["mail"]) == []


async def test_a_skill_that_moves_while_its_point_is_written_stays_behind(record: Record) -> None:
    claim = await claimed(record)
    read = await record.skill_vectors.behind(FIRST, 10)
    await count(record, claim, item(next(iter(claim.versions)), axis(0), mail=8_000))
    await record.skill_vectors.mark_indexed(FIRST, read)
    assert await follow(record) == ["mail"]


async def follow(record: Record) -> list[str]:
    read = await record.skill_vectors.behind(FIRST, 10)
    await record.skill_vectors.mark_indexed(FIRST, read)
    return [each.skill.id for each in read]


async def test_after_any_changes_the_centroids_are_exactly_those_of_the_items(record: Record) -> None:
    chance = random.Random(7)
    claim = await claimed(record)
    now: dict[int, Counted] = {}
    for _ in range(200):
        id_ = chance.choice(list(claim.versions))
        weights = {skill: chance.randint(5_000, 10_000) for skill in ("files", "mail") if chance.random() < 0.6}
        now[id_] = item(id_, random_vector(chance), str(chance.random()), **weights)
        await count(record, Claim(claim.token, {id_: claim.versions[id_]}), now[id_])
    result = await states(record)
    for skill in ("files", "mail"):
        assert_same(result[skill].total, [each for each in now.values() if skill in each.weights], skill)
    rebuilt = await record.skill_vectors.rebuild(FIRST)
    assert (rebuilt.items, rebuilt.mended, rebuilt.largest_drift) == (len(now), (), 0.0)


def random_vector(chance: random.Random) -> Vector:
    vector = np.array([chance.gauss(0, 1) for _ in range(DIMENSIONS)], dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def assert_same(total: Centroid, items: Sequence[Counted], skill: str) -> None:
    exact = sum(each.weights[skill] * each.vector.astype(np.float64) for each in items)
    assert total.members == len(items)
    assert total.weight == sum(each.weights[skill] for each in items)
    if items:
        mean = total.mean()
        assert mean is not None
        assert np.abs(mean - exact / np.linalg.norm(exact)).max() < 1e-6
    else:
        assert total.is_nothing
