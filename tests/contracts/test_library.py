"""Contract of libraries for readers, and of stored values for writers."""

from dataclasses import replace

import pytest

from tests.contracts.library_builders import MINUTE, RUN, Shelf, a_chunk, a_source, an_extraction
from tests.contracts.paging import stays_whole
from toolscript.core.errors import InvalidRequest
from toolscript.knowledge.model.ingest import ChunkMark
from toolscript.knowledge.model.library import Chunk, Position, Source, SourceStatus, source_id

pytestmark = [pytest.mark.requirement("KN-001"), pytest.mark.requirement("KN-005")]

NO_IDS = ["", "tea", "f" * 23, "F" * 24, "f" * 25, "$where", "{}", "é" * 24, "0" * 23 + "\n"]


async def test_an_empty_library_is_ready_and_has_nothing(shelf: Shelf) -> None:
    await shelf.reader.ready()
    assert await shelf.reader.sources([a_source().id]) == {}
    assert await shelf.reader.chunks([a_chunk(0).id]) == {}
    assert await shelf.reader.extractions([an_extraction(a_chunk(0)).id]) == {}
    assert await shelf.reader.source_page("", 10) == []
    assert await shelf.reader.passage(a_source().id, 0, 10) == []
    assert await shelf.writer.known([a_source().path]) == {}
    assert await shelf.writer.known_under("/", "", 10) == []
    assert await shelf.writer.marks(a_source().id) == {}
    assert await shelf.writer.extractions_of([a_chunk(0).id]) == []


async def test_preparing_twice_does_no_harm(shelf: Shelf) -> None:
    source = await shelf.holds(a_source())
    await shelf.writer.prepare()
    assert await shelf.reader.sources([source.id]) == {source.id: source}


async def test_what_is_stored_is_read_again_to_the_last_field(shelf: Shelf) -> None:
    source = replace(
        a_source("/books/ü %41 $.md"),
        authors=("Ada", "李"),
        metadata={"pages": 12, "ratio": 0.5, "draft": False, "isbn": None, "tags": ["a", {"b": [1]}]},
        chunk_count=2,
    )
    chunk = replace(a_chunk(0, source), content="Line\n\twith \0, 茶 and \U0001f375", token_count=1 << 40)
    bare = Chunk("63686e6b" + "0" * 16, source.id, 1, "bare", Position())
    extraction = an_extraction(chunk)
    assert await shelf.holds(source) == source
    await shelf.writer.put_chunks([chunk, bare])
    await shelf.writer.put_extractions("recipe", {chunk.id: [extraction]})
    assert await shelf.reader.chunks([chunk.id, bare.id]) == {chunk.id: chunk, bare.id: bare}
    assert await shelf.reader.extractions([extraction.id]) == {extraction.id: extraction}


async def test_names_of_fields_can_be_anything(shelf: Shelf) -> None:
    names = {"a.b": 1, "$set": {"$where": "1"}, "%2E": 2, "%": 3, "with\0zero": 4, "é": 5, "": 6, "_id": 7}
    odd = replace(a_source(), metadata=names)
    extraction = replace(an_extraction(a_chunk(0)), content={"$inc": "x", "a.b": "y", "title": "$title"})
    assert (await shelf.holds(odd)).metadata == names
    await shelf.writer.put_extractions("recipe", {a_chunk(0).id: [extraction]})
    assert await shelf.reader.extractions([extraction.id]) == {extraction.id: extraction}


async def test_existing_ids_are_found_and_invalid_ones_are_ignored(shelf: Shelf) -> None:
    source = await shelf.holds(a_source())
    chunks = [a_chunk(number) for number in range(3)]
    await shelf.writer.put_chunks(chunks)
    absent = [a_chunk(number, text=f"never stored {number}").id for number in range(1200)]
    requests = [*NO_IDS, *absent, *(chunk.id for chunk in chunks), chunks[0].id]
    assert await shelf.reader.chunks(requests) == {chunk.id: chunk for chunk in chunks}
    assert await shelf.reader.sources([*NO_IDS, source.id]) == {source.id: source}
    assert await shelf.reader.extractions(NO_IDS) == {}
    assert await shelf.reader.passage("$ne", 0, 9) == []
    assert await shelf.writer.marks("") == {}


async def test_batches_of_any_size_are_stored_read_and_removed(shelf: Shelf) -> None:
    many = {chunk.id: chunk for chunk in (a_chunk(number) for number in range(600))}
    await shelf.writer.put_chunks(list(many.values()))
    await shelf.writer.mark_indexed(dict.fromkeys(many, "point"))
    assert await shelf.reader.chunks(list(many)) == many
    assert await shelf.writer.marks(a_source().id) == dict.fromkeys(many, ChunkMark("point"))
    await shelf.writer.remove_chunks(list(many))
    assert await shelf.reader.chunks(list(many)) == {}
    for nothing in (shelf.writer.put_chunks([]), shelf.writer.mark_indexed({}), shelf.writer.remove_chunks([])):
        await nothing
    assert await shelf.writer.known([]) == {}
    assert await shelf.writer.extractions_of([]) == []
    await shelf.writer.put_extractions("recipe", {})


