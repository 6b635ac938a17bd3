"""Fusion of the chunks of both retrievers into one ranking of documents."""

import random

import pytest

from toolscript.core.retrieval.fusion import FUSION_DEPTH, RRF_K, by_document, ranked
from toolscript.core.retrieval.query import Fusion
from toolscript.core.retrieval.results import ChunkId, Exactness, FoundChunk, FoundChunks, Total

FUSIONS = list(Fusion)


def chunks(*scored: tuple[str, int, float]) -> list[FoundChunk]:
    return [FoundChunk(ChunkId(key, number), score) for key, number, score in scored]


def test_a_document_is_ranked_by_its_best_chunk() -> None:
    ranked_lists = by_document(FoundChunks(dense=chunks(("a", 3, 0.9), ("b", 0, 0.8), ("a", 1, 0.7))), 100)
    assert [(document.key, document.passage) for document in ranked(ranked_lists, Fusion.BEST, 1.0)] == [
        ("a", 3),
        ("b", 0),
    ]


def test_sparse_retrieval_chooses_the_chunk_of_a_document_that_both_retrievers_found() -> None:
    candidates = FoundChunks(dense=chunks(("a", 3, 0.9)), words=chunks(("a", 7, 2.0)))
    (only,) = ranked(by_document(candidates, 100), Fusion.RRF, 5.0)
    assert only.passage == 7


def test_rrf_adds_the_reciprocal_ranks() -> None:
    candidates = FoundChunks(
        dense=chunks(("a", 0, 0.9), ("b", 0, 0.5)), words=chunks(("b", 0, 3.0), ("c", 0, 1.0))
    )
    order = ranked(by_document(candidates, 100), Fusion.RRF, 5.0)
    assert [document.key for document in order] == ["b", "a", "c"]
    expected = (1 / (RRF_K + 2) + 1 / (RRF_K + 1)) * (RRF_K + 1) / 2
    assert order[0].score == pytest.approx(expected)


def test_rrf_scores_one_for_the_document_that_both_retrievers_rank_first() -> None:
    candidates = FoundChunks(dense=chunks(("a", 0, 0.9)), words=chunks(("a", 0, 3.0)))
    assert ranked(by_document(candidates, 100), Fusion.RRF, 5.0)[0].score == pytest.approx(1.0)


def test_zscore_considers_score_distances_and_rrf_does_not() -> None:
    dense = chunks(("far", 0, 0.95), ("near", 0, 0.30), ("last", 0, 0.29))
    words = chunks(("near", 0, 5.1), ("far", 0, 5.0), ("last", 0, 1.0))
    ranked_lists = by_document(FoundChunks(dense, words), 100)
    assert ranked(ranked_lists, Fusion.ZSCORE, 5.0)[0].key == "far"
    by_rank = {document.key: document.score for document in ranked(ranked_lists, Fusion.RRF, 5.0)}
    assert by_rank["far"] == by_rank["near"]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_ties_are_ordered_by_key(fusion: Fusion) -> None:
    same = chunks(("b", 0, 0.5), ("a", 0, 0.5))
    assert [document.key for document in ranked(by_document(FoundChunks(same), 100), fusion, 1.0)] == ["a", "b"]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_scores_are_zero_to_one_and_never_rise(fusion: Fusion) -> None:
    ranked_lists = by_document(_random_lists(400, seed=1), 400)
    scores = [document.score for document in ranked(ranked_lists, fusion, 50.0)]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_requesting_more_does_not_change_the_first_page(fusion: Fusion) -> None:
    for seed in range(20):
        deep = _random_lists(1_000, seed=seed)
        shallow = FoundChunks((deep.dense or [])[:FUSION_DEPTH], (deep.words or [])[:FUSION_DEPTH])
        few = ranked(by_document(shallow, FUSION_DEPTH), fusion, 50.0)
        many = ranked(by_document(deep, 1_000), fusion, 50.0)
        assert [document.key for document in few[:20]] == [document.key for document in many[:20]]


def test_an_empty_retriever_leaves_the_order_to_the_other() -> None:
    dense = chunks(("b", 0, 0.9), ("a", 0, 0.1))
    for fusion in FUSIONS:
        order = ranked(by_document(FoundChunks(dense, []), 100), fusion, 1.0)
        assert [document.key for document in order] == ["b", "a"]


def test_sparse_scores_alone_are_scaled_by_their_maximum() -> None:
    ranked_lists = by_document(FoundChunks(words=chunks(("a", 0, 3.0), ("b", 0, 1.5))), 100)
    assert [document.score for document in ranked(ranked_lists, Fusion.BEST, 6.0)] == [0.5, 0.25]


def test_dense_retrieval_matches_everything_and_sparse_only_shared_terms() -> None:
    three = chunks(("a", 0, 0.9), ("a", 1, 0.8), ("b", 0, 0.1))
    assert by_document(FoundChunks(dense=three), 100).total == Total(2)
    assert by_document(FoundChunks(dense=three), 3).total is None
    assert by_document(FoundChunks(words=three), 100).total == Total(2)
    assert by_document(FoundChunks(words=three), 3).total == Total(2, Exactness.AT_LEAST)


def _random_lists(count: int, seed: int) -> FoundChunks:
    draw = random.Random(seed)
    ranked_lists = []
    for _ in range(2):
        keys = draw.sample(range(3_000), count)
        scores = sorted((draw.random() for _ in keys), reverse=True)
        listed = zip(keys, scores, strict=True)
        ranked_lists.append(chunks(*((f"{key:024x}", 0, score) for key, score in listed)))
    return FoundChunks(*ranked_lists)
