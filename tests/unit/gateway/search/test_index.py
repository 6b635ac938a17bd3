"""The in-memory index: scores equal to a reference implementation."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gateway.search.builders import (
    ITEMS,
    LOG,
    READ_FILE,
    SUMMARY,
    direction,
    index_of,
    item,
    vectors_of,
)
from toolscript.core.item_text import item_terms, item_words, stems_of_words
from toolscript.core.items import Item, ItemKind, StoredItem
from toolscript.core.retrieval.model import IndexCard, IndexQuery
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.gateway.index import LocalIndex, Rows, normalise_name
from toolscript.testing import HashEmbedder
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.indexing.points import point_of

pytestmark = pytest.mark.requirement("TS-003")

FILE = {terms_of_word("file")[0]: 1.0}
WORDS = ["read", "reads", "file", "file_log", "send", "mail", "日本語", "файл", "x1", "readFile"]
Texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
Items = st.lists(st.builds(lambda name, text: item("server", name or "none", text), Texts, Texts), max_size=8)
Queries = st.dictionaries(
    st.sampled_from([*(term for word in WORDS for term in terms_of_word(word)), 1, 2]),
    st.floats(0.1, 2.0),
    max_size=6,
)


def reference_scores(items: Sequence[Item], query: dict[int, float]) -> list[float]:
    """Compute BM25F with the IDF of each term, item by item."""
    terms_by_item = [item_terms(item_) for item_ in items]
    holders = {term: sum(term in terms for terms in terms_by_item) for term in query}
    weights = {
        term: weight * math.log(1 + (len(items) - holders[term] + 0.5) / (holders[term] + 0.5))
        for term, weight in query.items()
    }
    return [sum(weights[term] * terms[term] for term in query if term in terms) for terms in terms_by_item]


@settings(max_examples=60, deadline=None)
@given(Items, Queries)
def test_word_scores_equal_the_reference(items: list[Item], query: dict[int, float]) -> None:
    np.testing.assert_allclose(index_of(items).word_scores(query), reference_scores(items, query), rtol=1e-5)


def test_a_rare_word_is_worth_more_than_a_common_one() -> None:
    items = [item("s", f"file_{number}", "file") for number in range(9)] + [item("s", "mail", "mail")]
    index = index_of(items)
    common = index.word_scores({terms_of_word("file")[0]: 1.0})
    rare = index.word_scores({terms_of_word("mail")[0]: 1.0})
    assert rare.max() > 2 * common.max() > 0


def test_rows_are_selected_by_kind() -> None:
    index = index_of()
    assert index.rows(None).tolist() == list(range(len(ITEMS)))
    for kind in ItemKind:
        assert [ITEMS[row].kind for row in index.rows(kind)] == [
            item_.kind for item_ in ITEMS if item_.kind is kind
        ]
    assert [ITEMS[row] for row in index.rows(ItemKind.PROMPT)] == [SUMMARY]
    assert [ITEMS[row] for row in index.rows(ItemKind.RESOURCE)] == [LOG]


def test_cosines_are_with_every_item_a_row_for_each_vector() -> None:
    index = index_of(ITEMS[:2], np.stack([direction(1, 0), direction(1, 1)]))
    cosines = index.similarities(np.stack([direction(1, 0), direction(0, 1)]))
    assert cosines is not None
    np.testing.assert_allclose(cosines, [[1.0, math.sqrt(0.5)], [0.0, math.sqrt(0.5)]], atol=1e-6)


def test_without_embeddings_the_model_is_not_used() -> None:
    for index in (index_of(ITEMS), index_of(ITEMS, np.zeros((len(ITEMS), 2), np.float32))):
        assert index.similarities(np.stack([direction(1, 0)])) is None
        assert not index.model_is_used
        assert index.candidates([direction(1, 0)], [FILE], index.rows(None), 9)[0].dense is None


def dense_ids(index: LocalIndex, rows: Rows | None = None) -> list[int] | None:
    within = index.rows(None) if rows is None else rows
    (candidates,) = index.candidates([direction(1, 0)], [FILE], within, 9)
    return None if candidates.dense is None else [hit.id for hit in candidates.dense]


def test_dense_retrieval_finds_only_items_with_a_vector() -> None:
    index = index_of(ITEMS[:3], np.stack([direction(1, 1), np.zeros(2, np.float32), direction(1, 0)]))
    assert index.model_is_used
    assert dense_ids(index) == [2, 0]
    assert dense_ids(index, np.array([1])) is None, "none of these rows has a vector"


def test_vectors_can_be_added_later_without_changing_the_first_index() -> None:
    before = index_of(ITEMS[:2])
    assert not before.model_is_used
    half = before.with_vectors(np.stack([direction(1, 0), np.zeros(2, np.float32)]))
    assert half.model_is_used
    assert dense_ids(half) == [0]
    after = half.with_vectors(np.stack([direction(1, 0), direction(0, 1)]))
    assert dense_ids(after) == [0, 1]
    assert dense_ids(half) == [0]
    assert dense_ids(before) is None
    assert after.items == before.items
    np.testing.assert_array_equal(after.word_scores(FILE), before.word_scores(FILE))


@settings(max_examples=40, deadline=None)
@given(Items.filter(bool), st.lists(Queries, min_size=1, max_size=3), st.integers(1, 5))
async def test_candidates_equal_those_of_an_engine(
    items: list[Item], queries: list[dict[int, float]], limit: int
) -> None:
    vectors, engine = vectors_of(items), MemoryIndex(IndexCard(HashEmbedder().model))
    await engine.put([point_of(StoredItem(row, 1, item_), vectors[row]) for row, item_ in enumerate(items)])
    asks = [(vector, terms) for vector, terms in zip(vectors_of(ITEMS), queries, strict=False)]
    index = index_of(items, vectors)
    candidate_lists = index.candidates([vector for vector, _ in asks], queries, index.rows(None), limit)
    for (vector, terms), candidates in zip(asks, candidate_lists, strict=True):
        expected = await engine.search(IndexQuery(vector, terms, limit=limit))
        assert candidates.points == expected.points
        assert candidates.shares == pytest.approx(expected.shares)
        for retrieved, reference in ((candidates.dense, expected.dense), (candidates.words, expected.words)):
            assert retrieved is not None
            assert reference is not None
            assert [hit.score for hit in retrieved] == pytest.approx(
                [hit.score for hit in reference], rel=1e-4, abs=1e-6
            )


def test_candidates_are_limited_to_the_allowed_rows_and_the_limit() -> None:
    index = index_of(ITEMS, vectors_of(ITEMS))
    tools = index.rows(ItemKind.TOOL)
    (candidates,) = index.candidates([direction(*[1.0] * 64)], [FILE], tools, 2)
    for retrieved in (candidates.dense, candidates.words):
        assert retrieved is not None
        assert len(retrieved) == 2
        assert {hit.id for hit in retrieved} <= set(tools.tolist())
    assert candidates.points == len(ITEMS), "the IDF does not depend on the allowed rows"


def test_the_features_of_a_row_are_those_of_its_item() -> None:
    index = index_of()
    for row, item_ in enumerate(ITEMS):
        assert index.features(row).name == item_.name
        assert stems_of_words(item_words(item_)) <= index.features(row).stems
    assert index.features(0) is index.features(0)


@pytest.mark.parametrize("vectors", [None, np.zeros((0, 4), np.float32)])
def test_an_empty_index_answers_everything_with_nothing(vectors: np.ndarray | None) -> None:
    index = LocalIndex((), (), vectors).warm()
    assert len(index) == 0
    assert [len(index.rows(kind)) for kind in (None, *ItemKind)] == [0, 0, 0, 0]
    assert len(index.word_scores({1: 1.0})) == 0
    assert index.similarities(np.ones((1, 4), np.float32)) is None
    (candidates,) = index.candidates(None, [{1: 1.0}], index.rows(None), 10)
    assert (candidates.dense, list(candidates.words or ()), candidates.points) == (None, [], 0)
    assert index.rows_named("read_file") == []
    assert not index.vocabulary.knows("read")


def test_a_name_is_found_alone_with_its_server_and_in_any_case() -> None:
    index = index_of((READ_FILE, item("other", "READ_FILE")))
    assert index.rows_named("read_file") == [0]
    assert index.rows_named("files__read_file") == [0]
    assert index.rows_named("Read_File") == []
    assert index.rows_named("Read_File", of_any_case=True) == [0, 1]
    assert index.rows_named("Files__Read_file", of_any_case=True) == [0]


def test_places_follow_the_order_of_full_names() -> None:
    index = index_of((item("b", "a"), item("a", "z"), item("a", "b")))
    assert index.rank_by_name.tolist() == [2, 1, 0]


def test_a_name_is_normalised_without_case_and_separators() -> None:
    assert normalise_name("Read_File-v2.1 x") == normalise_name("readfilev21X") == "readfilev21x"
    assert normalise_name("Ärger_日本") == "ärger日本"
