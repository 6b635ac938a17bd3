"""Index versions: which one a process opens, and the switch from one model to another."""

import pytest

from tests.unit.tools.indexing.builders import PickyEmbedder, Scene, tool, tools
from toolscript.core.errors import ModelMismatch, SetupError
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.taxonomy import Skill
from toolscript.core.values import Progress
from toolscript.tools.indexing.versions import (
    begin_reindex,
    drop_previous,
    open_for_reading,
    open_for_writing,
    switch_to,
)
from toolscript.tools.model.catalog import IndexVersion, IndexVersionState

pytestmark = pytest.mark.requirement("SK-003")

NEW_EMBEDDER = PickyEmbedder("new")
NEW = IndexCard(NEW_EMBEDDER.model)


async def reindexed(scene: Scene) -> IndexVersion:
    """Return a second index version with the new model, up to date but not live."""
    opened = await begin_reindex(scene.indexes, scene.dirty, NEW)
    await (await scene.worker(opened=opened, embedder=NEW_EMBEDDER)).drain()
    return opened.index_version


async def test_the_first_worker_sets_the_model_and_makes_its_index_live() -> None:
    scene = Scene()
    opened = await scene.open()
    assert opened.index_version == IndexVersion(1, IndexVersionState.LIVE, scene.card.fingerprint)
    assert await scene.indexes.live() == scene.card.fingerprint
    assert (await open_for_reading(scene.indexes, scene.card)).items.card == scene.card


async def test_a_second_worker_of_the_same_model_joins_the_first() -> None:
    scene = Scene()
    assert (await scene.open()).index_version == (await scene.open()).index_version


async def test_a_worker_of_another_model_is_refused_with_the_command_that_helps() -> None:
    scene = Scene()
    await scene.open()
    with pytest.raises(ModelMismatch) as refused:
        await open_for_writing(scene.indexes, scene.dirty, NEW)
    assert "toolscript reindex" in refused.value.hint
    assert refused.value.details == {"live": scene.card.fingerprint, "wanted": NEW.fingerprint, "model": "new"}
    assert await scene.indexes.live() == scene.card.fingerprint


async def test_a_reader_of_another_model_is_refused_with_the_command_that_helps() -> None:
    scene = Scene()
    await scene.open()
    with pytest.raises(ModelMismatch) as refused:
        await open_for_reading(scene.indexes, NEW)
    assert "toolscript reindex" in refused.value.hint


async def test_a_reader_before_any_worker_gets_the_hint_to_run_one() -> None:
    with pytest.raises(SetupError, match="no index yet") as refused:
        await open_for_reading(Scene().indexes, NEW)
    assert "toolscript worker" in refused.value.hint


async def test_a_reindex_marks_every_item_and_leaves_the_live_index_alone() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    await scene.drain()
    seen: list[Progress] = []
    opened = await begin_reindex(scene.indexes, scene.dirty, NEW, seen.append)
    assert (opened.index_version.state, opened.index.card) == (IndexVersionState.BUILDING, NEW)
    assert seen == [Progress("mark", 5)]
    assert (await scene.dirty.pending(opened.index_version.id)).total == 5
    assert await scene.indexes.live() == scene.card.fingerprint
    assert (await scene.dirty.pending(1)).total == 0


async def test_a_restarted_reindex_resumes() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    index_version = await reindexed(scene)
    again = await begin_reindex(scene.indexes, scene.dirty, NEW)
    assert again.index_version == index_version
    assert (await scene.dirty.pending(index_version.id)).total == 0
    assert await again.index.count() == 5


async def test_a_reindex_before_any_worker_leaves_a_worker_something_to_join() -> None:
    scene = Scene()
    begun = await begin_reindex(scene.indexes, scene.dirty, NEW)
    assert (await open_for_writing(scene.indexes, scene.dirty, NEW)).index_version == begun.index_version


async def test_after_the_switch_the_new_model_reads_and_the_old_one_is_refused() -> None:
    scene = Scene()
    await scene.open()
    await switch_to(scene.indexes, scene.dirty, await reindexed(scene))
    assert (await open_for_reading(scene.indexes, NEW)).skills.card == NEW
    with pytest.raises(ModelMismatch):
        await open_for_reading(scene.indexes, scene.card)
    assert [version.state.value for version in await scene.dirty.index_versions()] == ["previous", "live"]


async def test_a_switch_that_died_halfway_can_be_repeated() -> None:
    scene = Scene()
    await scene.open()
    index_version = await reindexed(scene)
    await scene.indexes.make_live(NEW.fingerprint)
    await switch_to(scene.indexes, scene.dirty, index_version)
    assert [version.state.value for version in await scene.dirty.index_versions()] == ["previous", "live"]


