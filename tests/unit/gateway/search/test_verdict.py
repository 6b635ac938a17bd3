"""What nothing fits is no good match, with the built-in model and by words alone."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import ITEMS, LOG, SUMMARY, index_of, item
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.items import Item
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.spelling import corrections
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch

pytestmark = pytest.mark.requirement("VE-001")

THINKING = item("thinking", "sequentialthinking", "A detailed tool for dynamic and reflective problem-solving")
LIGHT = item("browser", "emulate_media", "Emulates the colour scheme of a page: light or dark")
TOOLS = tuple(tool for tool in ITEMS if tool not in (SUMMARY, LOG))


async def answer_of(text: str, *items: Item, threshold: float = 0.0) -> LocalAnswer:
    embedder, search = StaticEmbedder(), LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.embedder, search.scale = embedder, await measure_scale(embedder)
    search.index = index_of(items, await embed_items(embedder, items))
    return await search.search(LocalQuery(text, threshold=threshold))


@pytest.mark.parametrize("text", ["asdf qwer", "order pizza", "delete the production database"])
async def test_one_tool_alone_does_not_fit_everything(text: str) -> None:
    answer = await answer_of(text, THINKING)
    assert not answer.good_match
    assert answer.hits[0].confidence < 0.6


@pytest.mark.parametrize("text", ["book a flight to Paris", "order pizza", "water the plants", "asdf qwer"])
async def test_what_no_tool_does_is_no_good_match(text: str) -> None:
    assert not (await answer_of(text, *TOOLS, LIGHT)).good_match


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("read a file", "read_file"),
        ("what will the weather be in Rome", "get_forecast"),
        ("put an appointment into my calendar", "create_event"),
    ],
)
async def test_what_a_tool_does_is_a_good_match(text: str, name: str) -> None:
    answer = await answer_of(text, *TOOLS, LIGHT)
    assert (answer.hits[0].item.name, answer.good_match) == (name, True)


BY_WORDS = pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.KEYWORD])


async def by_words(text: str, search_type: SearchType, threshold: float = 0.0) -> LocalAnswer:
    """Search without a model."""
    search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.index = index_of((*TOOLS, LIGHT))
    return await search.search(LocalQuery(text, threshold=threshold, search_type=search_type))


@BY_WORDS
@pytest.mark.parametrize(
    "text",
    ["book a flight to Paris", "order pizza", "water the plants", "file my tax return", "open the garage door"],
)
async def test_by_words_alone_what_no_tool_does_is_no_good_match(text: str, search_type: SearchType) -> None:
    answer = await by_words(text, search_type)
    assert not answer.good_match


@BY_WORDS
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("read a file", "read_file"),
        ("what is the forecast of the weather", "get_forecast"),
        ("create an event in my calendar", "create_event"),
        ("read_file", "read_file"),
    ],
)
async def test_by_words_alone_what_a_tool_says_is_a_good_match(
    text: str, name: str, search_type: SearchType
) -> None:
    answer = await by_words(text, search_type)
    assert (answer.hits[0].item.name, answer.good_match, answer.semantic) == (name, True, False)


@BY_WORDS
async def test_a_lower_threshold_is_suggested_only_where_words_fit(search_type: SearchType) -> None:
    assert "a lower threshold" in (await by_words("create an event in my shiny calendar", search_type, 1.0)).hint
    assert "a lower threshold" not in (await by_words("file my tax return", search_type, 1.0)).hint


async def test_a_model_that_cannot_be_trusted_leaves_the_verdict_to_the_words() -> None:
    embedder, search = StaticEmbedder(), LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.embedder, search.scale = embedder, replace(await measure_scale(embedder), is_trusted=False)
    search.index = index_of(TOOLS, await embed_items(embedder, TOOLS))
    answer = await search.search(LocalQuery("order pizza", threshold=0.0))
    assert (answer.semantic, answer.good_match) == (True, False)
    assert answer.fit is not None
    assert (await search.search(LocalQuery("read a file", threshold=0.0))).good_match


async def test_nothing_is_a_good_match_without_a_result() -> None:
    answer = await answer_of("what will the weather be in Rome", *TOOLS, threshold=1.0)
    assert (answer.hits, answer.good_match) == ((), False)


def test_a_word_that_is_right_is_not_corrected() -> None:
    index = index_of((*TOOLS, LIGHT))
    assert corrections("book a flight", index.vocabulary) == {}
    assert corrections("emualte the page", index.vocabulary) == {"emualte": "emulate"}
