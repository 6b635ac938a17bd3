"""Ingest of files into a library and its indexes: writes, skipped work, and the report."""

import asyncio
import contextlib
import time

import pytest

from tests.unit.knowledge.ingest.ingest_builders import (
    FOLDER,
    CountingEmbedder,
    FilesInMemory,
    Place,
    ScriptedText,
    text_of,
)
from toolscript.core.errors import EmbedderRejected, IndexUnavailable, ModelMismatch, SetupError
from toolscript.core.retrieval.model import Matrix
from toolscript.knowledge.ingest.report import Described
from toolscript.knowledge.model.ingest import IngestOutcome
from toolscript.knowledge.model.library import SourceStatus, source_id
from toolscript.testing import MemoryLibrary

BEES, STEEL = f"{FOLDER}/bees.md", f"{FOLDER}/steel.md"


def two_files() -> FilesInMemory:
    return FilesInMemory(
        {
            BEES: text_of(
                "Keeping bees", "A hive needs a dry place.", "Feed sugar in autumn.", "Queens lay eggs."
            ),
            STEEL: text_of("Steel bridges", "Bridges rust where water stands.", "Paint them in spring."),
        }
    )


@pytest.mark.requirement("KN-005")
async def test_a_file_becomes_a_source_with_chunks_and_a_point_for_each() -> None:
    place, files = Place(), two_files()
    report = await place.run(files)
    assert report.outcomes == {IngestOutcome.ADDED: 2}
    stored = (await place.library.known([BEES]))[BEES]
    assert (stored.source.title, stored.source.status) == ("Keeping bees", SourceStatus.READY)
    chunks = await place.library.passage(source_id(BEES), 0, 99)
    assert (
        stored.source.chunk_count
        == len(chunks)
        == len(place.library._chunks) - len(await place.library.passage(source_id(STEEL), 0, 99))
    )
    assert "Feed sugar in autumn." in "\n".join(chunk.content for chunk in chunks)
    points = (await place.state())["chunk points"]
    assert isinstance(points, dict)
    assert len(points) == report.chunks == len(place.library._chunks)


@pytest.mark.requirement("KN-005")
async def test_a_second_run_neither_reads_nor_embeds_nor_writes_anything() -> None:
    place, files = Place(text=ScriptedText()), two_files()
    await place.run(files)
    before, embedded = await place.state(), place.embedder.texts_embedded
    again = FilesInMemory(files.texts)
    report = await place.run(again)
    assert report.outcomes == {IngestOutcome.UNCHANGED: 2}
    assert (report.chunks, report.extractions, again.read_paths) == (0, 0, [])
    assert place.embedder.texts_embedded == embedded
    assert await place.state() == before


async def test_only_the_chunks_that_changed_are_embedded_and_those_that_left_are_removed() -> None:
    place, files = Place(), two_files()
    long = [f"Paragraph {n} about {word} and nothing else." for n, word in enumerate("abcdefg")]
    files.texts[BEES] = text_of("Keeping bees", *long)
    await place.run(files)
    place.embedder.texts.clear()
    files.texts[BEES] = text_of("Keeping bees", *long[:2], "Something new entirely.", *long[3:])
    report = await place.run(files)
    assert report.outcomes == {IngestOutcome.UPDATED: 1, IngestOutcome.UNCHANGED: 1}
    assert place.embedder.texts
    assert all("Something new" in text for text in place.embedder.texts)
    clean = Place()
    await clean.run(files)
    assert await place.state() == await clean.state()


async def test_a_write_with_a_clock_ahead_can_still_be_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, files = Place(), two_files()
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: 9_999_999_999.0)
        await place.run(files)
    await place.run(files, described=Described(topics=("nature",)))
    clean = Place()
    await clean.run(files, described=Described(topics=("nature",)))
    assert await place.state() == await clean.state()