async def test_both_index_versions_receive_changes_until_the_old_one_is_dropped() -> None:
    scene = Scene()
    await scene.open()
    index_version = await reindexed(scene)
    await switch_to(scene.indexes, scene.dirty, index_version)
    await scene.catalog.store("file", tools(2))
    assert (await scene.dirty.pending(1)).total == 2
    assert (await scene.dirty.pending(index_version.id)).total == 2


async def test_an_index_version_without_a_model_cannot_go_live() -> None:
    scene = Scene()
    with pytest.raises(SetupError):
        await switch_to(scene.indexes, scene.dirty, (await scene.dirty.index_versions())[0])


async def test_dropping_the_previous_index_version_deletes_its_record_and_its_index() -> None:
    scene = Scene()
    old = scene.card
    await scene.open()
    index_version = await reindexed(scene)
    await switch_to(scene.indexes, scene.dirty, index_version)
    assert await drop_previous(scene.indexes, scene.dirty) == [old.fingerprint]
    assert [version.id for version in await scene.dirty.index_versions()] == [index_version.id]
    with pytest.raises(SetupError):
        await scene.indexes.items.open(old)


async def test_a_drop_that_died_after_the_index_can_be_repeated() -> None:
    scene = Scene()
    await scene.open()
    await switch_to(scene.indexes, scene.dirty, await reindexed(scene))
    await scene.indexes.drop(scene.card.fingerprint)
    assert await drop_previous(scene.indexes, scene.dirty) == [scene.card.fingerprint]


async def test_without_a_previous_index_version_nothing_is_dropped() -> None:
    scene = Scene()
    await scene.open()
    await reindexed(scene)
    assert await drop_previous(scene.indexes, scene.dirty) == []
    assert len(await scene.dirty.index_versions()) == 2


async def test_a_reindex_to_the_model_that_is_live_is_refused() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(3))
    await scene.drain()
    with pytest.raises(SetupError, match="built with this model already"):
        await begin_reindex(scene.indexes, scene.dirty, scene.card)


async def test_a_live_index_whose_points_were_lost_is_rebuilt() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(3))
    await scene.drain()
    await scene.indexes.drop(scene.card.fingerprint)
    await begin_reindex(scene.indexes, scene.dirty, scene.card)
    assert (await scene.drain()).indexed == 3
    assert await (await scene.index()).count() == 3


async def test_points_of_a_deleted_index_version_are_not_reused() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(2))
    await scene.drain()
    forgotten = await reindexed(scene)
    await scene.dirty.forget(forgotten.id)
    await scene.catalog.keep_only("file", ["tool_1"])
    await reindexed(scene)
    assert await (await scene.indexes.items.open(NEW)).count() == 1


class Killed(Exception):
    """Simulates the end of a process."""


async def test_a_worker_that_finds_its_collections_gone_indexes_every_item_again() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    await scene.drain()
    await scene.indexes.drop(scene.card.fingerprint)
    assert (await scene.drain()).indexed == 5
    assert await scene.indexed_names() == {f"tool_{number}" for number in range(5)}
    assert (await scene.drain()).indexed == 0


async def test_a_worker_that_finds_its_collection_emptied_indexes_every_item_again() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    await scene.drain()
    await scene.indexes.items.drop(scene.card.fingerprint)
    await scene.indexes.items.create(scene.card)
    assert (await scene.drain()).indexed == 5


@pytest.mark.parametrize("moment", ["create", "fill"])
async def test_a_worker_killed_while_it_recreates_a_collection_leaves_all_items_dirty(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    await scene.drain()
    await scene.indexes.drop(scene.card.fingerprint)

    async def killed(*_: object) -> int:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(scene.dirty if moment == "fill" else scene.indexes.items, moment, killed)
        with pytest.raises(Killed):
            await scene.open()
    # Another worker continues at once, so that the collection is not empty any more.
    await scene.catalog.store("file", [tool("another")])
    await (await scene.worker(batch=1, opened=await scene.open())).drain()
    assert len(await scene.indexed_names()) == 6


async def test_items_written_by_a_running_worker_while_the_collection_is_lost_are_indexed_again() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(2))
    opened = await scene.open()
    held = await scene.dirty.claim(1, 10, lease_seconds=60)
    await scene.indexes.drop(scene.card.fingerprint)
    await scene.open()
    await scene.dirty.clear(1, held)
    assert (await scene.dirty.pending(opened.index_version.id)).total == 2


async def test_when_only_the_skills_are_lost_only_they_are_written_again() -> None:
    scene = Scene()
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.catalog.store("file", tools(2))
    await scene.drain()
    await scene.indexes.skills.drop(scene.card.fingerprint)
    assert (await scene.drain()).indexed == 0
    assert await (await scene.open()).skills.count() == 1
