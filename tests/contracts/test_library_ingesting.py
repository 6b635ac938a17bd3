"""Contract of libraries for ingest runs, also for concurrent and killed ones."""

import asyncio
from dataclasses import replace

import pytest

from tests.contracts.library_builders import MINUTE, OTHER_RUN, RUN, Shelf, a_chunk, a_source, an_extraction
from toolscript.core.errors import InvalidRequest
from toolscript.knowledge.model.ingest import ChunkMark, KnownSource
from toolscript.knowledge.model.library import MAX_EXTRACTIONS, Chunk, SourceStatus

pytestmark = pytest.mark.requirement("KN-005")


async def known(shelf: Shelf) -> KnownSource:
    path = a_source().path
    return (await shelf.writer.known([path]))[path]


async def test_a_source_that_is_claimed_is_there_but_not_ready(shelf: Shelf) -> None:
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    ingesting = replace(a_source(), status=SourceStatus.INGESTING)
    assert await known(shelf) == KnownSource(ingesting)
    assert await shelf.reader.sources([ingesting.id]) == {ingesting.id: ingesting}
    assert await shelf.reader.source_page("", 10) == [ingesting]
    assert await shelf.writer.finish(a_source(), RUN, "hash", "recipe")
    assert await known(shelf) == KnownSource(a_source(), "hash", "recipe")


async def test_claiming_what_is_known_changes_nothing_but_its_status(shelf: Shelf) -> None:
    await shelf.holds(a_source())
    changed = replace(a_source(), title="Not yet", topics=("wine",), metadata={"a": 1}, chunk_count=5)
    assert await shelf.writer.claim(changed, RUN, MINUTE)
    assert await known(shelf) == KnownSource(replace(a_source(), status=SourceStatus.INGESTING), "hash", "recipe")


async def test_of_two_runs_one_has_a_source(shelf: Shelf) -> None:
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    assert not await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)
    assert await shelf.writer.claim(a_source("/another"), OTHER_RUN, MINUTE)
    assert not await shelf.writer.finish(a_source(), OTHER_RUN, "other hash", "recipe")
    await shelf.writer.release(a_source().id, OTHER_RUN)
    assert not await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)
    assert await shelf.writer.finish(a_source(), RUN, "hash", "recipe")
    assert await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)
    assert (await known(shelf)).content_hash == "hash"


async def test_of_many_runs_at_once_one_gets_a_source(shelf: Shelf) -> None:
    claims = [shelf.writer.claim(a_source(), f"run {number}", MINUTE) for number in range(8)]
    assert sorted(await asyncio.gather(*claims)) == [False] * 7 + [True]


async def test_a_claim_that_is_renewed_in_time_is_kept(shelf: Shelf) -> None:
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    for _ in range(3):
        await shelf.let_pass(MINUTE - 15)
        assert await shelf.writer.claim(a_source(), RUN, MINUTE)
        assert not await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)


async def test_a_run_that_was_silent_for_too_long_loses_its_source_to_the_next(shelf: Shelf) -> None:
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    await shelf.let_pass(MINUTE + 1)
    assert await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)
    before = await known(shelf)
    assert not await shelf.writer.claim(a_source(), RUN, MINUTE)
    assert not await shelf.writer.finish(replace(a_source(), title="Too late"), RUN, "late", "recipe")
    assert await known(shelf) == before
    await shelf.writer.release(a_source().id, RUN)
    assert not await shelf.writer.claim(a_source(), RUN, MINUTE)
    assert await shelf.writer.finish(a_source(), OTHER_RUN, "hash", "recipe")


async def test_a_run_that_was_silent_for_too_long_continues_if_no_other_claimed(shelf: Shelf) -> None:
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    await shelf.let_pass(MINUTE * 10)
    assert await shelf.writer.finish(a_source(), RUN, "hash", "recipe")
    assert (await known(shelf)).content_hash == "hash"


async def test_an_unclaimed_source_cannot_be_finished(shelf: Shelf) -> None:
    assert not await shelf.writer.finish(a_source(), RUN, "hash", "recipe")
    assert await shelf.reader.sources([a_source().id]) == {}
    await shelf.holds(a_source())
    assert not await shelf.writer.finish(a_source(), RUN, "again", "recipe")
    assert (await known(shelf)).content_hash == "hash"


async def test_a_source_that_is_given_back_is_free_and_not_ready(shelf: Shelf) -> None:
    await shelf.holds(a_source())
    assert await shelf.writer.claim(a_source(), RUN, MINUTE)
    await shelf.writer.release(a_source().id, RUN)
    assert (await known(shelf)).source.status is SourceStatus.INGESTING
    assert not await shelf.writer.finish(a_source(), RUN, "late", "recipe")
    assert await shelf.writer.claim(a_source(), OTHER_RUN, MINUTE)


@pytest.mark.parametrize("run", ["$where", "$claim.run", "", "run\0", "茶"])
async def test_the_name_of_a_run_is_only_a_name(shelf: Shelf, run: str) -> None:
    assert await shelf.writer.claim(a_source(), run, MINUTE)
    assert not await shelf.writer.claim(a_source(), RUN, MINUTE)
    assert await shelf.writer.claim(a_source(), run, MINUTE)
    assert await shelf.writer.finish(a_source(), run, "$hash", "$recipe")
    assert ((await known(shelf)).content_hash, (await known(shelf)).recipe) == ("$hash", "$recipe")


