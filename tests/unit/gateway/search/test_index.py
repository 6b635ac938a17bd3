"""The index in memory: every score of every item, the same as counted by hand."""

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
from toolscript.core.retrieval.model import Ask, IndexCard
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.gateway.index import LocalIndex, Rows, squashed
from toolscript.testing import HashEmbedder
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.indexing.points import point_of

pytestmark = pytest.mark.requirement("TS-003")

FILE = {terms_of_word("file")[0]: 1.0}
WORDS = ["read", "reads", "file", "file_log", "send", "mail", "日本語", "файл", "x1", "readFile"]
Texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
Items = st.lists(st.builds(lambda name, text: item("server", name or "none", text), Texts, Texts), max_size=8)
Asked = st.dictionaries(
    st.sampled_from([*(term for word in WORDS for term in terms_of_word(word)), 1, 2]),
    st.floats(0.1, 2.0),
    max_size=6,
)


def counted_by_hand(items: Sequence[Item], asked: dict[int, float]) -> list[float]:
    """BM25F with the rarity of each term, an item at a time."""
    each = [item_terms(one) for one in items]
    holders = {term: sum(term in terms for terms in each) for term in asked}
    worth = {
        term: weight * math.log(1 + (len(items) - holders[term] + 0.5) / (holders[term] + 0.5))
        for term, weight in asked.items()
    }
    return [sum(worth[term] * terms[term] for term in asked if term in terms) for terms in each]


@settings(max_examples=60, deadline=None)
@given(Items, Asked)
def test_word_scores_are_those_counted_by_hand(items: list[Item], asked: dict[int, float]) -> None:
    np.testing.assert_allclose(index_of(items).word_scores(asked), counted_by_hand(items, asked), rtol=1e-5)


def test_a_rare_word_is_worth_more_than_a_common_one() -> None:
    items = [item("s", f"file_{number}", "file") for number in range(9)] + [item("s", "mail", "mail")]
    index = index_of(items)
    common = index.word_scores({terms_of_word("file")[0]: 1.0})
    rare = index.word_scores({terms_of_word("mail")[0]: 1.0})
    assert rare.max() > 2 * common.max() > 0


def test_rows_are_told_apart_by_kind() -> None:
    index = index_of()
    assert index.rows(None).tolist() == list(range(len(ITEMS)))
    for kind in ItemKind:
        assert [ITEMS[row].kind for row in index.rows(kind)] == [one.kind for one in ITEMS if one.kind is kind]
    assert [ITEMS[row] for row in index.rows(ItemKind.PROMPT)] == [SUMMARY]
    assert [ITEMS[row] for row in index.rows(ItemKind.RESOURCE)] == [LOG]


def test_cosines_are_with_every_item_a_row_for_each_vector() -> None:
    index = index_of(ITEMS[:2], np.stack([direction(1, 0), direction(1, 1)]))
    cosines = index.similarities(np.stack([direction(1, 0), direction(0, 1)]))
    assert cosines is not None
    np.testing.assert_allclose(cosines, [[1.0, math.sqrt(0.5)], [0.0, math.sqrt(0.5)]], atol=1e-6)


def test_where_nothing_is_embedded_the_model_has_no_say() -> None:
    for index in (index_of(ITEMS), index_of(ITEMS, np.zeros((len(ITEMS), 2), np.float32))):
        assert index.similarities(np.stack([direction(1, 0)])) is None
        assert not index.model_is_used
        assert index.candidates([direction(1, 0)], [FILE], index.rows(None), 9)[0].dense is None


def named_by_meaning(index: LocalIndex, rows: Rows | None = None) -> list[int] | None:
    within = index.rows(None) if rows is None else rows
    (found,) = index.candidates([direction(1, 0)], [FILE], within, 9)
    return None if found.dense is None else [hit.id for hit in found.dense]


def test_an_item_without_a_vector_is_not_named_by_meaning_and_the_others_are() -> None:
    index = index_of(ITEMS[:3], np.stack([direction(1, 1), np.zeros(2, np.float32), direction(1, 0)]))
    assert index.model_is_used
    assert named_by_meaning(index) == [2, 0]
    assert named_by_meaning(index, np.array([1])) is None, "of these rows the model knows none"


