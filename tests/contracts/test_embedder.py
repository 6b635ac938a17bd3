"""Contract of Embedder."""

import asyncio

import numpy as np
import pytest

from toolscript.core.retrieval.ports import Embedder

pytestmark = pytest.mark.requirement("DOC-003")

HOSTILE = ["", " ", "\0", "\ud800 lone", "👩‍👩‍👧 emoji", "日本語", "x" * 20_000, "a\r\nb\tc", "﷽" * 50]


@pytest.mark.states("S2-060")
async def test_a_query_is_one_unit_vector_of_the_models_size(embedder: Embedder) -> None:
    vector = await embedder.embed_query("read a file")
    assert vector.shape == (embedder.model.dimensions,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


async def test_passages_are_unit_vectors_one_for_each(embedder: Embedder) -> None:
    vectors = await embedder.embed_texts(["read a file", "send mail", "read a file"])
    assert vectors.shape == (3, embedder.model.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_no_passages_are_no_vectors(embedder: Embedder) -> None:
    assert (await embedder.embed_texts([])).shape == (0, embedder.model.dimensions)


async def test_passages_keep_their_order_over_many_batches_of_any_length(embedder: Embedder) -> None:
    texts = [f"{'word ' * (number % 7)}tool {number}" for number in range(140)]
    vectors = await embedder.embed_texts(texts)
    for index in (0, 1, 77, 128, 139):
        alone = await embedder.embed_texts([texts[index]])
        assert float(vectors[index] @ alone[0]) > 0.98


async def test_the_same_text_gets_the_same_vector(embedder: Embedder) -> None:
    first, second = await embedder.embed_query("list pods"), await embedder.embed_query("list pods")
    np.testing.assert_allclose(first, second, atol=1e-6)


async def test_similar_texts_have_similar_vectors(embedder: Embedder) -> None:
    query = await embedder.embed_query("read file contents")
    vectors = await embedder.embed_texts(["reads the contents of a file", "tomorrow's weather in Oslo"])
    alike, unlike = vectors @ query
    assert alike > unlike + 0.1


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
async def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    vectors = await embedder.embed_texts([text])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(await embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


async def test_concurrent_calls_are_allowed(embedder: Embedder) -> None:
    texts = [f"tool number {number}" for number in range(12)]
    together = await asyncio.gather(*map(embedder.embed_query, texts))
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(vector, await embedder.embed_query(text), atol=1e-5)