async def test_marks_stay_when_a_chunk_is_stored_again(shelf: Shelf) -> None:
    first, second = a_chunk(0), a_chunk(1)
    await shelf.writer.put_chunks([first, second])
    assert await shelf.writer.marks(first.source_id) == {first.id: ChunkMark(), second.id: ChunkMark()}
    await shelf.writer.mark_indexed({first.id: "point"})
    await shelf.writer.put_extractions("recipe", {first.id: [], second.id: []})
    moved = replace(first, number=7, topics=("wine",))
    await shelf.writer.put_chunks([moved, a_chunk(2)])
    assert await shelf.reader.chunks([first.id]) == {first.id: moved}
    assert await shelf.writer.marks(first.source_id) == {
        first.id: ChunkMark("point", "recipe"),
        second.id: ChunkMark("", "recipe"),
        a_chunk(2).id: ChunkMark(),
    }


async def test_marks_are_those_of_one_source_and_go_with_their_chunk(shelf: Shelf) -> None:
    mine, other = a_chunk(0), a_chunk(0, a_source("/other"))
    await shelf.writer.put_chunks([mine, other])
    await shelf.writer.mark_indexed({mine.id: "point", other.id: "other point", a_chunk(9).id: "nobody's"})
    assert await shelf.writer.marks(mine.source_id) == {mine.id: ChunkMark("point")}
    await shelf.writer.remove_chunks([mine.id])
    assert await shelf.writer.marks(mine.source_id) == {}
    await shelf.writer.put_chunks([mine])
    assert await shelf.writer.marks(mine.source_id) == {mine.id: ChunkMark()}
    assert await shelf.writer.marks(other.source_id) == {other.id: ChunkMark("other point")}


async def test_what_is_extracted_takes_the_place_of_what_was(shelf: Shelf) -> None:
    first, second = a_chunk(0), a_chunk(1)
    await shelf.writer.put_chunks([first, second])
    before = {chunk.id: [an_extraction(chunk, number) for number in range(3)] for chunk in (first, second)}
    await shelf.writer.put_extractions("old", before)
    better = an_extraction(first, 0, type_="decision")
    await shelf.writer.put_extractions("new", {first.id: [better]})
    assert await shelf.writer.extractions_of([first.id]) == [better]
    assert await shelf.writer.extractions_of([second.id, first.id]) == sorted(
        [better, *before[second.id]], key=lambda item: item.id
    )
    marks = await shelf.writer.marks(first.source_id)
    assert (marks[first.id].extracted, marks[second.id].extracted) == ("new", "old")
    await shelf.writer.put_extractions("newer", {first.id: []})
    assert await shelf.writer.extractions_of([first.id]) == []


async def test_a_chunk_can_have_as_many_extractions_as_there_are_ids_for(shelf: Shelf) -> None:
    chunk = a_chunk(0)
    maximum = [an_extraction(chunk, number) for number in range(MAX_EXTRACTIONS)]
    await shelf.writer.put_extractions("recipe", {chunk.id: maximum})
    assert await shelf.writer.extractions_of([chunk.id]) == maximum


async def test_chunks_go_with_their_extractions_and_others_stay(shelf: Shelf) -> None:
    gone, stays = a_chunk(0), a_chunk(1)
    await shelf.writer.put_chunks([gone, stays])
    await shelf.writer.put_extractions("recipe", {item.id: [an_extraction(item)] for item in (gone, stays)})
    for _ in range(2):
        await shelf.writer.remove_chunks([gone.id, a_chunk(9).id])
    assert await shelf.reader.chunks([gone.id, stays.id]) == {stays.id: stays}
    assert await shelf.writer.extractions_of([gone.id, stays.id]) == [an_extraction(stays)]


async def test_all_that_is_written_can_be_written_again(shelf: Shelf) -> None:
    chunk = a_chunk(0)
    for _ in range(2):
        assert await shelf.writer.claim(a_source(), RUN, MINUTE)
        await shelf.writer.put_chunks([chunk])
        await shelf.writer.mark_indexed({chunk.id: "point"})
        await shelf.writer.put_extractions("recipe", {chunk.id: [an_extraction(chunk)]})
    assert await shelf.reader.passage(chunk.source_id, 0, 10) == [chunk]
    assert await shelf.writer.extractions_of([chunk.id]) == [an_extraction(chunk)]
    assert await shelf.writer.marks(chunk.source_id) == {chunk.id: ChunkMark("point", "recipe")}


async def test_what_has_no_id_is_not_stored(shelf: Shelf) -> None:
    nameless = Chunk("no id", a_source().id, 0, "text")
    with pytest.raises(InvalidRequest, match="24 hex digits"):
        await shelf.writer.put_chunks([nameless])
    with pytest.raises(InvalidRequest, match="24 hex digits"):
        await shelf.writer.claim(replace(a_source(), id="{}"), RUN, MINUTE)
    assert await shelf.reader.passage(nameless.source_id, 0, 10) == []
