"""Items are classified while they are indexed, and the centroids of skills are updated."""

from collections.abc import Mapping

import numpy as np
import pytest

from tests.unit.tools.indexing.builders import KeywordClassifier, Scene, tool
from toolscript.core.embedding.items import embed_items
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import Fields, IndexQuery
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.centroids import SkillKey

MAIL = Skill("mail", "Mail", "Letters and post.", keywords=("letter",))
MAPS = Skill("maps", "Maps", "Places on earth.", keywords=("place",))


async def scene_with(*descriptions: str) -> Scene:
    scene = Scene()
    for skill in (MAIL, MAPS):
        await scene.taxonomy.add(skill, "ann")
    await scene.catalog.store("file", [tool(f"tool_{number}", text) for number, text in enumerate(descriptions)])
    await scene.drain()
    return scene


async def points(scene: Scene) -> dict[str, Fields]:
    index = await scene.index()
    ids = [seen.id for seen in await index.scan(0, 100)]
    return {str(fields["name"]): fields for fields in (await index.fields(ids)).values()}


async def skill_points(scene: Scene) -> Mapping[str, Fields]:
    skills = (await scene.open()).skills
    return {str(fields["id"]): fields for fields in (await skills.fields([MAIL.point_id, MAPS.point_id])).values()}


def classified_names(scene: Scene) -> list[str]:
    assert isinstance(scene.classifier, KeywordClassifier)
    return scene.classifier.classified


@pytest.mark.requirement("SK-009")
async def test_an_item_is_indexed_with_its_assigned_skills() -> None:
    scene = await scene_with("write a letter", "find the place of a letter", "")
    payloads = await points(scene)
    assert payloads["tool_0"]["skill_ids"] == ["mail"]
    assert payloads["tool_1"]["skill_ids"] == ["mail", "maps"]
    assert payloads["tool_1"]["primary_skill_id"] == "mail"
    assert payloads["tool_2"]["skill_ids"] == []


@pytest.mark.requirement("SK-009")
async def test_only_changed_items_are_classified_and_embedded_again() -> None:
    scene = await scene_with("write a letter", "find a place")
    classified_names(scene).clear()
    embedded = scene.embedder.texts_embedded
    await scene.catalog.store("file", [tool("tool_0", "write a letter"), tool("tool_1", "find a nice place")])
    await scene.drain()
    assert classified_names(scene) == ["tool_1"]
    again = scene.embedder.texts_embedded
    await scene.catalog.store("file", [tool("tool_0", "write a letter"), tool("tool_1", "find a nice place")])
    await scene.drain()
    assert classified_names(scene) == ["tool_1"]
    assert scene.embedder.texts_embedded == again > embedded


@pytest.mark.requirement("SK-008")
async def test_a_decision_by_hand_moves_the_item_without_embedding_it_and_outlives_its_changes() -> None:
    scene = await scene_with("write a letter")
    (item,) = [seen.id for seen in await scene.catalog.scan(0, 10)]
    classified_names(scene).clear()
    embedded = scene.embedder.texts_embedded
    await scene.assignments.set_by_hand(item, ["maps"], "ann")
    await scene.drain()
    assert (await points(scene))["tool_0"]["skill_ids"] == ["maps"]
    # Only the skill that is empty now needs its own text.
    assert scene.embedder.texts_embedded - embedded <= 1
    await scene.catalog.store("file", [tool("tool_0", "write another letter")])
    await scene.drain()
    assert (await points(scene))["tool_0"]["skill_ids"] == ["maps"]
    assert classified_names(scene) == []


@pytest.mark.states("S0-200")
@pytest.mark.requirement("SK-007")
async def test_a_skill_is_found_by_the_centroid_of_its_items() -> None:
    scene = await scene_with("write a letter", "read a letter", "")
    payloads = await skill_points(scene)
    assert (payloads["mail"]["tool_count"], payloads["maps"]["tool_count"]) == (2, 0)
    items = [stored.item for stored in await scene.catalog.items([1, 2])]
    mean = np.asarray(sum(await embed_items(scene.embedder, items)))
    best = (await (await scene.open()).skills.search(IndexQuery(vector=mean / np.linalg.norm(mean)))).dense or ()
    assert (best[0].id, round(best[0].score, 5)) == (MAIL.point_id, 1.0)


