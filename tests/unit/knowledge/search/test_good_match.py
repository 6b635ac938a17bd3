"""Whether anything in a library fits a query, with the built-in model: among many chunks, alone, and filtered."""

import pytest

from tests.support.hive_notes import ANSWERED, ESPRESSO, UNANSWERED, hive_notes
from tests.unit.knowledge.search.builders import Shelf
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.query import SearchType
from toolscript.testing import MemoryIndexes

pytestmark = pytest.mark.requirement("VE-001", "KN-001")

COFFEE = ("The kitchen", ["To reset the espresso machine, hold both buttons until the lamp goes out."])
BEES = ("Keeping bees", [f"{title}. {text}" for title, text in hive_notes()])


async def shelf_of(*sources: tuple[str, list[str]]) -> Shelf:
    embedder = StaticEmbedder()
    shelf = Shelf(
        await _index(embedder), await _index(embedder), embedder=embedder, scale=await measure_scale(embedder)
    )
    for title, texts in sources:
        await shelf.add(title, texts, topics=(title.casefold(),))
    return shelf


async def _index(embedder: StaticEmbedder) -> Index:
    card, indexes = IndexCard(embedder.model), MemoryIndexes(engine_idf=False)
    await indexes.create(card)
    return await indexes.open(card)


@pytest.fixture(scope="module")
async def bees() -> Shelf:
    return await shelf_of(BEES)


@pytest.mark.parametrize("text", UNANSWERED)
async def test_what_the_library_is_not_about_is_no_good_match(bees: Shelf, text: str) -> None:
    answer = await bees.ask(text)
    assert (len(answer.hits), answer.good_match) == (10, False)


@pytest.mark.parametrize("text", ANSWERED)
async def test_what_the_library_is_about_is_a_good_match(bees: Shelf, text: str) -> None:
    assert (await bees.ask(text)).good_match is True


async def test_one_chunk_alone_fits_its_own_subject_and_no_other() -> None:
    kitchen = await shelf_of(COFFEE)
    assert (await kitchen.ask(ESPRESSO)).good_match is True
    assert [(await kitchen.ask(text)).good_match for text in ANSWERED] == [False] * len(ANSWERED)


async def test_an_extraction_fits_like_a_chunk() -> None:
    shelf = await shelf_of()
    (chunk,) = await shelf.add("Orders", ["Item 4711, two pieces, see the sheet."])
    assert (await shelf.ask(ESPRESSO)).good_match is False
    await shelf.extract(chunk, "method", "Reset of the espresso machine", "Hold both buttons")
    assert (await shelf.ask(ESPRESSO)).good_match is True


async def test_the_verdict_is_about_what_passes_the_filters() -> None:
    shelf = await shelf_of(BEES, COFFEE)
    assert (await shelf.ask(ESPRESSO)).good_match is True
    assert (await shelf.ask(ESPRESSO, topics=("keeping bees",))).good_match is False
    assert (await shelf.ask(ESPRESSO, topics=("the kitchen",))).good_match is True
    assert (await shelf.ask(ANSWERED[0], topics=("keeping bees",))).good_match is True
    assert (await shelf.ask(ANSWERED[0], topics=("the kitchen",))).good_match is False


async def test_there_is_no_verdict_by_a_single_retriever(bees: Shelf) -> None:
    for search_type in (SearchType.SEMANTIC, SearchType.KEYWORD):
        assert (await bees.ask(ANSWERED[0], search_type=search_type)).good_match is None


async def test_there_is_no_verdict_without_embeddings_or_the_scale_of_the_model() -> None:
    shelf = await shelf_of(COFFEE)
    unscaled = Shelf(shelf.chunks, shelf.extractions, shelf.library, shelf.embedder)
    assert (await unscaled.ask(ESPRESSO)).good_match is None
    shelf.breaks("embedder", "embed_query", EmbedderUnavailable("down"))
    answer = await shelf.ask(ESPRESSO)
    assert (len(answer.hits), answer.degraded, answer.good_match) == (1, ("embedding",), None)


async def test_an_empty_library_is_never_a_good_match() -> None:
    empty = await shelf_of()
    assert (await empty.ask(ESPRESSO)).good_match is False