async def test_a_file_with_another_title_is_embedded_again_because_the_title_is_part_of_it() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    files.texts[BEES] = str(files.texts[BEES]).replace("Keeping bees", "Bees and hives")
    await place.run(files)
    clean = Place()
    await clean.run(files)
    assert await place.state() == await clean.state()


async def test_metadata_options_are_stored_and_changed_options_read_the_files_again() -> None:
    place, files = Place(), two_files()
    await place.run(files, described=Described("book", ("Nature",), ("Ann",)))
    source = (await place.library.known([BEES]))[BEES].source
    assert (source.type, source.topics, source.authors) == ("book", ("nature", "shelf"), ("Ann",))
    report = await place.run(files, described=Described("paper", ("nature",), ("Ann",)))
    assert report.outcomes == {IngestOutcome.UPDATED: 2}
    assert (await place.library.known([BEES]))[BEES].source.type == "paper"


async def test_an_unreadable_file_is_skipped_with_the_reason_and_keeps_its_chunks() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    before = await place.state()
    files.texts[BEES] = None
    report = await place.run(files)
    assert report.outcomes == {IngestOutcome.SKIPPED: 1, IngestOutcome.UNCHANGED: 1}
    assert [(result.path, result.problem) for result in report.skipped] == [
        (BEES, "it cannot be read: look at it")
    ]
    assert await place.state() == before


async def test_a_file_without_text_is_skipped() -> None:
    place = Place()
    report = await place.run(FilesInMemory({BEES: ""}))
    assert [result.problem for result in report.skipped] == ["there is no text in it"]
    assert (await place.state())["sources"] == {}


async def test_pruning_removes_only_sources_whose_files_are_gone() -> None:
    place, files = Place(text=ScriptedText()), two_files()
    other = "/elsewhere/kept.md"
    files.texts[other] = text_of("Elsewhere", "It lies elsewhere and stays.")
    await place.run(files)
    del files.texts[BEES], files.texts[other]
    assert (await place.run(files, prune=False)).outcomes == {IngestOutcome.UNCHANGED: 1}
    report = await place.run(files)
    assert report.outcomes == {IngestOutcome.UNCHANGED: 1, IngestOutcome.REMOVED: 1}
    assert {source.source.path for source in place.library._sources.values()} == {STEEL, other}
    clean = Place(text=ScriptedText())
    files.texts[other] = text_of("Elsewhere", "It lies elsewhere and stays.")
    await clean.run(files)
    assert await place.state() == await clean.state()


async def test_a_dry_run_reports_the_outcome_of_files_and_changes_nothing() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    before = await place.state()
    files.texts |= {f"{FOLDER}/new.md": text_of("New", "Something."), BEES: text_of("Bees", "Other."), "bad": None}
    del files.texts[STEEL]
    report = await place.run(files, dry=True)
    assert {outcome: report.outcomes[outcome] for outcome in IngestOutcome} == {
        IngestOutcome.ADDED: 1,
        IngestOutcome.UPDATED: 1,
        IngestOutcome.UNCHANGED: 0,
        IngestOutcome.REMOVED: 1,
        IngestOutcome.SKIPPED: 1,
    }
    assert await place.state() == before


class Refusing(CountingEmbedder):
    async def embed_texts(self, texts: list[str]) -> Matrix:  # type: ignore[override]
        if any("sugar" in text for text in texts):
            raise EmbedderRejected("this text is refused")
        return await super().embed_texts(texts)


async def test_a_file_that_an_engine_refuses_is_skipped_and_the_others_are_ingested() -> None:
    place, files = Place(Refusing()), two_files()
    report = await place.run(files)
    assert report.outcomes == {IngestOutcome.ADDED: 1, IngestOutcome.SKIPPED: 1}
    assert report.skipped[0].problem == "this text is refused"
    assert (await place.state())["claims"] == {}


