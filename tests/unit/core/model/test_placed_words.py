"""Where in a text as it was written each of its words stands."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.retrieval.terms import placed_stems, placed_words, terms_of_word, words_of

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


@given(TEXTS | st.text(st.sampled_from("aB1_-./ ,x")))
def test_a_plain_text_has_the_same_words_in_the_same_places_as_within_another(text: str) -> None:
    within = list(placed_words(f"{text} 東"))
    assert list(placed_words(text)) == [one for one in within if one[0] != "東" or one[1] < len(text)]


@given(TEXTS | st.text(st.sampled_from("ab "), min_size=80))
def test_stems_stand_where_their_words_do_and_only_those_that_are_wanted(text: str) -> None:
    placed = [(terms_of_word(word)[0], start, end) for word, start, end in placed_words(text)]
    wanted = {stem for stem, _, _ in placed[::2]}
    assert list(placed_stems(text, wanted)) == [one for one in placed if one[0] in wanted]