@pytest.mark.requirement("SK-007")
async def test_a_skill_without_items_is_found_by_its_own_text() -> None:
    scene = await scene_with("write a letter")
    vector = (await scene.embedder.embed_texts([MAPS.text]))[0]
    best = (await (await scene.open()).skills.search(IndexQuery(vector=vector))).dense or ()
    assert (best[0].id, round(best[0].score, 5)) == (MAPS.point_id, 1.0)


@pytest.mark.states("S0-200")
@pytest.mark.requirement("SK-007")
async def test_removed_items_leave_the_centroids() -> None:
    scene = await scene_with("write a letter", "read a letter")
    await scene.catalog.remove("file", ["tool_0", "tool_1"])
    await scene.drain()
    assert (await skill_points(scene))["mail"]["tool_count"] == 0
    assert scene.skill_vectors.sums[1][SkillKey("mail", DEFAULT_NAMESPACE)].is_nothing


@pytest.mark.requirement("SK-001")
async def test_a_deactivated_skill_is_indexed_as_such_and_gets_no_new_items() -> None:
    scene = await scene_with("write a letter")
    await scene.taxonomy.change(Skill("mail", "Mail", "Letters.", keywords=("letter",), is_active=False), "ann")
    await scene.catalog.store("file", [tool("late", "one more letter")])
    await scene.drain()
    assert (await skill_points(scene))["mail"]["is_active"] is False
    payloads = await points(scene)
    assert (payloads["tool_0"]["skill_ids"], payloads["late"]["skill_ids"]) == (["mail"], [])


@pytest.mark.requirement("SK-006")
async def test_an_approved_suggestion_gets_the_items_that_requested_it() -> None:
    scene = await scene_with("cook soup", "write a letter")
    (suggestion,) = await scene.suggestions.page(0, 10)
    assert (suggestion.suggested.name, suggestion.asked_by) == ("cook soup", 1)
    await scene.suggestions.approve(suggestion.id, Skill("cooking", "Cooking", keywords=("soup",)), "ann")
    await scene.drain()
    assert (await points(scene))["tool_0"]["skill_ids"] == ["cooking"]


@pytest.mark.requirement("SK-006")
async def test_a_merged_suggestion_gives_its_items_the_skill_it_was_merged_into() -> None:
    scene = await scene_with("cook soup")
    (suggestion,) = await scene.suggestions.page(0, 10)
    await scene.suggestions.merge(suggestion.id, "maps", "ann")
    await scene.drain()
    await scene.catalog.store("file", [tool("late", "Cook  soup")])
    await scene.drain()
    payloads = await points(scene)
    assert (payloads["tool_0"]["skill_ids"], payloads["late"]["skill_ids"]) == (["maps"], ["maps"])


async def test_without_any_skill_items_are_indexed_and_wait_for_the_first() -> None:
    scene = Scene()
    await scene.catalog.store("file", [tool("tool_0", "write a letter")])
    await scene.drain()
    assert classified_names(scene) == []
    assert [stored.needs_skills for stored in await scene.catalog.items([1])] == [True]
    await scene.taxonomy.add(MAIL, "ann")
    await scene.assignments.reclassify(0, 100)
    await scene.drain()
    assert (await points(scene))["tool_0"]["skill_ids"] == ["mail"]


@pytest.mark.states("S3-030")
@pytest.mark.requirement("SK-003", "SK-007")
async def test_skills_that_were_lost_with_their_collection_are_written_again() -> None:
    scene = await scene_with("write a letter")
    await scene.indexes.skills.drop(scene.card.fingerprint)
    await scene.drain()
    assert set(await skill_points(scene)) == {"mail", "maps"}
