"""How a text is split into chunks, and the terms of a chunk."""

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
    split_into_chunks,
    terms_of_chunk,
    terms_of_chunk_query,
    text_to_embed,
)
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.documents.model.document import join_chunks

pytestmark = pytest.mark.requirement("DOC-006")

MAX_LENGTH = int(MAX_LETTERS * (1 + SHORT_TAIL_SHARE))

FRAGMENTS = [
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
TEXTS = st.text() | st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.integers(1, 400)), max_size=12).map(
    lambda parts: "".join(fragment * times for fragment, times in parts)
)


def stem(word: str) -> int:
    return terms_of_word(word)[0]


@given(TEXTS)
def test_chunks_cover_the_whole_text_in_order_without_gaps(text: str) -> None:
    chunks = split_into_chunks(text)
    assert join_chunks(chunks) == text
    assert [part.number for part in chunks] == list(range(len(chunks)))
    assert [part.start for part in chunks] == [0, *(part.end for part in chunks[:-1])]
    assert [part.text for part in chunks] == [text[part.start : part.end] for part in chunks]


@given(TEXTS)
def test_no_chunk_is_too_long_or_empty_unless_the_text_is(text: str) -> None:
    chunks = split_into_chunks(text)
    assert max(len(part.text) for part in chunks) <= MAX_LENGTH
    assert all(part.text for part in chunks) or text == ""


def test_a_short_or_empty_text_is_one_chunk() -> None:
    assert [part.text for part in split_into_chunks("A cat.\n\nA dog.")] == ["A cat.\n\nA dog."]
    assert [(part.start, part.end) for part in split_into_chunks("")] == [(0, 0)]


def filled(letters: int) -> str:
    """Sentences of ten words on one line, with about this many letters."""
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
    starts = [part.text[:5] for part in split_into_chunks(filled(10 * MAX_LETTERS))]
    assert set(starts) == {"This "}


def test_a_text_of_words_is_cut_between_them() -> None:
    assert {part.text[:4] for part in split_into_chunks("word " * MAX_LETTERS)} == {"word"}


def test_a_short_rest_stays_with_the_previous_chunk() -> None:
    rest = "end" * (int(MAX_LETTERS * SHORT_TAIL_SHARE) // 3)
    assert len(split_into_chunks("x" * (MAX_LETTERS - 1) + " " + rest)) == 1
    assert len(split_into_chunks("x" * (MAX_LETTERS - 1) + " " + rest + "more" * 3)) == 2


def test_chunks_of_an_unspaced_script_are_short_enough_for_a_model() -> None:
    longest = max(len(part.text) for part in split_into_chunks("東京は日本の首都です" * 1_000))
    assert longest <= MAX_LENGTH / UNSPACED_COUNTS < MAX_LETTERS


@pytest.mark.parametrize("letter", ["e\u0301\u0323", "👩\u200d🚀", "नि", "각"])
def test_a_letter_is_never_parted_from_its_marks(letter: str) -> None:
    for shift in range(len(letter)):
        chunks = split_into_chunks("x" * shift + letter * MAX_LETTERS * 2)
        assert len(chunks) > 1
        assert {part.text[0] for part in chunks[1:]} == {letter[0]}
        assert not any(unicodedata.category(part.text[0]).startswith("M") for part in chunks)


@pytest.mark.parametrize(
    "fragment", ["x", "\n", " ", "word ", "东", "东。", "# x\n", "\n \n", "e\u0301", "\u0301", ".) "]
)
def test_the_time_grows_with_the_length_and_no_faster(fragment: str) -> None:
    def seconds(letters: int) -> float:
        text = fragment * (letters // len(fragment))
        return min(_timed(text) for _ in range(3))

    assert seconds(400_000) < 40 * max(seconds(40_000), 1e-4)


def _timed(text: str) -> float:
    started = time.process_time()
    split_into_chunks(text)
    return time.process_time() - started


def test_the_embedded_text_is_the_title_and_the_chunk() -> None:
    (chunk,) = split_into_chunks("They sit on mats.\n")
    assert text_to_embed("On cats", chunk) == "On cats\nThey sit on mats."
    assert text_to_embed("", chunk) == "They sit on mats."
    assert text_to_embed("t" * 10_000, chunk) == "t" * MAX_TITLE + "\nThey sit on mats."


def test_terms_are_stems_each_once() -> None:
    assert terms_of_chunk("Cats", "A dog chases dogs.").keys() == {stem("cat"), stem("dog"), stem("chase")}


def test_title_words_weigh_more_than_text_words_and_repeated_words_more_than_single_ones() -> None:
    terms = terms_of_chunk("Cats", "A dog chases dogs. " + "Nobody speaks here, " * 30)
    assert terms[stem("cat")] > terms[stem("dog")] > terms[stem("chase")] > 0


def test_a_word_weighs_less_in_a_longer_chunk_and_never_more_than_the_maximum() -> None:
    short, long = terms_of_chunk("", "cat"), terms_of_chunk("", "cat " + "filler words here " * 100)
    assert short[stem("cat")] > long[stem("cat")]
    assert terms_of_chunk("", "cat " * 100_000)[stem("cat")] < 1.9


def test_a_query_has_each_stem_once_and_stop_words_only_if_alone() -> None:
    assert terms_of_chunk_query("the cats and a cat's mats") == {stem(word): 1.0 for word in ("cat", "s", "mat")}
    assert terms_of_chunk_query("to be or not to be").keys() == {stem(word) for word in ("to", "be", "or", "not")}
    assert terms_of_chunk_query("?!") == {}
