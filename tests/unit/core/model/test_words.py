"""Text becomes words with their positions, and words become terms."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.retrieval.terms import (
    MAX_WORD,
    STEM_SHARE,
    STOP_WORDS,
    SURFACE_SHARE,
    query_terms,
    split_identifier,
    stems_with_positions,
    terms_of_word,
    without_stop_words,
    words_of,
    words_with_positions,
)

TEXT = st.text() | st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read a File", ["read", "a", "file"]),
        ("read_file", ["read", "file", "readfile"]),
        ("readFile", ["read", "file", "readfile"]),
        ("ReadFile-v2", ["read", "file", "v2", "readfilev2"]),
        ("parseHTTPResponse", ["parse", "http", "response", "parsehttpresponse"]),
        ("HTTP", ["http"]),
        ("s3Bucket", ["s3", "bucket", "s3bucket"]),
        ("github.com/issues", ["github", "com", "issues", "githubcomissues"]),
        ("__init__", ["init"]),
        ("___ -- ...", []),
        ("", []),
        ("first,two;three", ["first", "two", "three"]),
        ("v1.2", ["v1", "2", "v12"]),
    ],
)
def test_identifiers_are_split_and_kept_whole(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("天気予報", ["天気", "気予", "予報"]),
        ("気", ["気"]),
        ("get天気now", ["get", "天気", "now"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("ไทย", ["ไท", "ทย"]),
        ("서울", ["서울"]),
    ],
)
def test_scripts_without_spaces_become_bigrams(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("café", "cafe"),
        ("cafe\u0301", "café"),
        ("Ångström", "angstrom"),
        ("STRASSE", "straße"),
        ("ｆｕｌｌｗｉｄｔｈ", "fullwidth"),
        ("ещё", "еще"),
        ("ﬁle", "file"),
    ],
)
def test_spellings_of_a_word_match(first: str, second: str) -> None:
    assert words_of(first) == words_of(second)


def test_the_russian_short_i_is_a_separate_letter() -> None:
    assert words_of("мой") == ["мой"]
    assert words_of("мой") != words_of("мои")


@pytest.mark.parametrize(
    ("first", "second"), [("files", "file"), ("running", "runs"), ("погода", "погоды"), ("прогнозы", "прогноз")]
)
def test_forms_of_a_word_share_the_stem_and_not_the_surface(first: str, second: str) -> None:
    (stem, surface), (other_stem, other_surface) = terms_of_word(first), terms_of_word(second)
    assert stem == other_stem
    assert surface != other_surface


def test_terms_never_change_without_a_new_version_of_words() -> None:
    """Every existing index contains these ids: when this fails, raise WORDS_VERSION."""
    assert terms_of_word("files") == (146017006, 4025456441)
    assert terms_of_word("погоды") == (2893665556, 3311712892)
    assert terms_of_word("天気") == (4204909179, 120874136)


def test_a_word_has_a_bounded_length() -> None:
    assert words_of("x" * 500) == ["x" * MAX_WORD]
    assert words_of("x" * MAX_WORD + " " + "y" * (MAX_WORD + 1)) == ["x" * MAX_WORD, "y" * MAX_WORD]


def test_stop_words_are_removed_unless_there_are_no_other_words() -> None:
    assert without_stop_words(["what", "is", "the", "weather"]) == ["weather"]
    assert without_stop_words(["what", "is", "this"]) == ["what", "is", "this"]
    assert without_stop_words([]) == []


def test_a_query_has_each_term_once_however_often_it_occurs() -> None:
    stem, surface = terms_of_word("mail")
    assert query_terms("mail mail MAIL, please") == {stem: STEM_SHARE, surface: SURFACE_SHARE}


@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize("text", ["", "?!…", "   ", "\0", "'; DROP TABLE items; --", "\ud800"])
def test_punctuation_marks_are_no_words(text: str) -> None:
    assert query_terms(text).keys() == {term for word in words_of(text) for term in terms_of_word(word)}
    assert all(word.isalnum() for word in words_of(text))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("readFile_v2", "read File v2"),
        ("parseHTTPResponse", "parse HTTP Response"),
        ("list-all.pods", "list all pods"),
        ("", ""),
    ],
)
def test_an_identifier_is_split_into_words(name: str, expected: str) -> None:
    assert split_identifier(name) == expected


@given(TEXT)
def test_any_text_has_words_that_are_short_and_lower_case(text: str) -> None:
    for word in words_of(text):
        assert 0 < len(word) <= MAX_WORD
        assert not any("A" <= char <= "Z" for char in word)


@given(TEXT)
def test_the_same_text_always_has_the_same_terms(text: str) -> None:
    terms = query_terms(text)
    terms_of_word.cache_clear()
    assert query_terms(text) == terms
    assert all(0 <= term < 2**32 for term in terms)


@given(st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4))
def test_an_identifier_has_the_same_words_however_it_is_joined(parts: list[str]) -> None:
    snake = words_of("_".join(parts))
    assert snake == [*parts, "".join(parts)]
    assert words_of("-".join(parts)) == snake
    assert words_of(parts[0] + "".join(part.capitalize() for part in parts[1:])) == snake


@given(st.lists(st.sampled_from([*sorted(STOP_WORDS), "mail", "send"])))
def test_stop_words_never_leave_an_empty_list_behind(words: list[str]) -> None:
    assert bool(without_stop_words(words)) == bool(words)


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