def test_vectors_can_come_later_and_leave_the_first_index_as_it_was() -> None:
    before = index_of(ITEMS[:2])
    assert not before.model_is_used
    half = before.with_vectors(np.stack([direction(1, 0), np.zeros(2, np.float32)]))
    assert half.model_is_used
    assert named_by_meaning(half) == [0]
    after = half.with_vectors(np.stack([direction(1, 0), direction(0, 1)]))
    assert named_by_meaning(after) == [0, 1]
    assert named_by_meaning(half) == [0]
    assert named_by_meaning(before) is None
    assert after.items == before.items
    np.testing.assert_array_equal(after.word_scores(FILE), before.word_scores(FILE))


@settings(max_examples=40, deadline=None)
@given(Items.filter(bool), st.lists(Asked, min_size=1, max_size=3), st.integers(1, 5))
async def test_candidates_are_those_an_engine_would_answer(
    items: list[Item], asked: list[dict[int, float]], limit: int
) -> None:
    vectors, engine = vectors_of(items), MemoryIndex(IndexCard(HashEmbedder().model))
    await engine.put([point_of(StoredItem(row, 1, one), vectors[row]) for row, one in enumerate(items)])
    asks = [(vector, terms) for vector, terms in zip(vectors_of(ITEMS), asked, strict=False)]
    index = index_of(items, vectors)
    found = index.candidates([vector for vector, _ in asks], asked, index.rows(None), limit)
    for (vector, terms), one in zip(asks, found, strict=True):
        expected = await engine.search(Ask(vector, terms, limit=limit))
        assert one.points == expected.points
        assert one.shares == pytest.approx(expected.shares)
        for arm, wanted in ((one.dense, expected.dense), (one.words, expected.words)):
            assert arm is not None
            assert wanted is not None
            assert [hit.score for hit in arm] == pytest.approx([hit.score for hit in wanted], rel=1e-4, abs=1e-6)


def test_candidates_are_only_of_the_rows_that_may_be_found_and_no_more_than_asked_for() -> None:
    index = index_of(ITEMS, vectors_of(ITEMS))
    tools = index.rows(ItemKind.TOOL)
    (found,) = index.candidates([direction(*[1.0] * 64)], [FILE], tools, 2)
    for arm in (found.dense, found.words):
        assert arm is not None
        assert len(arm) == 2
        assert {hit.id for hit in arm} <= set(tools.tolist())
    assert found.points == len(ITEMS), "how rare a word is does not depend on who may be found"


def test_the_traits_of_a_row_are_those_of_its_item() -> None:
    index = index_of()
    for row, one in enumerate(ITEMS):
        assert index.features(row).name == one.name
        assert stems_of_words(item_words(one)) <= index.features(row).stems
    assert index.features(0) is index.features(0)


@pytest.mark.parametrize("vectors", [None, np.zeros((0, 4), np.float32)])
def test_an_empty_index_answers_everything_with_nothing(vectors: np.ndarray | None) -> None:
    index = LocalIndex((), (), vectors).warm()
    assert len(index) == 0
    assert [len(index.rows(kind)) for kind in (None, *ItemKind)] == [0, 0, 0, 0]
    assert len(index.word_scores({1: 1.0})) == 0
    assert index.similarities(np.ones((1, 4), np.float32)) is None
    (found,) = index.candidates(None, [{1: 1.0}], index.rows(None), 10)
    assert (found.dense, found.words, found.points) == (None, [], 0)
    assert index.rows_named("read_file") == []
    assert not index.knows(1)


def test_a_name_is_found_alone_with_its_server_and_in_any_case() -> None:
    index = index_of((READ_FILE, item("other", "READ_FILE")))
    assert index.rows_named("read_file") == [0]
    assert index.rows_named("files__read_file") == [0]
    assert index.rows_named("Read_File") == []
    assert index.rows_named("Read_File", of_any_case=True) == [0, 1]
    assert index.rows_named("Files__Read_file", of_any_case=True) == [0]


def test_places_follow_the_order_of_full_names() -> None:
    index = index_of((item("b", "a"), item("a", "z"), item("a", "b")))
    assert index.place_by_name.tolist() == [2, 1, 0]


def test_a_name_is_squashed_to_what_people_get_right() -> None:
    assert squashed("Read_File-v2.1 x") == squashed("readfilev21X") == "readfilev21x"
    assert squashed("Ärger_日本") == "ärger日本"
