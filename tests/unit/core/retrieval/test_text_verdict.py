"""Whether any text fits: what raises and what lowers it, and where it cannot be told."""

from dataclasses import replace

import pytest

from toolscript.core.embedding.scale import ModelScales
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.retrieval.fusion import RankedList, RankedLists
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.text_verdict import any_text_fits, text_fit
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("VE-001")

SCALE = CosineScale(0.1, 0.1)
MAX_SPARSE = 10.0
COSINES = {"near": 0.5, "far": 0.1}
WORDS = {"near": 4.0}


def listed(scores: dict[str, float]) -> RankedList:
    return RankedList.without_chunks(scores, 100)


BOTH = RankedLists(listed(COSINES), listed(WORDS))


def test_what_raises_and_what_lowers_the_fit() -> None:
    near = text_fit(COSINES, WORDS, MAX_SPARSE, 100, SCALE)
    assert near > 0
    assert text_fit({"near": 0.3, "far": 0.1}, WORDS, MAX_SPARSE, 100, SCALE) < near
    assert text_fit(COSINES, {}, MAX_SPARSE, 100, SCALE) < near
    assert text_fit(COSINES, WORDS, 2 * MAX_SPARSE, 100, SCALE) < near
    assert text_fit(COSINES, WORDS, MAX_SPARSE, 1000, SCALE) < near
    assert text_fit(COSINES, WORDS, MAX_SPARSE, 100, replace(SCALE, offset=-0.6)) < near


def test_cosine_and_words_of_different_texts_do_not_add_up() -> None:
    together = text_fit(COSINES, {"near": 4.0}, MAX_SPARSE, 100, SCALE)
    assert text_fit(COSINES, {"far": 4.0}, MAX_SPARSE, 100, SCALE) < together


def test_a_text_that_only_words_find_counts_as_the_farthest_of_the_dense_list() -> None:
    assert text_fit(COSINES, {"other": 8.0}, MAX_SPARSE, 100, SCALE) == pytest.approx(
        text_fit(COSINES, {"far": 8.0}, MAX_SPARSE, 100, SCALE)
    )


def test_equal_distances_mean_the_same_with_every_model() -> None:
    moved = {key: 0.75 + (cosine - 0.1) * 0.3 for key, cosine in COSINES.items()}
    other = text_fit(moved, WORDS, MAX_SPARSE, 100, CosineScale(0.75, 0.03))
    assert other == pytest.approx(text_fit(COSINES, WORDS, MAX_SPARSE, 100, SCALE))


def test_no_more_chunks_than_were_measured_are_held_against_a_text() -> None:
    assert text_fit(COSINES, WORDS, MAX_SPARSE, 10**9, SCALE) == text_fit(COSINES, WORDS, MAX_SPARSE, 10**5, SCALE)


def test_the_verdict_needs_both_retrievers_and_a_trusted_scale() -> None:
    assert any_text_fits(BOTH, MAX_SPARSE, 100, SCALE) is True
    assert any_text_fits(RankedLists(BOTH.dense, None), MAX_SPARSE, 100, SCALE) is None
    assert any_text_fits(RankedLists(None, BOTH.words), MAX_SPARSE, 100, SCALE) is None
    assert any_text_fits(BOTH, MAX_SPARSE, 100, None) is None
    assert any_text_fits(BOTH, MAX_SPARSE, 100, replace(SCALE, is_trusted=False)) is None


def test_nothing_fits_where_nothing_was_found() -> None:
    assert any_text_fits(RankedLists(listed({}), listed({})), 0.0, 0, SCALE) is False


async def test_the_scale_of_a_model_is_measured_once_and_again_if_that_failed() -> None:
    embedder, scales = Flaky(), ModelScales()
    assert await scales.of(embedder) is None
    embedder.is_down = False
    scale = await scales.of(embedder)
    embedded = embedder.queries_embedded
    assert scale is not None
    assert (await scales.of(embedder), embedder.queries_embedded) == (scale, embedded)


class Flaky(HashEmbedder):
    is_down = True

    async def embed_query(self, text: str) -> Vector:
        if self.is_down:
            raise EmbedderUnavailable("down")
        return await super().embed_query(text)
