"""A reindex builds the indexes from the library alone, while other runs search and ingest."""

from typing import cast

import pytest

from tests.unit.knowledge.ingest.ingest_builders import (
    FOLDER,
    CountingEmbedder,
    FilesInMemory,
    Place,
    ScriptedText,
    text_of,
)
from toolscript.core.errors import ModelMismatch
from toolscript.core.retrieval.model import Point
from toolscript.knowledge.model.ingest import IngestOutcome, Reading
from toolscript.testing.retrieval import MemoryIndex

BEES, STEEL = f"{FOLDER}/bees.md", f"{FOLDER}/steel.md"


def two_files() -> FilesInMemory:
    return FilesInMemory(
        {
            BEES: text_of("Keeping bees", "A hive needs a dry place.", "Feed sugar in autumn."),
            STEEL: text_of("Steel bridges", "Bridges rust where water stands."),
        }
    )


async def filled() -> Place:
    place = Place(text=ScriptedText())
    await place.run(two_files())
    return place


async def index_of(place: Place) -> MemoryIndex:
    return cast("MemoryIndex", await place.indexes.chunks.open(place.card))


async def test_a_reindex_gives_the_same_index_as_an_ingest_with_that_model() -> None:
    place, other = await filled(), Place(CountingEmbedder("other"), ScriptedText())
    before = place.card.fingerprint
    await other.run(two_files())
    done = await place.reindex(CountingEmbedder("other"))
    assert (done.live, done.previous) == (place.card.fingerprint, before)
    assert (done.sources, done.points, done.swept, done.left) == (2, 3, 0, 0)
    assert await place.state() == await other.state()
    assert (await place.run(two_files())).outcomes == {IngestOutcome.UNCHANGED: 2}


async def test_the_old_indexes_stay_unchanged_until_they_are_dropped() -> None:
    place = await filled()
    old = await index_of(place)
    points = dict(old._points)
    done = await place.reindex(CountingEmbedder("other"))
    assert old._points == points
    await place.indexes.drop(done.previous)
    assert await place.indexes.live() == done.live


async def test_indexes_that_were_lost_are_built_again_though_everything_is_marked_as_indexed() -> None:
    place = await filled()
    expected = await place.state()
    await place.indexes.drop(place.card.fingerprint)
    done = await place.reindex(CountingEmbedder())
    assert done.points == 3
    assert await place.state() == expected


async def test_missing_points_are_restored_and_orphaned_points_are_removed() -> None:
    place = await filled()
    expected = await place.state()
    index = await index_of(place)
    lost = index._points.pop(min(index._points))
    stray = Point(12345, 1, lost.vector, lost.terms, {"source_id": "0" * 24, "topics": []})
    await index.put([stray])
    done = await place.reindex(CountingEmbedder())
    assert (done.points, done.swept) == (1, 1)
    assert await place.state() == expected


async def test_chunks_ingested_into_the_old_index_meanwhile_are_in_the_new_one() -> None:
    """Ingest between the rounds, and just before the switch."""
    place, files = await filled(), two_files()
    new = f"{FOLDER}/new.md"

    class Busy(CountingEmbedder):
        async def embed_texts(self, texts: list[str]) -> object:  # type: ignore[override]
            vectors = await super().embed_texts(texts)
            if new not in files.texts:
                files.texts |= {new: text_of("New", "It came meanwhile."), STEEL: text_of("Steel", "All new.")}
                del files.texts[BEES]
                here, place.embedder = place.embedder, CountingEmbedder()
                await place.run(files, only=[new], lease=0.02)
                await place.run(files, only=[], lease=0.02)
                place.embedder = here
            return vectors

    await place.reindex(cast("CountingEmbedder", Busy("other")))
    await place.run(files)
    other = Place(CountingEmbedder("other"), ScriptedText())
    await other.run(files)
    assert await place.state() == await other.state()


async def test_a_source_finished_just_before_the_switch_is_in_the_new_index() -> None:
    place, files = await filled(), two_files()
    files.texts[BEES] = text_of("Bees", "The very last words.")
    switched, make_live = place.indexes.extractions, place.indexes.extractions.make_live

    async def at_the_last_moment(fingerprint: str) -> None:
        here, place.embedder = place.embedder, CountingEmbedder()
        await place.run(files)
        place.embedder = here
        await make_live(fingerprint)

    with pytest.MonkeyPatch.context() as late:
        late.setattr(switched, "make_live", at_the_last_moment)
        await place.reindex(CountingEmbedder("other"))
    other = Place(CountingEmbedder("other"), ScriptedText())
    await other.run(files)
    assert await place.state() == await other.state()


async def test_a_run_of_the_old_model_ends_when_another_index_becomes_live_meanwhile() -> None:
    place, files = await filled(), two_files()

    class Switched(FilesInMemory):
        async def read(self, path: str) -> Reading:
            here = place.embedder
            await place.reindex(CountingEmbedder("other"))
            place.embedder = here
            return await super().read(path)

    files.texts[BEES] = text_of("Bees", "Other.")
    with pytest.raises(ModelMismatch):
        await place.run(Switched(files.texts))
    assert (await place.state())["claims"] == {}


async def test_a_run_of_the_old_model_does_not_begin_when_another_index_is_live() -> None:
    place, files = await filled(), two_files()
    await place.reindex(CountingEmbedder("other"))
    place.embedder = CountingEmbedder()
    files.texts[BEES] = text_of("Bees", "Other.")
    with pytest.raises(ModelMismatch):
        await place.run(files)
    assert (await place.state())["claims"] == {}
