"""Misspelt words of a request are read as words of the catalog, in the service as in the gateway."""

import pytest

from tests.unit.tools.search.builders import Scene, WatchedIndex
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.curation import Rule, RuleKind
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.spelling import Vocabulary
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.testing import HashEmbedder, MemoryCurationRules, MemoryTaxonomy
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import ToolSearch


class SampledIndex(MemoryIndex):
    """Its vocabulary is that of a sample which has none of the words of `letter`."""

    def __init__(self) -> None:
        super().__init__(IndexCard(HashEmbedder().model))

    async def vocabulary(self) -> Vocabulary:
        words = {"setter", "send"}
        return Vocabulary(words, {term for word in words for term in terms_of_word(word)})


class SilentIndex(MemoryIndex):
    def __init__(self) -> None:
        super().__init__(IndexCard(HashEmbedder().model))

    async def vocabulary(self) -> Vocabulary:
        raise IndexUnavailable("down")


def query(text: str, search_type: SearchType = SearchType.KEYWORD) -> ToolQuery:
    return ToolQuery(text, threshold=0.0, strategy=Strategy.DIRECT, search_type=search_type)


@pytest.mark.parametrize("search_type", [SearchType.KEYWORD, SearchType.HYBRID])
async def test_a_misspelt_word_finds_what_the_right_one_does(search_type: SearchType) -> None:
    answer = await Scene().search(query("electornic", search_type))
    assert answer.hits[0].name == "send_mail"
    assert (answer.unmatched, answer.corrected) == ((), {"electornic": "electronic"})


async def test_literal_mode_corrects_nothing() -> None:
    index = WatchedIndex()
    await Scene(index=index).search(query("electornic", SearchType.SEMANTIC))
    assert [ask.terms for ask in index.asks] == [None]


async def test_a_word_that_only_the_sample_lacks_is_not_misspelt() -> None:
    assert (await Scene(index=SampledIndex()).search(query("letter"))).hits[0].name == "send_mail"
    assert (await Scene(index=SampledIndex()).search(query("sedn"))).hits[0].name == "send_mail"


async def test_a_word_of_a_rule_is_not_misspelt() -> None:
    scene = Scene()
    await scene.fill()
    rules = MemoryCurationRules(scene.catalog, MemoryTaxonomy(scene.catalog))
    await rules.add(Rule(RuleKind.SYNONYM, "electornic", means="write"), "ann")
    tools = ToolSearch(
        scene.embedder,
        DefaultNamespace(scene.index),
        DefaultNamespace(scene.skills),
        scene.catalog,
        curation=rules,
    )
    assert (await tools.search(query("electornic"))).hits[0].name == "write_file"


async def test_an_index_without_a_vocabulary_searches_for_the_words_as_they_are() -> None:
    answer = await Scene(index=SilentIndex()).search(query("electronic"))
    assert answer.hits[0].name == "send_mail"
    assert answer.degraded == ("spelling",)


class CountedIndex(MemoryIndex):
    """Counts how often its vocabulary is read."""

    def __init__(self) -> None:
        super().__init__(IndexCard(HashEmbedder().model))
        self.read = 0

    async def vocabulary(self) -> Vocabulary:
        self.read += 1
        return await super().vocabulary()


async def test_a_request_of_known_words_does_not_ask_for_the_vocabulary_again() -> None:
    index = CountedIndex()
    scene = Scene(index=index)
    await scene.fill()
    tools = scene.tools
    for _ in range(3):
        assert (await tools.search(query("send a letter"))).corrected == {}
    assert index.read == 1
    for count in (2, 3):
        assert (await tools.search(query("electornic"))).corrected == {"electornic": "electronic"}
        assert index.read == count
