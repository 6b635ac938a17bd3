"""Confidence with a real model and in keyword search: nonsense is no match, a plain request is."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import ITEMS, index_of, names, search_all, search_over
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.embedding.items import embed_items
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, Calibration, RankingWeights
from toolscript.gateway.model import DEFAULT_THRESHOLD, LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch

pytestmark = pytest.mark.requirement("TS-003")

NONSENSE = ["qqqq zzzz", "blorp", "xylophone giraffe marmalade", "ждщшгн", "¯\\_(ツ)_/¯", "7777"]
PLAIN = [
    ("read the contents of a file", "read_file"),
    ("send an electronic letter", "send_mail"),
    ("tomorrow's weather", "get_forecast"),
]


@pytest.fixture(scope="module")
async def hybrid(model_folder: str) -> AsyncIterator[LocalSearch]:
    """Uses a real model: a double cannot reproduce its similarities for nonsense."""
    model = LocalEmbedder(model_folder, threads=1)
    search = search_over(model=False)
    search.index, search.embedder = index_of(ITEMS, await embed_items(model, ITEMS)), model
    yield search
    model.close()


async def answers(text: str, hybrid: LocalSearch) -> list[LocalAnswer]:
    query = LocalQuery(text, kind=None)
    return [await search.search(query) for search in (hybrid, search_over(model=False))]


@pytest.mark.parametrize("text", NONSENSE)
async def test_nonsense_stays_under_the_usual_threshold(text: str, hybrid: LocalSearch) -> None:
    for answer in await answers(text, hybrid):
        assert answer.hits == ()
        assert answer.unmatched
    assert not (await search_all(text, model=False)).good_match


@pytest.mark.parametrize(("text", "name"), PLAIN)
async def test_a_plain_request_is_a_good_match(text: str, name: str, hybrid: LocalSearch) -> None:
    for answer in await answers(text, hybrid):
        assert names(answer)[0] == name
        assert answer.hits[0].confidence >= DEFAULT_THRESHOLD
        assert (answer.good_match, answer.unmatched) == (True, ())


def minimum(good_match: float) -> RankingWeights:
    return replace(DEFAULT_WEIGHTS, calibration=Calibration(good_match_threshold=good_match))


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
async def test_the_verdict_is_about_the_best_hit_if_there_is_one(threshold: float) -> None:
    best = (await search_all("read a file")).hits[0].parts.probability
    assert best is not None
    for good_match, expected in ((best - 0.001, True), (best + 0.001, False)):
        answer = await search_all("read a file", threshold=threshold, weights=minimum(good_match))
        assert answer.good_match is (expected and bool(answer.hits))
        assert bool(answer.hits) is (threshold <= (answer.hits or answer.near_misses)[0].confidence)


async def test_an_exact_name_is_a_good_match_at_any_threshold() -> None:
    assert (await search_all("read_file", weights=minimum(0.98))).good_match


@pytest.mark.parametrize("model", [True, False], ids=["meaning", "words"])
async def test_unmatched_words_are_returned_as_typed(model: bool) -> None:
    assert (await search_all("read the giraffe fiel", model=model)).unmatched == ("giraffe",)
    assert (await search_all("read the file", model=model)).unmatched == ()
