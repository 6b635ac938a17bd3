"""The index in memory: every score of every item, the same as counted by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.local.scenes import ITEMS, LOG, READ_FILE, SUMMARY, direction, index_of, item
from toolscript.model.item_text import item_terms
from toolscript.model.items import Item, ItemKind
from toolscript.model.words import terms_of_word
from toolscript.search.local.index import LocalIndex, squashed

pytestmark = pytest.mark.requirement("TS-003")

WORDS = ["read", "reads", "file", "file_log", "send", "mail", "日本語", "файл", "x1", "readFile"]
Texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
Items = st.lists(st.builds(lambda name, text: item("server", name or "none", text), Texts, Texts), max_size=8)
Asked = st.dictionaries(
    st.sampled_from([*(term for word in WORDS for term in terms_of_word(word)), 1, 2]),
    st.floats(0.1, 2.0),
    max_size=6,
)


def counted_by_hand(items: Sequence[Item], asked: dict[int, float]) -> tuple[list[float], list[float]]:
    """BM25F with the rarity of each term, an item at a time."""
    each = [item_terms(one) for one in items]
    holders = {term: sum(term in terms for terms in each) for term in asked}
    worth = {
        term: weight * math.log(1 + (len(items) - holders[term] + 0.5) / (holders[term] + 0.5))
        for term, weight in asked.items()
    }
    scores = [sum(worth[term] * terms[term] for term in asked if term in terms) for terms in each]
    most = sum(worth.values())
    shares = [sum(worth[term] for term in asked if term in terms) / most if most else 0.0 for terms in each]
    return scores, shares


@settings(max_examples=60, deadline=None)
@given(Items, Asked)
def test_word_scores_are_those_counted_by_hand(items: list[Item], asked: dict[int, float]) -> None:
    scores, shares = index_of(items).word_scores(asked)
    expected_scores, expected_shares = counted_by_hand(items, asked)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)
    np.testing.assert_allclose(shares, expected_shares, rtol=1e-9)
    assert ((shares >= 0) & (shares <= 1 + 1e-9)).all()


def test_a_rare_word_is_worth_more_than_a_common_one() -> None:
    items = [item("s", f"file_{number}", "file") for number in range(9)] + [item("s", "mail", "mail")]
    index = index_of(items)
    common, _ = index.word_scores({terms_of_word("file")[0]: 1.0})
    rare, _ = index.word_scores({terms_of_word("mail")[0]: 1.0})
    assert rare.max() > 2 * common.max() > 0


def test_rows_are_told_apart_by_kind() -> None:
    index = index_of()
    assert index.rows(None).tolist() == list(range(len(ITEMS)))
    for kind in ItemKind:
        assert [ITEMS[row].kind for row in index.rows(kind)] == [one.kind for one in ITEMS if one.kind is kind]
    assert [ITEMS[row] for row in index.rows(ItemKind.PROMPT)] == [SUMMARY]
    assert [ITEMS[row] for row in index.rows(ItemKind.RESOURCE)] == [LOG]


def test_an_item_without_a_vector_has_no_cosine_and_the_others_have_theirs() -> None:
    items = ITEMS[:3]
    rows = np.stack([direction(1, 0), np.zeros(2, np.float32), direction(1, 1)])
    index = index_of(items, rows)
    cosines = index.similarities(direction(1, 0))
    assert cosines is not None
    np.testing.assert_allclose(cosines, [1.0, np.nan, math.sqrt(0.5)], rtol=1e-6)
    assert index.model_is_used


def test_where_nothing_is_embedded_the_model_has_no_say() -> None:
    assert index_of(ITEMS).similarities(direction(1, 0)) is None
    empty = index_of(ITEMS, np.zeros((len(ITEMS), 2), np.float32))
    assert empty.similarities(direction(1, 0)) is None
    assert not empty.model_is_used
    assert not index_of(ITEMS).model_is_used


def test_vectors_can_come_later_and_leave_the_first_index_as_it_was() -> None:
    before = index_of(ITEMS[:2])
    assert not before.model_is_used
    half = before.with_vectors(np.stack([direction(1, 0), np.zeros(2, np.float32)]))
    assert half.model_is_used
    assert np.isnan(half.similarities(direction(1, 0))).tolist() == [False, True]  # type: ignore[arg-type]
    after = half.with_vectors(np.stack([direction(1, 0), direction(0, 1)]))
    assert np.isnan(after.similarities(direction(1, 0))).tolist() == [False, False]  # type: ignore[arg-type]
    assert before.similarities(direction(1, 0)) is None
    assert after.similarities(direction(1, 0)) is not None
    assert after.items == before.items
    term = terms_of_word("file")[0]
    np.testing.assert_array_equal(after.word_scores({term: 1.0})[0], before.word_scores({term: 1.0})[0])


@pytest.mark.parametrize("vectors", [None, np.zeros((0, 4), np.float32)])
def test_an_empty_index_answers_everything_with_nothing(vectors: np.ndarray | None) -> None:
    index = LocalIndex((), (), vectors).warm()
    assert len(index) == 0
    assert [len(index.rows(kind)) for kind in (None, *ItemKind)] == [0, 0, 0, 0]
    scores, shares = index.word_scores({1: 1.0})
    assert (len(scores), len(shares)) == (0, 0)
    assert index.similarities(np.ones(4, np.float32)) is None
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
