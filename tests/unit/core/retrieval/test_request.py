"""The parsed request: queries for the retrievers, literals, corrections and sub-queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import RequestTexts, stem, stems
from toolscript.core.retrieval.request import CORRECTION_WEIGHT, LITERAL_WEIGHT, parse_query
from toolscript.core.retrieval.terms import STEM_SHARE, SURFACE_SHARE, query_terms, terms_of_word

TWO_SUBQUERIES = 'read the notes in "garden plan" and send a letter to Ann'
Meant = st.dictionaries(st.sampled_from(["file", "weather", "letter", "get"]), st.sampled_from(["life", "tell"]))


def test_a_plain_request_is_a_single_query() -> None:
    request = parse_query("read the file")
    assert (request.text, request.plain) == ("read the file", "read the file")
    assert request.subqueries == ()
    assert request.parts == request.single_subqueries == (request.whole,)
    assert request.texts == ("read the file",)
    assert request.whole.terms == query_terms("read the file")
    assert request.whole.stems == request.plain_stems == stems("read file")
    assert (request.whole.subject, request.whole.action) == (stems("file"), frozenset({"read"}))


def test_a_compound_request_has_the_whole_and_each_subquery() -> None:
    request = parse_query(TWO_SUBQUERIES)
    assert [subquery.text for subquery in request.subqueries] == ["read the notes in", "send a letter to Ann"]
    assert request.parts == (request.whole, *request.subqueries)
    assert request.single_subqueries == request.subqueries
    assert request.whole.text == TWO_SUBQUERIES
    assert request.texts == (TWO_SUBQUERIES, "read the notes in", "send a letter to Ann")
    read, send = request.subqueries
    assert (read.action, send.action) == (frozenset({"read"}), frozenset({"send"}))
    assert (read.subject, send.subject) == (stems("notes"), stems("letter"))


def test_a_word_of_a_literal_has_less_weight() -> None:
    request = parse_query('read the notes in "garden"')
    terms = request.whole.terms
    assert terms[stem("notes")] == STEM_SHARE
    assert terms[stem("garden")] == STEM_SHARE * LITERAL_WEIGHT
    assert terms[terms_of_word("garden")[1]] == SURFACE_SHARE * LITERAL_WEIGHT
    assert stem("garden") in request.whole.stems
    assert request.plain_stems == stems("read notes")


def test_a_word_that_is_also_outside_of_a_literal_has_full_weight() -> None:
    terms = parse_query('read the notes in "my notes"').whole.terms
    assert terms[stem("notes")] == STEM_SHARE


def test_literals_that_are_the_whole_request_have_full_weight() -> None:
    request = parse_query('"garden"')
    assert request.whole.terms == query_terms("garden")
    assert request.plain_stems == stems("garden")


def test_a_corrected_word_is_searched_with_less_weight() -> None:
    corrections = {"fiel": "file"}
    request = parse_query("read the fiel", corrections)
    assert request.whole.terms == pytest.approx(
        {
            **query_terms("read"),
            stem("file"): STEM_SHARE * CORRECTION_WEIGHT,
            terms_of_word("file")[1]: SURFACE_SHARE * CORRECTION_WEIGHT,
        }
    )
    assert request.whole.stems == stems("read file")
    assert request.whole.subject == stems("file")
    assert (request.words, request.corrections) == (("read", "fiel"), corrections)


def test_a_correctly_spelt_word_has_full_weight_even_if_also_misspelt() -> None:
    terms = parse_query("file fiel", {"fiel": "file"}).whole.terms
    assert terms == query_terms("file")


def test_words_do_not_include_joined_identifiers() -> None:
    request = parse_query("please read_file for me")
    assert request.words == ("read", "file")
    assert terms_of_word("readfile")[1] in request.whole.terms
    assert parse_query("本を検索").words == ("本を", "を検", "検索")
    assert parse_query("what is it").words == ("what", "is", "it"), "stop words are kept if there is nothing else"


def embedded(*rows: tuple[float, float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_the_whole_and_each_subquery_have_their_own_vectors() -> None:
    whole, read, send = parse_query(TWO_SUBQUERIES).vectors(embedded((1, 0), (0.6, 0.8), (0.8, 0.6)))
    np.testing.assert_allclose(whole, [1, 0], rtol=1e-6)
    np.testing.assert_allclose(read, [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(send, [0.8, 0.6], rtol=1e-6)


def test_a_plain_request_has_its_own_vector() -> None:
    (whole,) = parse_query("read the file").vectors(embedded((0.6, 0.8)))
    np.testing.assert_allclose(whole, [0.6, 0.8], rtol=1e-6)


@settings(max_examples=150, deadline=None)
@given(RequestTexts, Meant)
def test_any_text_can_be_parsed(text: str, corrections: dict[str, str]) -> None:
    request = parse_query(text, corrections)
    assert request.text == text
    assert len(set(request.texts)) == len(request.texts)
    for part in request.parts:
        assert all(0 < weight <= STEM_SHARE for weight in part.terms.values())
        assert part.stems <= set(part.terms)
    assert {stem(request.corrections.get(word, word)) for word in request.words} <= request.whole.stems
    vectors = request.vectors(np.eye(len(request.texts), 8, dtype=np.float32))
    assert len(vectors) == len(request.parts)
    np.testing.assert_allclose([np.linalg.norm(vector) for vector in vectors], 1.0, rtol=1e-5)


def test_stop_words_are_no_subject() -> None:
    subjects = {text: parse_query(text).whole.subject for text in ("create an issue", "create issue")}
    assert subjects["create an issue"] == subjects["create issue"]


def test_a_subquery_without_an_object_has_all_its_words_as_subject() -> None:
    whole = parse_query("get rid of it").whole
    assert whole.subject == whole.stems
