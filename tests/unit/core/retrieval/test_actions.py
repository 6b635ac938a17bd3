"""The action of a request, and the actions in a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import RequestTexts
from toolscript.core.retrieval.request import (
    ACTIONS,
    FIRST_WORDS,
    LEAD_IN,
    PHRASES,
    PREPOSITIONS,
    SAY_LITTLE,
    VERBS,
    actions_named,
    agreement,
    kinds_of,
    requested_action,
    strip_phrases,
    words_in_order,
)

READ, CREATE, DELETE = frozenset({"read"}), frozenset({"create"}), frozenset({"delete"})
KindSets = st.frozensets(st.sampled_from(sorted(ACTIONS)))


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("create", CREATE),
        ("creates", CREATE),
        ("created", CREATE),
        ("creating", CREATE),
        ("listing", READ),
        ("deleted", DELETE),
        ("open", READ | CREATE),
        ("posting", CREATE | {"send"}),
        ("file", frozenset()),
        ("s", frozenset()),
        ("ing", frozenset()),
        ("", frozenset()),
    ],
)
def test_a_word_has_its_kinds_in_every_form(word: str, kinds: frozenset[str]) -> None:
    assert kinds_of(word) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("delete the list of files", DELETE),
        ("please could you create an issue", CREATE),
        ("what is in the folder", READ),
        ("get rid of the old files", DELETE),
        ("commit my changes to the branch", frozenset()),
        ("deleting files", DELETE),
        ("the weather in Paris", frozenset()),
        ("", frozenset()),
        ("word " * FIRST_WORDS + "delete", frozenset()),
        ("word " * (FIRST_WORDS - 1) + "delete", DELETE),
    ],
)
def test_the_first_verb_of_a_subquery_is_its_action(text: str, kinds: frozenset[str]) -> None:
    assert requested_action(words_in_order(text)) == kinds


def test_a_name_has_the_actions_of_all_its_words() -> None:
    assert actions_named(["create", "or", "delete", "issue"]) == CREATE | DELETE
    assert actions_named(["issue"]) == frozenset()
    assert actions_named([]) == frozenset()


@pytest.mark.parametrize(
    ("requested", "named", "expected"),
    [
        (CREATE, CREATE, 1.0),
        (CREATE | READ, READ | DELETE, 1.0),
        (CREATE, DELETE, -1.0),
        (CREATE | READ, DELETE, -1.0),
        (frozenset(), DELETE, 0.0),
        (CREATE, frozenset(), 0.0),
        (frozenset(), frozenset(), 0.0),
    ],
)
def test_actions_agree_contradict_or_are_absent(
    requested: frozenset[str], named: frozenset[str], expected: float
) -> None:
    assert agreement(requested, named) == expected


@given(KindSets, KindSets)
def test_agreement_is_symmetric(first: frozenset[str], second: frozenset[str]) -> None:
    assert agreement(first, second) == agreement(second, first)
    assert agreement(first, first) == float(bool(first))


def test_words_are_in_order_in_lower_case_with_their_apostrophes() -> None:
    assert words_in_order("Don't READ read_file, again!") == ["don't", "read", "read", "file", "again"]
    assert words_in_order("Цена 日本 42 _ '") == ["цена", "日本", "42"]


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("Get rid of it", "remove it"),
        ("it is switched OFF", "it is disabled"),
        ("look up and find out", "lookup and find"),
        ("a setup for lookups", "a setup for lookups"),
        ("fınd out", "fınd out"),
        ("FİND OUT", "FİND OUT"),
    ],
)
def test_a_phrase_is_replaced_by_the_word_it_means(text: str, read_as: str) -> None:
    """Letters that only look like those of a phrase are unchanged."""
    assert strip_phrases(text) == read_as


@given(RequestTexts)
def test_any_text_can_be_stripped_of_phrases(text: str) -> None:
    assert words_in_order(strip_phrases(text)) == words_in_order(text)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_means_one_word_that_is_no_phrase(phrase: str) -> None:
    assert strip_phrases(phrase.upper()) == PHRASES[phrase]
    assert words_in_order(PHRASES[phrase]) == [PHRASES[phrase]]


def test_the_table_has_the_case_and_form_of_parsed_requests() -> None:
    words = {*VERBS, *LEAD_IN, *PREPOSITIONS, *SAY_LITTLE, *(word for verbs in ACTIONS.values() for word in verbs)}
    assert [word for word in sorted(words) if words_in_order(word) != [word]] == []


def test_no_word_means_deleting_and_something_else() -> None:
    assert [kind for kind, words in ACTIONS.items() if kind != "delete" and words & ACTIONS["delete"]] == []