async def test_sources_come_in_order_of_id_page_by_page(shelf: Shelf) -> None:
    ids = sorted([(await shelf.holds(a_source(f"/books/{number}.md"))).id for number in range(7)])
    seen: list[str] = []
    while page := await shelf.reader.source_page(seen[-1] if seen else "", 3):
        assert len(page) == min(3, len(ids) - len(seen))
        seen += [source.id for source in page]
    assert seen == ids
    assert await shelf.reader.source_page("", 0) == []


async def test_a_page_of_sources_holds_those_of_one_type_and_with_one_topic(shelf: Shelf) -> None:
    expected = {
        "book of tea": a_source("/1", type_="book", topics=("tea", "water")),
        "paper of tea": a_source("/2", type_="paper", topics=("tea",)),
        "book of wine": a_source("/3", type_="book", topics=("wine",)),
        "note": a_source("/4", type_="note", topics=()),
    }
    for source in expected.values():
        await shelf.holds(source)
    names = {source.id: name for name, source in expected.items()}

    async def found(types: list[str], topics: list[str]) -> set[str]:
        return {names[source.id] for source in await shelf.reader.source_page("", 10, types, topics)}

    assert await found([], []) == {*expected}
    assert await found(["book"], []) == {"book of tea", "book of wine"}
    assert await found(["book", "paper"], ["tea", "water"]) == {"book of tea", "paper of tea"}
    assert await found([], ["wine"]) == {"book of wine"}
    assert await found(["note"], ["tea"]) == await found(["$exists"], []) == set()


async def test_a_page_after_something_that_is_no_id_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidRequest, match="after"):
        await shelf.reader.source_page("no id", 10)


async def test_a_range_of_chunks_comes_in_reading_order(shelf: Shelf) -> None:
    chunks = [a_chunk(number) for number in range(12)]
    await shelf.writer.put_chunks([*reversed(chunks), a_chunk(3, a_source("/other"))])
    assert await shelf.reader.passage(a_source().id, 2, 4) == chunks[2:5]
    assert await shelf.reader.passage(a_source().id, 10, 99) == chunks[10:]
    assert await shelf.reader.passage(a_source().id, -5, 0) == chunks[:1]
    assert await shelf.reader.passage(a_source().id, 4, 2) == []


async def test_a_source_that_is_finished_again_is_what_it_is_now(shelf: Shelf) -> None:
    first = await shelf.holds(replace(a_source(), metadata={"pages": 3, "draft": True}))
    again = Source(first.id, "paper", "Another title", first.path, metadata={"pages": 4}, chunk_count=9)
    assert await shelf.holds(again) == again
    existing = (await shelf.writer.known([first.path]))[first.path]
    assert (existing.source, existing.content_hash, existing.recipe) == (again, "hash", "recipe")


async def test_a_source_that_was_removed_is_new_the_next_time(shelf: Shelf) -> None:
    source = await shelf.holds(a_source())
    await shelf.writer.remove_source(source.id)
    await shelf.writer.remove_source(source.id)
    assert await shelf.reader.sources([source.id]) == {}
    assert await shelf.writer.known([source.path]) == {}
    renamed = replace(source, title="Another title")
    assert await shelf.writer.claim(renamed, RUN, MINUTE)
    existing = (await shelf.writer.known([source.path]))[source.path]
    assert (existing.source, existing.content_hash) == (replace(renamed, status=SourceStatus.INGESTING), "")


async def test_a_path_names_one_source(shelf: Shelf) -> None:
    stored = [await shelf.holds(a_source(path)) for path in ("/a", "/a/", "/A", "/a/b", "/á", "/a\u0301")]
    result = await shelf.writer.known([source.path for source in stored] + ["/b", "$ne"])
    assert {path: existing.source for path, existing in result.items()} == {
        source.path: source for source in stored
    }
    assert len({source_id(source.path) for source in stored}) == len(stored)


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize(("types", "topics"), [((), ()), (("book",), ("tea",))])
async def test_sources_that_vanish_and_appear_between_pages_hide_no_other(
    shelf: Shelf, types: tuple[str, ...], topics: tuple[str, ...]
) -> None:
    for number in range(9):
        await shelf.holds(a_source(f"/books/{number}.md"))

    async def ids(after: str, limit: int) -> list[str]:
        return [source.id for source in await shelf.reader.source_page(after, limit, types, topics)]

    async def appear() -> None:
        for number in range(6):
            await shelf.holds(a_source(f"/later/{number}.md"))

    await stays_whole(ids, "", vanish=shelf.writer.remove_source, appear=appear)
