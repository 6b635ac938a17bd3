"""Contract of Reranker."""

from collections.abc import AsyncIterator

import pytest

from tests.doubles import WordReranker
from tests.unit.core.embedding.tiny_cross_encoder import write_cross_encoder
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.documents.search.judges import fair
from toolscript.core.embedding.cross_encoder import CrossEncoder
from toolscript.core.llm.openai import OpenAITextModel
from toolscript.core.retrieval.ports import Reranker
from toolscript.documents.rerank import LlmReranker

pytestmark = pytest.mark.requirement("DOC-003", "DOC-007")

QUERY = "red fish in the sea"
PASSAGES = ["The dog sat on the mat.", "A red fish in the blue sea.", "A fish.", "The blue sky."]


@pytest.fixture(params=["words", "cross-encoder", "language model"])
async def reranker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Reranker]:
    if request.param == "words":
        yield WordReranker()
    elif request.param == "cross-encoder":
        encoder = CrossEncoder(str(write_cross_encoder(tmp_path_factory.mktemp("models"))), threads=1)
        yield encoder
        encoder.close()
    else:
        with TextEndpoint(model=fair) as endpoint:
            text = OpenAITextModel(endpoint.url, "m", retries=0)
            yield LlmReranker(text)
            await text.close()


async def test_every_chunk_has_one_score_between_0_and_1(reranker: Reranker) -> None:
    scores = await reranker.scores(QUERY, PASSAGES)
    assert len(scores) == len(PASSAGES)
    assert all(0 <= score <= 1 for score in scores)


async def test_the_best_chunk_has_the_highest_score(reranker: Reranker) -> None:
    scores = await reranker.scores(QUERY, PASSAGES)
    assert max(range(len(PASSAGES)), key=lambda index: scores[index]) == 1


async def test_a_score_does_not_depend_on_the_position_of_its_chunk(reranker: Reranker) -> None:
    scores = await reranker.scores(QUERY, PASSAGES)
    turned = await reranker.scores(QUERY, PASSAGES[::-1])
    assert list(turned) == pytest.approx(list(scores)[::-1])


async def test_the_same_is_scored_the_same_again(reranker: Reranker) -> None:
    assert await reranker.scores(QUERY, PASSAGES) == await reranker.scores(QUERY, PASSAGES)


async def test_more_chunks_than_the_batch_are_all_scored(reranker: Reranker) -> None:
    scores = await reranker.scores(QUERY, PASSAGES * 10)
    assert len(scores) == 40
    assert max(range(40), key=lambda index: scores[index]) == 1


async def test_no_chunks_have_no_scores(reranker: Reranker) -> None:
    assert list(await reranker.scores(QUERY, [])) == []


@pytest.mark.parametrize("text", ["", "\n", "x" * 200_000, "東京", "\ud800", "{}]\"'", "END"])
async def test_any_text_may_be_a_chunk(reranker: Reranker, text: str) -> None:
    scores = await reranker.scores(QUERY, [text, "A red fish in the sea."])
    assert scores[1] > scores[0] >= 0


@pytest.mark.parametrize("query", ["x" * 2_000, "東京", "\ud800x", '"}\nEND'])
async def test_any_text_may_be_a_query(reranker: Reranker, query: str) -> None:
    assert len(await reranker.scores(query, PASSAGES)) == len(PASSAGES)


async def test_a_reranker_has_a_name(reranker: Reranker) -> None:
    assert reranker.name
