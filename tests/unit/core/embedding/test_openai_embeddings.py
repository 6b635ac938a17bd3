"""An embeddings endpoint, with all the ways in which it can fail or send nonsense."""

from collections.abc import AsyncIterator, Iterator

import openai
import pytest

from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from toolscript.core.embedding.openai import OpenAIEmbedder, translated
from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable, SetupError, ToolscriptError
from toolscript.core.retrieval.model import ModelCard

pytestmark = pytest.mark.slow

DIMENSIONS = 4
CARD = ModelCard("remote", "1", DIMENSIONS, query_prefix="query: ", passage_prefix="passage: ")
ROW = [0.5] * DIMENSIONS


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(DIMENSIONS) as started:
        yield started


@pytest.fixture
async def embedder(endpoint: EmbeddingEndpoint) -> AsyncIterator[OpenAIEmbedder]:
    opened = OpenAIEmbedder(endpoint.url, CARD, api_key="secret", retries=0)
    yield opened
    await opened.close()


async def test_prefixes_and_the_key_are_sent(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    await embedder.embed_query("read")
    await embedder.embed_texts(["a", "b"])
    assert endpoint.asked == [["query: read"], ["passage: a", "passage: b"]]
    assert set(endpoint.keys) == {"Bearer secret"}


async def test_many_passages_go_in_batches(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    await embedder.embed_texts([str(number) for number in range(300)])
    assert [len(batch) for batch in endpoint.asked] == [128, 128, 44]


async def test_without_passages_no_request_is_sent(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    await embedder.embed_texts([])
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (400, EmbedderRejected),
        (401, SetupError),
        (403, SetupError),
        (404, SetupError),
        (409, EmbedderRejected),
        (413, EmbedderRejected),
        (422, EmbedderRejected),
        (429, EmbedderUnavailable),
        (500, EmbedderUnavailable),
        (503, EmbedderUnavailable),
    ],
)
async def test_every_status_has_an_error_class(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, status: int, error_class: type[ToolscriptError]
) -> None:
    endpoint.answer_once({"error": {"message": "no"}}, status)
    with pytest.raises(ToolscriptError) as raised:
        await embedder.embed_query("read")
    assert type(raised.value) is error_class
    assert raised.value.hint or error_class is EmbedderRejected


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "text",
        {"data": None},
        {"data": []},
        {"data": "text"},
        {"data": [1]},
        {"data": [{}]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": ROW[:-1]}]},
        {"data": [{"index": 0, "embedding": [0.0] * DIMENSIONS}]},
        {"data": [{"index": 0, "embedding": [None, *ROW[1:]]}]},
        {"data": [{"index": 0, "embedding": [float("nan"), *ROW[1:]]}]},
        {"data": [{"index": 0, "embedding": ROW}, {"index": 1, "embedding": ROW}]},
        b"not json",
        b"",
    ],
    ids=str,
)
async def test_an_invalid_response_is_refused(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, body: object
) -> None:
    endpoint.answer_once(body)
    with pytest.raises(EmbedderRejected):
        await embedder.embed_query("read")


async def test_after_a_failure_the_next_query_is_answered(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder
) -> None:
    endpoint.answer_once({}, 500)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_query("read")
    assert (await embedder.embed_query("read")).shape == (DIMENSIONS,)


async def test_a_transient_failure_is_retried_when_allowed(endpoint: EmbeddingEndpoint) -> None:
    patient = OpenAIEmbedder(endpoint.url, CARD, retries=1)
    endpoint.answer_once({}, 500)
    assert (await patient.embed_query("read")).shape == (DIMENSIONS,)
    assert len(endpoint.asked) == 2
    await patient.close()


async def test_an_unreachable_endpoint_is_unavailable() -> None:
    nowhere = OpenAIEmbedder("http://127.0.0.1:1/v1", CARD, retries=0)
    with pytest.raises(EmbedderUnavailable) as raised:
        await nowhere.embed_query("read")
    assert "TOOLSCRIPT_EMBEDDING_URL" in raised.value.hint
    await nowhere.close()


def subclasses(base: type[openai.OpenAIError]) -> set[type[openai.OpenAIError]]:
    return {base}.union(*(subclasses(subclass) for subclass in base.__subclasses__()))


def test_every_error_of_the_client_is_translated(subtests: pytest.Subtests) -> None:
    for kind in sorted(subclasses(openai.OpenAIError), key=str):
        with subtests.test(kind=kind):
            ours = (EmbedderUnavailable, EmbedderRejected, SetupError)
            with pytest.raises(ours, match="embedding endpoint"), translated():
                raise kind.__new__(kind)
