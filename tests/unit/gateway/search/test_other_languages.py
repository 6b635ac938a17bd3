"""Requests in other languages: loan words are found, and what the model does not know is said."""

import pytest

from tests.unit.gateway.search.builders import CALENDAR, GIT_COMMIT, ITEMS, index_of, item
from toolscript.core.embedding.download_failures import MODEL_ALIASES
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.items import Item
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.spelling import loan_words
from toolscript.core.retrieval.verdict import PROBED_LANGUAGES, CosineScale
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.runtime import DEFAULT_MODELS
from toolscript.gateway.search import MULTILINGUAL_SETTING, LocalSearch

TOOLS = (*ITEMS, GIT_COMMIT, item("git", "git_clone", "Clones a repository into a new folder"))
GERMAN = (
    item("dateien", "datei_lesen", "Liest den Inhalt einer Datei und gibt ihn als Text zurück"),
    item("wetter", "vorhersage", "Sagt das Wetter von morgen für eine Stadt voraus"),
)


async def search_of(*items: Item, scale: CosineScale | None = None) -> LocalSearch:
    embedder, search = StaticEmbedder(), LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.embedder, search.scale, search.model_note = embedder, scale or await measure_scale(embedder), ""
    search.index = index_of(items, await embed_items(embedder, items))
    return search


async def answer_of(text: str, *items: Item, scale: CosineScale | None = None) -> LocalAnswer:
    search = await search_of(*items, scale=scale)
    return await search.search(LocalQuery(text, threshold=0.0, kind=None))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie wird das Wetter morgen in der Stadt?", "German"),
        ("Quel temps fera-t-il demain dans la ville ?", "French"),
        ("Прочитай мне содержимое этого файла", "Cyrillic"),
        ("明天天气怎么样", "Chinese"),
    ],
)
async def test_an_unknown_language_is_named_with_what_to_do(text: str, language: str) -> None:
    answer = await answer_of(text, *TOOLS)
    assert language in answer.hint
    assert "builtin knows English only" in answer.hint
    assert "say it in English" in answer.hint
    assert MULTILINGUAL_SETTING in answer.hint
    assert answer.hits, "it is searched all the same"
    assert not answer.good_match


def test_the_setting_of_the_hint_names_a_model() -> None:
    name = MULTILINGUAL_SETTING.removeprefix("TOOLSCRIPT_SEARCH_MODEL=")
    assert "multilingual" in MODEL_ALIASES[name]
    assert name in DEFAULT_MODELS


async def test_english_has_no_such_hint() -> None:
    answer = await answer_of("what will the weather be in Rome", *TOOLS)
    assert (answer.hint, answer.good_match) == ("", True)


async def test_a_model_that_knows_the_language_has_no_such_hint() -> None:
    english = await measure_scale(StaticEmbedder())
    scale = CosineScale(english.unrelated, english.spread, languages=PROBED_LANGUAGES)
    answer = await answer_of("Wie wird das Wetter morgen in der Stadt?", *TOOLS, scale=scale)
    assert answer.hint == ""


async def test_tools_described_in_the_same_language_are_found_by_their_words() -> None:
    answer = await answer_of("den Inhalt einer Datei lesen", *GERMAN)
    assert answer.hits[0].item.name == "datei_lesen"
    assert answer.hint == ""


async def test_a_typed_name_is_a_good_match_in_any_language() -> None:
    answer = await answer_of("führe bitte git_commit mit dieser Nachricht aus", *TOOLS)
    assert (answer.hits[0].item.name, answer.good_match) == ("git_commit", True)
    assert "German" in answer.hint


async def test_a_model_that_only_stands_in_is_not_to_be_replaced() -> None:
    search = await search_of(*TOOLS)
    search.is_fallback, search.model_note = True, "the model is being downloaded"
    hint = (await search.search(LocalQuery("Wie wird das Wetter morgen in der Stadt?", threshold=0.0))).hint
    assert "the built-in model knows English only" in hint
    assert "TOOLSCRIPT_SEARCH_MODEL" not in hint
    assert "being downloaded" in hint


async def test_literal_mode_says_it_too_and_keyword_search_has_no_model_to_speak_of() -> None:
    search, text = await search_of(*TOOLS), "Wie wird das Wetter morgen in der Stadt?"
    semantic = await search.search(LocalQuery(text, threshold=0.0, search_type=SearchType.SEMANTIC))
    keyword = await search.search(LocalQuery(text, threshold=0.0, search_type=SearchType.KEYWORD))
    assert "German" in semantic.hint
    assert "German" not in keyword.hint


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("erstelle einen Eintrag im Kalender", "create_event"),
        ("das Repository bitte klonen", "git_clone"),
        ("añade una cita al calendario", "create_event"),
    ],
)
async def test_a_loan_word_finds_the_tool(text: str, name: str) -> None:
    assert (await answer_of(text, *TOOLS)).hits[0].item.name == name


def test_loan_words_are_those_that_share_most_of_their_letters() -> None:
    index = index_of((CALENDAR, GIT_COMMIT))
    assert loan_words("im Kalender die Repositorien nachsehen", index.vocabulary) == {
        "kalender": "calendar",
        "repositorien": "repository",
    }
    assert loan_words("Kalender", index_of(()).vocabulary) == {}
    assert loan_words("календарь", index.vocabulary) == {}


async def test_words_of_another_language_are_not_corrected_for_a_model_that_knows_it() -> None:
    search = await search_of(*TOOLS, scale=CosineScale(0.1, 0.1, languages=PROBED_LANGUAGES))
    assert search._curated("einen Eintrag im Kalender anlegen", search.index).request.corrections == {}
