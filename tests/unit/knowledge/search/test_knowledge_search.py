"""search_knowledge: both collections, dense and sparse, one ranking."""

import pytest

from tests.unit.knowledge.search.builders import Shelf
from toolscript.core.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidRequest,
    LibraryUnavailable,
    NotFound,
)
from toolscript.core.retrieval.query import SearchType
from toolscript.knowledge.model.library import source_id
from toolscript.knowledge.model.query import PassageQuery, SourcesQuery

pytestmark = pytest.mark.requirement("KN-001")
BEES, STEEL = source_id("Keeping bees"), source_id("On steel bridges")


async def test_chunks_and_extractions_are_found_at_once_best_first(shelf: Shelf) -> None:
    answer = await shelf.ask("sugar for the bees")
    assert [hit.kind for hit in answer.hits[:1]] == ["extraction"]
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert {hit.kind for hit in answer.hits} == {"chunk", "extraction"}


async def test_a_hit_has_its_source_and_position(shelf: Shelf) -> None:
    (hit,) = (await shelf.ask("eggs of the queen", limit=1)).hits
    assert hit.content == "A queen lays eggs in spring"
    assert (hit.source.id, hit.source.title, hit.source.authors) == (BEES, "Keeping bees", ("Ann",))
    assert (hit.position.chapter, hit.position.section, hit.position.page) == ("One", "Part 2", 3)
    assert hit.chunk_id == hit.id
    (extracted,) = (await shelf.ask("damp hives", limit=1)).hits
    assert extracted.kind == "extraction"
    assert (extracted.type, extracted.position.section) == ("warning", "Part 0")


async def test_a_chunk_and_its_own_extraction_are_not_shown_twice_unless_asked(shelf: Shelf) -> None:
    once = await shelf.found("feed sugar in autumn")
    assert "Feed sugar in autumn" in once
    assert "Feeding bees\nGive them sugar before winter" not in once
    both = await shelf.found("feed sugar in autumn", both=True)
    assert {"Feed sugar in autumn", "Feeding bees\nGive them sugar before winter"} <= {*both}


async def test_two_extractions_of_one_chunk_are_both_shown(shelf: Shelf) -> None:
    (paint,) = (await shelf.ask("paint", types=("chunk",), limit=1)).hits
    chunk = (await shelf.library.chunks([paint.id]))[paint.id]
    await shelf.extract(chunk, "checklist", "Paint brushes", "wide and narrow")
    await shelf.extract(chunk, "decision", "Paint colour", "green")
    assert {hit.type for hit in (await shelf.ask("paint brushes colour")).hits[:2]} == {"checklist", "decision"}


@pytest.mark.requirement("KN-006")
@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"types": ("chunk",)}, {("chunk", "")}),
        ({"types": ("extraction",)}, {("extraction", "method"), ("extraction", "warning")}),
        ({"types": ("method",)}, {("extraction", "method")}),
        ({"types": ("chunk", "warning")}, {("chunk", ""), ("extraction", "warning")}),
        ({"types": ("unheard",)}, set()),
        ({"topics": ("food",)}, {("extraction", "method")}),
        ({"topics": ("steel", "nothing")}, {("chunk", "")}),
        ({"source_ids": (STEEL,)}, {("chunk", "")}),
        ({"source_ids": (BEES,), "types": ("warning",), "topics": ("bees",)}, {("extraction", "warning")}),
    ],
)
async def test_filters_choose_what_is_searched(
    shelf: Shelf, options: dict[str, tuple[str, ...]], kinds: set[tuple[str, str]]
) -> None:
    hits = (await shelf.ask("spring sugar hive water", both=True, **options)).hits
    assert {(hit.kind, hit.type) for hit in hits} == kinds
    if "source_ids" in options:
        assert {hit.source.id for hit in hits} == {*options["source_ids"]}


@pytest.mark.parametrize("search_type", list(SearchType))
async def test_every_retriever_works_alone(shelf: Shelf, search_type: SearchType) -> None:
    answer = await shelf.ask("rust on bridges", search_type=search_type)
    assert answer.hits[0].content == "Bridges rust where water stands"
    assert answer.search_type is search_type


