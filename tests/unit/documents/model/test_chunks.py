"""Where a text is cut into passages, and which terms a passage has."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.chunking import (
    MAX_LETTERS,
    MAX_TITLE,
    SHORT_TAIL_SHARE,
    UNSPACED_COUNTS,
    passage_text,
    split_into_chunks,
    terms_of_chunk,
    terms_of_chunk_query,
)
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.documents.model.document import whole_text

pytestmark = pytest.mark.requirement("DOC-006")

MAX_LENGTH = int(MAX_LETTERS * (1 + SHORT_TAIL_SHARE))

PIECES = [
    "word ",
    "A sentence ends here. ",
    "東京は大きい。",
    "東京",
    "\n",
    "\n\n",
    "\r\n",
    "# Heading\n",
    "e\u0301",
    "👩\u200d🚀",
    "x" * 40,
    " " * 50,
    "ไทย",
    "\ud800",
]
TEXTS = st.text() | st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 400)), max_size=12).map(
    lambda parts: "".join(piece * times for piece, times in parts)
)


def stem(word: str) -> int:
    return terms_of_word(word)[0]


@given(TEXTS)
def test_passages_are_the_whole_text_in_order_without_gaps(text: str) -> None:
    passages = split_into_chunks(text)
    assert whole_text(passages) == text
    assert [one.number for one in passages] == list(range(len(passages)))
    assert [one.start for one in passages] == [0, *(one.end for one in passages[:-1])]
    assert [one.text for one in passages] == [text[one.start : one.end] for one in passages]


@given(TEXTS)
def test_no_passage_is_longer_than_it_may_be_or_empty_unless_the_text_is(text: str) -> None:
    passages = split_into_chunks(text)
    assert max(len(one.text) for one in passages) <= MAX_LENGTH
    assert all(one.text for one in passages) or text == ""


def test_a_short_text_is_one_passage_and_no_text_is_one_too() -> None:
    assert [one.text for one in split_into_chunks("A cat.\n\nA dog.")] == ["A cat.\n\nA dog."]
    assert [(one.start, one.end) for one in split_into_chunks("")] == [(0, 0)]


def filled(letters: int) -> str:
    """Sentences of ten words, up to about so many letters, on one line."""
    return "This is a sentence of ten words and no more. " * (letters // 45)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (filled(MAX_LETTERS * 3 // 4) + "\n\n", filled(MAX_LETTERS)),
        (filled(MAX_LETTERS * 3 // 4) + "\n \r\n\n", filled(MAX_LETTERS)),
        (filled(MAX_LETTERS * 3 // 4) + "\n", filled(MAX_LETTERS)),
        (filled(MAX_LETTERS * 3 // 4) + "Line\n\nanother\n", "## Heading\n" + "Line\n" * MAX_LETTERS),
        ("word " * (MAX_LETTERS // 6) + "end! ", "word " * MAX_LETTERS),
        ("word " * (MAX_LETTERS // 6) + 'end?" ', "word " * MAX_LETTERS),
        ("東京" * (MAX_LETTERS // UNSPACED_COUNTS // 3) + "。", "東京" * MAX_LETTERS),
    ],
    ids=["paragraph", "blank lines", "line", "heading", "sentence", "quoted sentence", "sentence without spaces"],
)
def test_a_text_is_cut_where_a_reader_would_pause(before: str, after: str) -> None:
    assert split_into_chunks(before + after)[0].text == before


def test_a_text_of_sentences_is_cut_between_them() -> None:
    starts = [one.text[:5] for one in split_into_chunks(filled(10 * MAX_LETTERS))]
    assert set(starts) == {"This "}


def test_a_text_of_words_is_cut_between_them() -> None:
    assert {one.text[:4] for one in split_into_chunks("word " * MAX_LETTERS)} == {"word"}


def test_a_short_rest_stays_with_the_passage_before_it() -> None:
    rest = "end" * (int(MAX_LETTERS * SHORT_TAIL_SHARE) // 3)
    assert len(split_into_chunks("x" * (MAX_LETTERS - 1) + " " + rest)) == 1
    assert len(split_into_chunks("x" * (MAX_LETTERS - 1) + " " + rest + "more" * 3)) == 2


def test_passages_of_an_unspaced_script_are_as_short_as_a_model_can_read() -> None:
    longest = max(len(one.text) for one in split_into_chunks("東京は日本の首都です" * 1_000))
    assert longest <= MAX_LENGTH / UNSPACED_COUNTS < MAX_LETTERS


@pytest.mark.parametrize("letter", ["e\u0301\u0323", "👩\u200d🚀", "नि", "각"])
def test_a_letter_is_never_parted_from_its_marks(letter: str) -> None:
    for shift in range(len(letter)):
        passages = split_into_chunks("x" * shift + letter * MAX_LETTERS * 2)
        assert len(passages) > 1
        assert {one.text[0] for one in passages[1:]} == {letter[0]}
        assert not any(unicodedata.category(one.text[0]).startswith("M") for one in passages)


@pytest.mark.parametrize(
    "piece", ["x", "\n", " ", "word ", "东", "东。", "# x\n", "\n \n", "e\u0301", "\u0301", ".) "]
)
def test_the_time_grows_with_the_length_and_no_faster(piece: str) -> None:
    def seconds(letters: int) -> float:
        text = piece * (letters // len(piece))
        return min(_timed(text) for _ in range(3))

    assert seconds(400_000) < 40 * max(seconds(40_000), 1e-4)


def _timed(text: str) -> float:
    started = time.process_time()
    split_into_chunks(text)
    return time.process_time() - started


def test_what_is_embedded_is_the_title_and_the_passage() -> None:
    (passage,) = split_into_chunks("They sit on mats.\n")
    assert passage_text("On cats", passage) == "On cats\nThey sit on mats."
    assert passage_text("", passage) == "They sit on mats."
    assert passage_text("t" * 10_000, passage) == "t" * MAX_TITLE + "\nThey sit on mats."


def test_terms_are_stems_each_once() -> None:
    assert terms_of_chunk("Cats", "A dog chases dogs.").keys() == {stem("cat"), stem("dog"), stem("chase")}


def test_a_word_of_the_title_counts_more_than_one_of_the_text_and_one_said_again_more_than_one_said_once() -> None:
    terms = terms_of_chunk("Cats", "A dog chases dogs. " + "Nobody speaks here, " * 30)
    assert terms[stem("cat")] > terms[stem("dog")] > terms[stem("chase")] > 0


def test_a_word_counts_less_in_a_longer_passage_and_never_more_than_the_most() -> None:
    short, long = terms_of_chunk("", "cat"), terms_of_chunk("", "cat " + "filler words here " * 100)
    assert short[stem("cat")] > long[stem("cat")]
    assert terms_of_chunk("", "cat " * 100_000)[stem("cat")] < 1.9


def test_a_query_asks_for_each_stem_once_and_for_common_words_only_alone() -> None:
    assert terms_of_chunk_query("the cats and a cat's mats") == {stem(word): 1.0 for word in ("cat", "s", "mat")}
    assert terms_of_chunk_query("to be or not to be").keys() == {stem(word) for word in ("to", "be", "or", "not")}
    assert terms_of_chunk_query("?!") == {}
