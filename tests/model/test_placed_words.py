"""Where in a text as it was written each of its words stands."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.model.words import placed_words, words_of

TEXTS = st.text() | st.text(st.sampled_from("aB1_-./ éя東ไ\u0301\u0306½ﬁ０Ａｶ한\n"))


def read(text: str) -> list[tuple[str, str]]:
    return [(word, text[start:end]) for word, start, end in placed_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read it.", [("read", "Read"), ("it", "it")]),
        ("readFile", [("read", "read"), ("file", "File"), ("readfile", "readFile")]),
        ("_a-b_", [("a", "a"), ("b", "b"), ("ab", "a-b")]),
        ("caf\u00e9", [("cafe", "caf\u00e9")]),
        ("e\u0301tudes", [("etudes", "e\u0301tudes")]),
        ("ﬁne", [("fine", "ﬁne")]),
        ("東京都", [("東京", "東京"), ("京都", "京都")]),
        ("東 京", [("東", "東"), ("京", "京")]),
        ("x東京", [("x", "x"), ("東京", "東京")]),
        ("½", [("1", "½"), ("2", "½")]),
        ("?!", []),
    ],
)
def test_a_word_stands_where_it_was_written(text: str, words: list[tuple[str, str]]) -> None:
    assert read(text) == words


@given(TEXTS.map(lambda text: "".join(one for one in text if unicodedata.normalize("NFKD", one) == one)))
def test_words_with_places_are_the_words_without_them(text: str) -> None:
    plain = "".join(letter for letter in text if not unicodedata.category(letter).startswith("M"))
    assert [word for word, _, _ in placed_words(plain)] == words_of(plain)


@given(TEXTS)
def test_places_are_inside_the_text_and_hold_something(text: str) -> None:
    assert all(0 <= start < end <= len(text) for _, start, end in placed_words(text))
