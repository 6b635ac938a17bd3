"""The positions of words in the original text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.retrieval.terms import stems_with_positions, terms_of_word, words_of, words_with_positions

TEXTS = st.text() | st.text(st.sampled_from("aB1_-./ éя東ไ\u0301\u0306½ﬁ０Ａｶ한\n"))


def read(text: str) -> list[tuple[str, str]]:
    return [(word, text[start:end]) for word, start, end in words_with_positions(text)]


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
def test_a_word_has_its_position_in_the_text(text: str, words: list[tuple[str, str]]) -> None:
    assert read(text) == words


@given(TEXTS.map(lambda text: "".join(char for char in text if unicodedata.normalize("NFKD", char) == char)))
def test_words_with_positions_are_the_same_as_without(text: str) -> None:
    plain = "".join(letter for letter in text if not unicodedata.category(letter).startswith("M"))
    assert [word for word, _, _ in words_with_positions(plain)] == words_of(plain)


@given(TEXTS)
def test_positions_are_inside_the_text_and_not_empty(text: str) -> None:
    assert all(0 <= start < end <= len(text) for _, start, end in words_with_positions(text))


@given(TEXTS | st.text(st.sampled_from("aB1_-./ ,x")))
def test_a_plain_text_has_the_same_positions_inside_another_text(text: str) -> None:
    within = list(words_with_positions(f"{text} 東"))
    assert list(words_with_positions(text)) == [word for word in within if word[0] != "東" or word[1] < len(text)]


@given(TEXTS | st.text(st.sampled_from("ab "), min_size=80))
def test_only_the_requested_stems_come_at_the_positions_of_their_words(text: str) -> None:
    placed = [(terms_of_word(word)[0], start, end) for word, start, end in words_with_positions(text)]
    requested = {stem for stem, _, _ in placed[::2]}
    assert list(stems_with_positions(text, requested)) == [stem for stem in placed if stem[0] in requested]
