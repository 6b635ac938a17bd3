"""A request as the ranking reads it: what is asked of the arms, and what is said about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.ranking.builders import RequestTexts, stem, stems
from toolscript.core.retrieval.request import TRUST_IN_A_CORRECTION, TRUST_IN_A_LITERAL, parse_query
from toolscript.core.retrieval.terms import STEM_SHARE, SURFACE_SHARE, query_terms, terms_of_word

TWO_WISHES = 'read the notes in "garden plan" and send a letter to Ann'
Meant = st.dictionaries(st.sampled_from(["file", "weather", "letter", "get"]), st.sampled_from(["life", "tell"]))


def test_a_plain_request_is_one_wish_asked_once() -> None:
    request = parse_query("read the file")
    assert (request.text, request.plain) == ("read the file", "read the file")
    assert request.wishes == ()
    assert request.parts == request.single_subqueries == (request.whole,)
    assert request.texts == ("read the file",)
    assert request.whole.terms == query_terms("read the file")
    assert request.whole.stems == request.plain_stems == stems("read file")
    assert (request.whole.subject, request.whole.action) == (stems("file"), frozenset({"read"}))


def test_a_request_for_several_things_is_asked_whole_and_wish_by_wish() -> None:
    request = parse_query(TWO_WISHES)
    assert [wish.text for wish in request.wishes] == ["read the notes in", "send a letter to Ann"]
    assert request.parts == (request.whole, *request.wishes)
    assert request.single_subqueries == request.wishes
    assert request.whole.text == TWO_WISHES
    assert request.texts == (TWO_WISHES, "read the notes in", "send a letter to Ann")
    read, send = request.wishes
    assert (read.action, send.action) == (frozenset({"read"}), frozenset({"send"}))
    assert (read.subject, send.subject) == (stems("notes"), stems("letter"))


def test_a_word_of_a_value_is_asked_for_with_less_trust() -> None:
    request = parse_query('read the notes in "garden"')
    terms = request.whole.terms
    assert terms[stem("notes")] == STEM_SHARE
    assert terms[stem("garden")] == STEM_SHARE * TRUST_IN_A_LITERAL
    assert terms[terms_of_word("garden")[1]] == SURFACE_SHARE * TRUST_IN_A_LITERAL
    assert stem("garden") in request.whole.stems
    assert request.plain_stems == stems("read notes")


def test_a_word_that_is_also_said_outside_of_a_value_is_no_value() -> None:
    terms = parse_query('read the notes in "my notes"').whole.terms
    assert terms[stem("notes")] == STEM_SHARE


def test_where_the_values_are_the_request_they_are_trusted() -> None:
    request = parse_query('"garden"')
    assert request.whole.terms == query_terms("garden")
    assert request.plain_stems == stems("garden")


def test_a_corrected_word_is_asked_for_as_it_was_meant_with_less_trust() -> None:
    meant = {"fiel": "file"}
    request = parse_query("read the fiel", meant)
    assert request.whole.terms == pytest.approx(
        {
            **query_terms("read"),
            stem("file"): STEM_SHARE * TRUST_IN_A_CORRECTION,
            terms_of_word("file")[1]: SURFACE_SHARE * TRUST_IN_A_CORRECTION,
        }
    )
    assert request.whole.stems == stems("read file")
    assert request.whole.subject == stems("file")
    assert (request.words, request.meant) == (("read", "fiel"), meant)


def test_a_word_said_right_counts_in_full_even_when_it_is_also_misspelt() -> None:
    asked = parse_query("file fiel", {"fiel": "file"}).whole.terms
    assert asked == query_terms("file")


def test_words_are_those_a_person_said_without_what_they_run_together_to() -> None:
    request = parse_query("please read_file for me")
    assert request.words == ("read", "file")
    assert terms_of_word("readfile")[1] in request.whole.terms
    assert parse_query("本を検索").words == ("本を", "を検", "検索")
    assert parse_query("what is it").words == ("what", "is", "it"), "all there is, though it says little"


def embedded(*rows: tuple[float, float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_the_whole_and_each_wish_are_asked_with_their_own_vectors() -> None:
    whole, read, send = parse_query(TWO_WISHES).vectors(embedded((1, 0), (0.6, 0.8), (0.8, 0.6)))
    np.testing.assert_allclose(whole, [1, 0], rtol=1e-6)
    np.testing.assert_allclose(read, [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(send, [0.8, 0.6], rtol=1e-6)


def test_a_plain_request_is_asked_with_its_own_vector() -> None:
    (whole,) = parse_query("read the file").vectors(embedded((0.6, 0.8)))
    np.testing.assert_allclose(whole, [0.6, 0.8], rtol=1e-6)


@settings(max_examples=150, deadline=None)
@given(RequestTexts, Meant)
def test_any_text_can_be_asked(text: str, meant: dict[str, str]) -> None:
    request = parse_query(text, meant)
    assert request.text == text
    assert len(set(request.texts)) == len(request.texts)
    for part in request.parts:
        assert all(0 < weight <= STEM_SHARE for weight in part.terms.values())
        assert part.stems <= set(part.terms)
    assert {stem(request.meant.get(word, word)) for word in request.words} <= request.whole.stems
    vectors = request.vectors(np.eye(len(request.texts), 8, dtype=np.float32))
    assert len(vectors) == len(request.parts)
    np.testing.assert_allclose([np.linalg.norm(vector) for vector in vectors], 1.0, rtol=1e-5)


def test_words_too_common_to_be_asked_for_are_no_subject() -> None:
    subjects = {text: parse_query(text).whole.subject for text in ("create an issue", "create issue")}
    assert subjects["create an issue"] == subjects["create issue"]


def test_a_wish_without_a_subject_is_about_all_its_words() -> None:
    whole = parse_query("get rid of it").whole
    assert whole.subject == whole.stems
