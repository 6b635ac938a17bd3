"""Vectors are validated, and the identity of a model is part of the index fingerprint."""

from dataclasses import replace

import numpy as np
import pytest

from toolscript.core.errors import EmbedderRejected
from toolscript.core.retrieval.model import IndexCard, ModelCard, checked_vectors

MODEL = ModelCard("m", "1", 2, "mean", "query: ", "passage: ")
CARD = IndexCard(MODEL)


def test_vectors_are_normalized_to_unit_length_in_single_precision() -> None:
    checked = checked_vectors(np.array([[3.0, 4.0], [0.0, -0.5]]), 2, MODEL)
    np.testing.assert_allclose(checked, [[0.6, 0.8], [0.0, -1.0]], atol=1e-6)
    assert checked.dtype == np.float32


@pytest.mark.parametrize(
    "vectors",
    [
        [[1.0, 0.0]],
        [[1.0, 0.0]] * 3,
        [[1.0], [1.0]],
        [[1.0, 0.0, 0.0]] * 2,
        [],
        [1.0, 0.0],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 0.0], [np.nan, 1.0]],
        [[1.0, 0.0], [np.inf, 1.0]],
    ],
    ids=str,
)
def test_missing_or_invalid_vectors_are_refused(vectors: list[object]) -> None:
    with pytest.raises(EmbedderRejected, match="m gave"):
        checked_vectors(np.array(vectors, dtype=np.float32), 2, MODEL)


@pytest.mark.requirement("SK-003")
@pytest.mark.parametrize(
    "other",
    [
        replace(CARD, model=replace(MODEL, name="n")),
        replace(CARD, model=replace(MODEL, revision="2")),
        replace(CARD, model=replace(MODEL, dimensions=3)),
        replace(CARD, model=replace(MODEL, pooling="cls")),
        replace(CARD, model=replace(MODEL, query_prefix="")),
        replace(CARD, model=replace(MODEL, passage_prefix="")),
        replace(CARD, words_version=CARD.words_version + 1),
        replace(CARD, text_version=CARD.text_version + 1),
    ],
)
def test_everything_that_affects_a_vector_or_a_term_changes_the_fingerprint(other: IndexCard) -> None:
    assert other.fingerprint != CARD.fingerprint


@pytest.mark.requirement("SK-003")
def test_equal_identities_have_the_same_fingerprint_usable_as_a_name() -> None:
    assert IndexCard(replace(MODEL)).fingerprint == CARD.fingerprint
    assert CARD.fingerprint.isalnum()
    assert len(CARD.fingerprint) == 12
