"""The baselines follow their formulas and rank every item."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from toolscript.core.items import Item, ItemKind
from toolscript.testing import HashEmbedder
from toolscript_eval.baselines import (
    Bm25,
    Regex,
    baselines_of,
    best_rows,
    client_text,
    plain_rankers,
    reciprocal_ranks,
    standard_scores,
    stems_of,
)
from toolscript_eval.dataset import Dataset, DatasetQuery

WORDS = ["read", "reads", "reading", "file", "files", "mail", "send", "the", "pod", "x", "cluster", "日本語"]
texts = some.lists(some.sampled_from(WORDS), max_size=8).map(" ".join)


def slow_bm25(corpus: Sequence[str], query: str) -> list[float]:
    """Compute BM25 directly from the formula, word by word."""
    documents = [stems_of(text) for text in corpus]
    default = sum(map(len, documents)) / len(documents) or 1.0
    scores = []
    for document in documents:
        score = 0.0
        for stem in stems_of(query):
            having = sum(stem in other for other in documents)
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            often = document.count(stem)
            score += idf * often / (often + 1.5 * (1 - 0.75 + 0.75 * len(document) / default))
        scores.append(score)
    return scores


@given(some.lists(texts, min_size=1, max_size=8), texts)
def test_bm25_is_the_formula(corpus: list[str], query: str) -> None:
    np.testing.assert_allclose(Bm25(corpus).scores(query), slow_bm25(corpus, query), atol=1e-12)


def test_words_are_stemmed_and_common_ones_left_out() -> None:
    assert stems_of("Reading the FILES") == stems_of("read file")
    assert len(stems_of("a b c to be read")) == 1
    assert stems_of("read read") == stems_of("read") * 2


@given(
    some.lists(some.sampled_from([-math.inf, 0.0, 0.5, 1.0, 2.0]), max_size=30),
    some.integers(1, 12),
)
def test_the_best_rows_are_the_first_of_all_rows_in_order(scores: list[float], depth: int) -> None:
    rows = best_rows(np.array(scores), depth).tolist()
    expected = sorted((row for row, score in enumerate(scores) if score > -math.inf), key=lambda row: -scores[row])
    assert [scores[row] for row in rows] == [scores[row] for row in expected[:depth]]
    assert rows == sorted(rows, key=lambda row: (-scores[row], row))


ARMS = [
    (np.array([2, 0]), np.array([3.0, 1.0])),
    (np.array([0, 1, 2]), np.array([0.9, 0.6, 0.0])),
]


def test_reciprocal_ranks_add_up_over_the_retrievers() -> None:
    fused = reciprocal_ranks(ARMS, 4)
    assert fused[:3] == pytest.approx([1 / 62 + 1 / 61, 1 / 62, 1 / 61 + 1 / 63])
    assert fused[3] == -math.inf, "what no arm has is not an answer"


def test_standard_scores_are_half_and_half() -> None:
    fused = standard_scores(ARMS, 4)
    spread = math.sqrt(0.14)
    assert fused[0] == pytest.approx((-1 + 0.4 / spread) / 2)
    assert fused[1] == pytest.approx((-1 + 0.1 / spread) / 2), "as good as the last of the arm that lacks it"
    assert fused[2] == pytest.approx((1 - 0.5 / spread) / 2)
    assert fused[3] == -math.inf


def test_an_empty_retriever_leaves_the_order_to_the_other() -> None:
    nothing = (np.array([], dtype=np.int64), np.array([]))
    for fuse in (reciprocal_ranks, standard_scores):
        assert best_rows(fuse([nothing, ARMS[1]], 4), 10).tolist() == [0, 1, 2]


def tool(name: str, description: str) -> Item:
    return Item(name, ItemKind.TOOL, "server", name, description)


ITEMS = [
    tool("read_file", "Read the contents of a file"),
    tool("send_mail", "Send an electronic letter"),
    tool("list_pods", "List what runs in a cluster"),
]


async def test_all_baselines_find_the_item() -> None:
    judged = Dataset("few", ITEMS, [DatasetQuery("1", "send a letter", {"send_mail": 1})])
    rankers = await baselines_of(judged, HashEmbedder())
    assert list(rankers) == ["BM25", "dense", "RRF", "z-score", "native-bm25", "native-regex"]
    assert {name: rank("send a letter", 3)[0] for name, rank in rankers.items()} == dict.fromkeys(
        rankers, "send_mail"
    )
    assert rankers["BM25"]("send a letter", 10) == ["send_mail"], "words that are not there are no answer"
    assert len(rankers["dense"]("send a letter", 10)) == 3
    assert len(rankers["z-score"]("send a letter", 2)) == 2


def test_fusion_uses_both_retrievers_when_they_disagree() -> None:
    vectors = np.eye(3, dtype=np.float32)
    rankers = plain_rankers(ITEMS, vectors, {"read a file": vectors[2]})
    assert rankers["BM25"]("read a file", 1) == ["read_file"]
    assert rankers["dense"]("read a file", 1) == ["list_pods"]
    assert set(rankers["RRF"]("read a file", 2)) == {"read_file", "list_pods"}


def test_a_regular_expression_counts_the_words_of_the_request_that_occur() -> None:
    scores = Regex(["read_file Read a FILE from disk", "send mail", "a file, a file"]).scores("Read the file!")
    assert scores.tolist() == [2.0, 0.0, 1.0]
    assert Regex(["a (b", "c"]).scores("((((").tolist() == [0.0, 0.0], "a request is no expression"


def test_clients_search_names_descriptions_and_arguments() -> None:
    schema = {"properties": {"repoName": {"description": "where it lives"}, "odd": True}}
    item = Item("k", ItemKind.TOOL, "git", "createIssue", "Open one", input_schema=schema)
    text = client_text(item)
    for expected in ("createIssue", "Open one", "repoName", "where it lives", "odd"):
        assert expected in text
