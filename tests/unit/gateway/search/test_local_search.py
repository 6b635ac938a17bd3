"""LocalSearch as a whole: what is returned, what is nearly returned, and what is said about it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.gateway.search.builders import (
    ITEMS,
    READ_FILE,
    SEND_MAIL,
    found,
    index_of,
    item,
    names,
    search_over,
)
from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.model import Vector
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.search import NEAR_MISSES
from toolscript.testing import HashEmbedder

TRY_OTHERS = "try other words, or a lower threshold"
NOBODY = (
    "no server offers anything yet: `toolscript list-servers` shows how they are doing, "
    "`toolscript config import` takes over those of your other clients"
)
SENTENCE = "read the contents of a file"


class FailingEmbedder(HashEmbedder):
    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self.failure: Exception | None = failure

    async def embed_query(self, text: str) -> Vector:
        if self.failure is not None:
            raise self.failure
        return await super().embed_query(text)


@pytest.mark.requirement("TS-003")
async def test_hits_are_best_first_and_at_most_the_limit_while_total_counts_all() -> None:
    every = await found("file")
    assert every.total == len(every.hits) > 3
    confidences = [hit.confidence for hit in every.hits]
    assert confidences == sorted(confidences, reverse=True)
    two = await search_over().search(LocalQuery("file", limit=2, threshold=0.0, kind=None))
    assert two.hits == every.hits[:2]
    assert two.total == every.total


@pytest.mark.requirement("TS-002", "TS-003")
async def test_the_threshold_is_the_least_confidence_that_is_returned() -> None:
    every = await found("read a file")
    between = every.hits[1].confidence
    answer = await found("read a file", threshold=between)
    assert answer.hits == tuple(hit for hit in every.hits if hit.confidence >= between)
    assert answer.total == len(answer.hits) < every.total
    assert answer.threshold == between


@pytest.mark.requirement("TS-002")
async def test_when_nothing_is_found_the_nearest_are_told_and_what_to_change() -> None:
    answer = await found("a file in the calendar", threshold=1.0)
    assert (answer.hits, answer.total) == ((), 0)
    assert 0 < len(answer.near_misses) <= NEAR_MISSES
    assert all(0 < miss.confidence < 1 for miss in answer.near_misses)
    assert answer.hint == TRY_OTHERS


async def test_what_is_found_needs_no_near_misses_and_no_hint() -> None:
    answer = await found(SENTENCE, threshold=0.35)
    assert (answer.near_misses, answer.hint) == ((), "")


async def test_by_words_alone_what_has_no_word_in_common_is_no_near_miss() -> None:
    answer = await found("qqqqqq", model=False, threshold=0.35)
    assert (answer.hits, answer.near_misses) == ((), ())


async def test_with_nothing_to_search_the_hint_is_to_look_at_the_servers() -> None:
    empty = await found("read", items=(), model=False)
    assert (empty.hits, empty.total) == ((), 0)
    assert empty.hint == f"{NOBODY}; words alone: the embedding model is still loading"
    no_prompts = await search_over((READ_FILE,)).search(LocalQuery("read", kind=ItemKind.PROMPT))
    assert no_prompts.hint.startswith(NOBODY)


async def test_only_the_kind_that_was_asked_for_is_found() -> None:
    for kind in ItemKind:
        answer = await search_over().search(LocalQuery("file", limit=100, threshold=0.0, kind=kind))
        assert sorted(names(answer)) == sorted(one.name for one in ITEMS if one.kind is kind)
    tools = await search_over().search(LocalQuery("summarise_file", threshold=0.0))
    assert all(hit.item.kind is ItemKind.TOOL for hit in tools.hits)


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("model", [True, False], ids=["meaning", "words"])
@pytest.mark.parametrize(("text", "minimum"), [("read_file", 0.99), ("READ_FILE", 0.98), ("read_fil", 0.6)])
async def test_an_exact_or_near_exact_name_is_found_first(text: str, minimum: float, model: bool) -> None:
    answer = await found(text, model=model, threshold=0.35)
    assert names(answer)[0] == "read_file"
    assert minimum <= answer.hits[0].confidence <= 1.0


@pytest.mark.requirement("TS-003")
async def test_a_hit_carries_the_parts_of_its_score() -> None:
    hit = (await found(SENTENCE)).hits[0]
    assert hit.item is READ_FILE
    assert hit.parts.semantic is not None
    assert 0.3 < hit.parts.semantic <= 1.0
    assert hit.parts.words == 1.0
    assert (hit.parts.fuzzy, hit.parts.boost) == (0.0, 0.0)
    assert [(match.word, match.field) for match in hit.parts.matched] == [
        ("read", "name"),
        ("contents", "description"),
        ("file", "name"),
    ]


async def test_the_same_question_has_the_same_answer_however_the_tools_are_ordered() -> None:
    twins = tuple(item(f"server{number}", "twin", "Does the very same thing") for number in range(6))
    for model in (True, False):
        forward = await found("does the same thing", twins, model=model)
        backward = await found("does the same thing", twins[::-1], model=model)
        assert len(forward.hits) == 6
        assert forward == backward
        assert forward == await found("does the same thing", twins, model=model)
    assert [hit.item.server for hit in forward.hits] == [f"server{number}" for number in range(6)]


@pytest.mark.requirement("TS-006")
async def test_without_a_model_words_answer_and_say_so() -> None:
    answer = await found(SENTENCE, model=False, threshold=0.35)
    assert names(answer)[0] == "read_file"
    assert not answer.semantic
    assert answer.hint == "words alone: the embedding model is still loading"
    assert all(hit.parts.semantic is None for hit in answer.hits)


@pytest.mark.requirement("TS-006")
@pytest.mark.parametrize("failure", [EmbedderUnavailable("too much to do"), EmbedderRejected("out of memory")])
async def test_an_embedder_that_fails_leaves_the_answer_to_words(failure: EmbedderUnavailable) -> None:
    search = search_over()
    embedder = FailingEmbedder(failure)
    search.embedder = embedder
    failed = await search.search(LocalQuery(SENTENCE))
    assert names(failed)[0] == "read_file"
    assert (failed.semantic, failed.hint) == (False, f"words alone: {failure.message}")
    embedder.failure = None
    again = await search.search(LocalQuery(SENTENCE))
    assert (again.semantic, again.hint) == (True, "")
    assert search.why_words_alone == ""


@pytest.mark.requirement("TS-006")
async def test_before_anything_is_embedded_no_query_is_embedded_either() -> None:
    search = search_over()
    embedder = HashEmbedder()
    search.index, search.embedder = index_of(), embedder
    assert not (await search.search(LocalQuery(SENTENCE))).semantic
    assert embedder.queries_embedded == 0


async def test_an_item_that_is_not_embedded_yet_is_found_by_its_words() -> None:
    search = search_over()
    vectors = np.stack([await HashEmbedder().embed_query("all the same to the model")] * len(ITEMS))
    vectors[ITEMS.index(SEND_MAIL)] = 0
    search.index = index_of(ITEMS, vectors)
    answer = await search.search(LocalQuery("electronic letter to somebody", threshold=0.0))
    assert answer.semantic
    assert names(answer)[0] == "send_mail"
    assert answer.hits[0].parts.semantic is None


@pytest.mark.parametrize(
    ("text", "texts"),
    [("read a file", 1), ('read the file in "garden"', 1), ("read the old file and send an electronic letter", 3)],
)
async def test_each_text_of_a_request_is_embedded_exactly_once(text: str, texts: int) -> None:
    """The whole, and each of several wishes."""
    search = search_over()
    embedder = HashEmbedder()
    search.embedder = embedder
    await search.search(LocalQuery(text))
    assert embedder.queries_embedded == texts


async def test_both_wishes_of_a_request_are_found() -> None:
    answer = await found("read the contents of the file and send an electronic letter to somebody")
    assert set(names(answer)[:2]) == {"read_file", "send_mail"}


async def test_an_answer_tells_how_long_its_stages_took() -> None:
    spent = (await found(SENTENCE)).milliseconds
    assert set(spent) == {"ranking", "embedding", "engine", "total"}
    assert min(spent.values()) > 0
    assert sum(spent.values()) - spent["total"] <= spent["total"]


async def test_a_search_uses_the_index_that_was_there_when_it_began() -> None:
    search = search_over()

    class Replacing(HashEmbedder):
        async def embed_query(self, text: str) -> Vector:
            search.index = index_of((replace(SEND_MAIL, name="other"),))
            return await super().embed_query(text)

    search.embedder = Replacing()
    answer = await search.search(LocalQuery(SENTENCE))
    assert names(answer)[0] == "read_file"