async def test_an_engine_that_is_down_ends_the_run_with_a_hint_to_resume() -> None:
    place, files = Place(), two_files()

    class Away(CountingEmbedder):
        async def embed_texts(self, texts: list[str]) -> Matrix:  # type: ignore[override]
            raise IndexUnavailable("it is away", hint="start it")

    here, place.embedder = place.embedder, Away()
    with pytest.raises(IndexUnavailable) as away:
        await place.run(files)
    assert away.value.hint == "start it; then run the same command again: it resumes where it stopped"
    place.embedder = here
    assert (await place.run(files)).outcomes == {IngestOutcome.ADDED: 2}


async def test_so_many_refused_files_in_a_row_are_not_the_fault_of_the_files() -> None:
    files = FilesInMemory({f"{FOLDER}/{n:02}.md": text_of("Sugar", f"sugar {n}") for n in range(12)})
    with pytest.raises(EmbedderRejected):
        await Place(Refusing()).run(files)


@pytest.mark.requirement("KN-005")
async def test_two_runs_over_one_folder_at_once_do_everything_once() -> None:
    place = Place(text=ScriptedText())
    texts: dict[str, str | None] = {
        f"{FOLDER}/{n:02}.md": text_of(f"File {n}", f"It says {n}.", f"And {n} again.") for n in range(20)
    }
    first, second = await asyncio.gather(
        place.run(FilesInMemory(dict(texts)), lease=2.0), place.run(FilesInMemory(dict(texts)), lease=2.0)
    )
    total = first.outcomes + second.outcomes
    assert total == {IngestOutcome.ADDED: 20, IngestOutcome.UNCHANGED: 20}
    assert max(place.embedder.texts.values()) == 1
    assert place.text is not None
    assert max(place.text.asked.values()) == 1
    clean = Place(text=ScriptedText())
    await clean.run(FilesInMemory(texts))
    assert await place.state() == await clean.state()


async def test_a_source_claimed_by_another_run_is_skipped_and_reported() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    source = (await place.library.known([BEES]))[BEES].source
    assert await place.library.claim(source, "another", 60)
    files.texts[BEES] = text_of("Bees", "Other.")
    report = await place.run(files, lease=0.02)
    assert [(result.path, result.problem) for result in report.skipped] == [(BEES, "another run is at work on it")]
    place.later()
    assert (await place.run(files)).outcomes[IngestOutcome.UPDATED] == 1


class Deaf(MemoryLibrary):
    """A driver that swallows a cancellation: a call that has begun continues."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        real = getattr(self, method)

        async def deaf(*arguments: object) -> object:
            self.asked.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return await real(*arguments)

        setattr(self, method, deaf)


@pytest.mark.parametrize("method", ["known", "claim", "put_chunks", "finish", "known_under"])
async def test_a_cancelled_run_ends_although_a_driver_swallows_the_cancellation(method: str) -> None:
    place = Place()
    place.library = library = Deaf(method)
    running = asyncio.create_task(place.run(two_files(), at_once=1))
    await asyncio.wait_for(library.asked.wait(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    assert library._claims == {}


async def test_one_file_named_twice_is_written_once() -> None:
    place, files = Place(), two_files()
    report = await place.run(files, only=[BEES, BEES, BEES], lease=0.5)
    assert report.outcomes == {IngestOutcome.ADDED: 1, IngestOutcome.UNCHANGED: 2}
    assert max(place.embedder.texts.values()) == 1


async def test_a_library_made_with_another_model_is_refused_with_the_command_that_helps() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    place.embedder = CountingEmbedder("another")
    with pytest.raises(ModelMismatch) as refused:
        await place.run(files)
    assert "toolscript ingest --reindex" in refused.value.hint


async def test_a_library_whose_index_is_gone_is_not_filled_around_the_hole() -> None:
    place, files = Place(), two_files()
    await place.run(files)
    await place.indexes.drop(place.card.fingerprint)
    with pytest.raises(SetupError, match="index is gone"):
        await place.run(files)