async def test_sparse_scores_are_equal_in_both_collections(shelf: Shelf) -> None:
    """`hive` is in one of five chunks and in one of two extractions; the same text scores the same in both."""
    (warning,) = (await shelf.ask("damp", types=("warning",))).hits
    await shelf.add("Copy", [warning.content])
    answer = await shelf.ask("damp wet hive", search_type=SearchType.KEYWORD, both=True)
    same = [hit.score for hit in answer.hits if hit.content == warning.content]
    assert same[0] == pytest.approx(same[1])
    assert len(same) == 2


async def test_removed_chunks_are_not_returned_and_later_candidates_replace_them(shelf: Shelf) -> None:
    first = (await shelf.ask("spring", limit=1)).hits[0]
    await shelf.library.remove_chunks([first.chunk_id])
    now = await shelf.ask("spring", limit=1)
    assert [hit.id == first.id for hit in now.hits] == [False]


@pytest.mark.parametrize("nonsense", ["zzyzx qwertz", "!!!", "好"])
async def test_an_unanswerable_query_gets_low_scores(shelf: Shelf, nonsense: str) -> None:
    assert all(hit.score < 0.5 for hit in (await shelf.ask(nonsense)).hits)


async def test_an_empty_library_answers_with_nothing(shelf: Shelf) -> None:
    assert (await shelf.ask("spring", source_ids=("0" * 24,))).hits == []


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": 101},
        {"types": ("x",) * 33},
        {"topics": ("",)},
        {"source_ids": ("../etc",)},
        {"text": "x" * 1_001},
        {"text": "  "},
    ],
)
async def test_an_invalid_query_is_refused(shelf: Shelf, options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        await shelf.ask(**{"text": "spring", **options})  # type: ignore[arg-type]


async def test_without_the_model_sparse_retrieval_answers_and_the_answer_is_degraded(shelf: Shelf) -> None:
    shelf.breaks("embedder", "embed_query", EmbedderUnavailable("down"))
    answer = await shelf.ask("rust on bridges")
    assert answer.hits[0].content == "Bridges rust where water stands"
    assert (answer.search_type, answer.degraded) == (SearchType.KEYWORD, ("embedding",))


async def test_if_one_collection_fails_the_other_answers(shelf: Shelf) -> None:
    shelf.breaks("extractions", "search", IndexUnavailable("down"))
    answer = await shelf.ask("sugar for the bees")
    assert {hit.kind for hit in answer.hits} == {"chunk"}
    assert answer.degraded == ("index",)


async def test_the_search_fails_if_both_collections_or_the_library_fail(shelf: Shelf) -> None:
    shelf.breaks("library", "chunks", LibraryUnavailable("gone"))
    with pytest.raises(LibraryUnavailable):
        await shelf.ask("spring")
    shelf.breaks("chunks", "search", IndexUnavailable("down"))
    with pytest.raises(IndexUnavailable):
        await shelf.ask("spring", types=("chunk",))


async def test_a_passage_is_a_chunk_with_its_neighbours(shelf: Shelf) -> None:
    hit = (await shelf.ask("feed sugar", types=("chunk",), limit=1)).hits[0]
    around = await shelf.search.passage(PassageQuery(hit.chunk_id))
    assert [chunk.number for chunk in around.chunks] == [0, 1, 2]
    assert around.source.id == BEES
    alone = await shelf.search.passage(PassageQuery(hit.chunk_id, 0, 0))
    assert [chunk.id for chunk in alone.chunks] == [hit.chunk_id]
    with pytest.raises(NotFound):
        await shelf.search.passage(PassageQuery("0" * 24))


async def test_sources_are_listed_page_by_page(shelf: Shelf) -> None:
    first = await shelf.search.sources(SourcesQuery(limit=1))
    second = await shelf.search.sources(SourcesQuery(limit=1, after=first.next_after))
    assert sorted([first.sources[0].id, second.sources[0].id]) == sorted([BEES, STEEL])
    rest = await shelf.search.sources(SourcesQuery(limit=1, after=second.next_after))
    assert (rest.sources, rest.next_after) == ([], "")
    assert (await shelf.search.source(BEES)).title == "Keeping bees"
    with pytest.raises(NotFound):
        await shelf.search.source("0" * 24)
