"""LocalSearch as a whole: hits, near misses and hints."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.gateway.search.builders import (
    ITEMS,
    READ_FILE,
    SEND_MAIL,
    index_of,
    item,
    names,
    search_all,
    search_over,
)
from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.model import Vector
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.search import NEAR_MISSES
from toolscript.testing import HashEmbedder

TRY_OTHERS = "try other words, or a lower threshold"
NO_ITEMS = (
    "no server offers anything yet: `toolscript list-servers` shows how they are doing, "
    "`toolscript config import` imports those of your other clients, or shows how to write ~/.toolscript.json"
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
    every = await search_all("file")
    assert every.total == len(every.hits) > 3
    confidences = [hit.confidence for hit in every.hits]
    assert confidences == sorted(confidences, reverse=True)
    two = await search_over().search(LocalQuery("file", limit=2, threshold=0.0, kind=None))
    assert two.hits == every.hits[:2]
    assert two.total == every.total


@pytest.mark.requirement("TS-002", "TS-003")
async def test_the_threshold_is_the_minimum_confidence_of_hits() -> None:
    every = await search_all("read a file")
    between = every.hits[1].confidence
    answer = await search_all("read a file", threshold=between)
    assert answer.hits == tuple(hit for hit in every.hits if hit.confidence >= between)
    assert answer.total == len(answer.hits) < every.total
    assert answer.threshold == between


@pytest.mark.requirement("TS-002")
async def test_an_empty_answer_has_near_misses_and_a_hint() -> None:
    answer = await search_all("a file in the calendar", threshold=1.0)
    assert (answer.hits, answer.total) == ((), 0)
    assert 0 < len(answer.near_misses) <= NEAR_MISSES
    assert all(0 < miss.confidence < 1 for miss in answer.near_misses)
    assert answer.hint in (TRY_OTHERS, "try other words")


async def test_an_answer_with_hits_has_no_near_misses_and_no_hint() -> None:
    answer = await search_all(SENTENCE, threshold=0.35)
    assert (answer.near_misses, answer.hint) == ((), "")


async def test_in_keyword_search_an_item_without_a_common_word_is_no_near_miss() -> None:
    answer = await search_all("qqqqqq", model=False, threshold=0.35)
    assert (answer.hits, answer.near_misses) == ((), ())


async def test_with_nothing_to_search_the_hint_names_the_server_commands() -> None:
    empty = await search_all("read", items=(), model=False)
    assert (empty.hits, empty.total) == ((), 0)
    assert empty.hint == f"{NO_ITEMS}; keyword search only: the embedding model is still loading"
    no_prompts = await search_over((READ_FILE,)).search(LocalQuery("read", kind=ItemKind.PROMPT))
    assert no_prompts.hint.startswith(NO_ITEMS)


async def test_only_items_of_the_requested_kind_are_found() -> None:
    for kind in ItemKind:
        answer = await search_over().search(LocalQuery("file", limit=100, threshold=0.0, kind=kind))
        assert sorted(names(answer)) == sorted(item_.name for item_ in ITEMS if item_.kind is kind)
    tools = await search_over().search(LocalQuery("summarise_file", threshold=0.0))
    assert all(hit.item.kind is ItemKind.TOOL for hit in tools.hits)


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("model", [True, False], ids=["meaning", "words"])
@pytest.mark.parametrize(("text", "minimum"), [("read_file", 0.99), ("READ_FILE", 0.98), ("read_fil", 0.6)])
async def test_an_exact_or_near_exact_name_is_found_first(text: str, minimum: float, model: bool) -> None:
    answer = await search_all(text, model=model, threshold=0.35)
    assert names(answer)[0] == "read_file"
    assert minimum <= answer.hits[0].confidence <= 1.0


@pytest.mark.requirement("TS-003")
async def test_a_hit_carries_the_parts_of_its_score() -> None:
    hit = (await search_all(SENTENCE)).hits[0]
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


async def test_the_order_of_the_tools_does_not_change_the_answer() -> None:
    twins = tuple(
        item(f"server{number}", "twin", "Does the very same thing", **{f"argument{number}": ""})  # type: ignore[arg-type]
        for number in range(6)
    )
    for model in (True, False):
        forward = await search_all("does the same thing", twins, model=model)
        backward = await search_all("does the same thing", twins[::-1], model=model)
        assert len(forward.hits) == 6
        assert forward == backward
        assert forward == await search_all("does the same thing", twins, model=model)
    assert [hit.item.server for hit in forward.hits] == [f"server{number}" for number in range(6)]


@pytest.mark.requirement("TS-006")
async def test_without_a_model_keyword_search_answers_and_says_so() -> None:
    answer = await search_all(SENTENCE, model=False, threshold=0.35)
    assert names(answer)[0] == "read_file"
    assert not answer.semantic
    assert answer.hint == "keyword search only: the embedding model is still loading"
    assert all(hit.parts.semantic is None for hit in answer.hits)


@pytest.mark.requirement("TS-006")
@pytest.mark.parametrize("failure", [EmbedderUnavailable("too much to do"), EmbedderRejected("out of memory")])
async def test_keyword_search_answers_when_the_embedder_fails(failure: EmbedderUnavailable) -> None:
    search = search_over()
    embedder = FailingEmbedder(failure)
    search.embedder = embedder
    failed = await search.search(LocalQuery(SENTENCE))
    assert names(failed)[0] == "read_file"
    assert (failed.semantic, failed.hint) == (False, f"keyword search only: {failure.message}")
    embedder.failure = None
    again = await search.search(LocalQuery(SENTENCE))
    assert (again.semantic, again.hint) == (True, "")
    assert search.model_note == ""


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
    """The whole query and each sub-query."""
    search = search_over()
    embedder = HashEmbedder()
    search.embedder = embedder
    await search.search(LocalQuery(text))
    assert embedder.queries_embedded == texts


async def test_both_sub_queries_of_a_request_are_found() -> None:
    answer = await search_all("read the contents of the file and send an electronic letter to somebody")
    assert set(names(answer)[:2]) == {"read_file", "send_mail"}


async def test_an_answer_has_the_times_of_its_stages() -> None:
    spent = (await search_all(SENTENCE)).milliseconds
    assert set(spent) == {"ranking", "embedding", "engine", "total"}
    assert min(spent.values()) > 0
    assert sum(spent.values()) - spent["total"] <= spent["total"]


async def test_a_search_uses_the_index_it_started_with() -> None:
    search = search_over()

    class Replacing(HashEmbedder):
        async def embed_query(self, text: str) -> Vector:
            search.index = index_of((replace(SEND_MAIL, name="other"),))
            return await super().embed_query(text)

    search.embedder = Replacing()
    answer = await search.search(LocalQuery(SENTENCE))
    assert names(answer)[0] == "read_file"


async def test_a_lower_threshold_is_suggested_only_for_a_good_match() -> None:
    good = await search_all(SENTENCE, threshold=1.0)
    assert (good.good_match, good.hint) == (False, TRY_OTHERS)
    bad = await search_all("qqqqqq", model=False, threshold=0.35)
    assert (bad.good_match, bad.hint.split(";")[0]) == (False, "try other words")
