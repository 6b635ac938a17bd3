"""Misspelt words are corrected to known ones; names are found in any spelling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from tests.unit.gateway.search.builders import (
    CALENDAR,
    FORECAST,
    ITEMS,
    READ_FILE,
    SEND_MAIL,
    WRITE_FILE,
    index_of,
    item,
)
from toolscript.core.retrieval.request import ACTIONS, VERBS
from toolscript.core.retrieval.spelling import MAX_CORRECTED, Vocabulary, corrections
from toolscript.gateway.index import EXACT_BUT_FOR_CASE, name_likeness

pytestmark = pytest.mark.requirement("TS-003")

INDEX = index_of()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("contens", "contents"),
        ("contnets", "contents"),
        ("electronnic", "electronic"),
        ("forecst", "forecast"),
        ("maild", None),
        ("mial", "mail"),
        ("fiel", "file"),
        ("qqqqqq", None),
        ("giraffe", None),
    ],
)
def test_an_unknown_word_is_corrected_to_the_nearest_known_one(typed: str, meant: str | None) -> None:
    assert corrections(typed, INDEX.vocabulary) == ({typed: meant} if meant else {})


@pytest.mark.parametrize("word", ["file", "files", "reading", "mail", "calendar", "weather"])
def test_a_known_word_is_not_corrected(word: str) -> None:
    assert corrections(word, INDEX.vocabulary) == {}


@pytest.mark.parametrize("typed", ["2032", "123456", "fil", "gti", "xyz"])
def test_numbers_and_short_words_are_never_corrected(typed: str) -> None:
    index = index_of((item("s", "find_2023", "git file 123457"), READ_FILE))
    assert corrections(typed, index.vocabulary) == {}


def test_a_cyrillic_word_is_corrected_and_stemmed_like_any_other() -> None:
    index = index_of((item("поезда", "расписание", "Показывает расписание поездов"), READ_FILE))
    assert corrections("распсание", index.vocabulary) == {"распсание": "расписание"}
    assert corrections("поездами", index.vocabulary) == {}


def test_scripts_without_spaces_are_not_corrected() -> None:
    index = index_of((item("図書館", "検索", "本を検索する"), READ_FILE))
    assert corrections("本を検索", index.vocabulary) == {}


def test_only_the_first_few_unknown_words_are_corrected() -> None:
    typos = ["contens", "forecst", "electronnic", "lettter", "appointmnt", "sentencs"]
    assert list(corrections(" ".join(typos), INDEX.vocabulary)) == typos[:MAX_CORRECTED]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40))
def test_any_text_can_be_spelt_and_compared(text: str) -> None:
    vocabulary = {word for words in INDEX.vocabulary.words_by_length.values() for word in words}
    meant = corrections(text, INDEX.vocabulary)
    assert set(meant.values()) <= vocabulary | {*VERBS, *frozenset().union(*ACTIONS.values())}
    assert not set(meant) & vocabulary
    likeness = name_likeness(text, INDEX, INDEX.rows(None))
    assert ((likeness >= 0) & (likeness <= 1)).all()


Words = st.text("abcdyzц日🎉", min_size=1, max_size=9)


@settings(max_examples=300, deadline=None)
@given(Words, st.lists(Words, max_size=8), st.integers(0, 4))
def test_no_word_within_so_many_edits_is_left_out(word: str, known: list[str], max_edits: int) -> None:
    near = Vocabulary(known).words_near(word, max_edits)
    within = {
        other for other in known if OSA.distance(word, other) <= max_edits and abs(len(other) - len(word)) <= 2
    }
    assert within <= set(near) <= set(known)
    assert [*map(len, near)] == sorted(map(len, near)), "the shortest first"


def test_words_of_other_letters_are_left_out() -> None:
    assert Vocabulary(["mail", "file", "main", "zzzz"]).words_near("mial", 1) == ["mail", "main"]


def likeness(text: str) -> dict[str, float]:
    scores = name_likeness(text, INDEX, INDEX.rows(None))
    return {item_.name: float(value) for item_, value in zip(ITEMS, scores, strict=True)}


@pytest.mark.parametrize("text", ["read_file", "files__read_file", " read_file ", "please use read_file on a.txt"])
def test_an_exact_name_has_the_highest_similarity(text: str) -> None:
    assert likeness(text)[READ_FILE.name] == 1.0


@pytest.mark.parametrize("text", ["READ_FILE", "Read_File", "Files__Read_File", "try Read_File now"])
def test_a_name_in_another_case_is_almost_exact(text: str) -> None:
    assert likeness(text)[READ_FILE.name] == EXACT_BUT_FOR_CASE


@pytest.mark.parametrize("text", ["readFile", "read-file", "read.file", "read file", "filesReadFile"])
def test_a_name_with_other_marks_between_its_words_is_nearly_exact(text: str) -> None:
    assert 0.95 < likeness(text)[READ_FILE.name] < EXACT_BUT_FOR_CASE


def test_near_names_are_ordered_by_how_near_they_are() -> None:
    far, nearer, nearest = (likeness(text)[SEND_MAIL.name] for text in ("send_mailxx", "snd_mail", "send_mailx"))
    assert 0 < far < nearer < 1
    assert 0 < nearer < nearest < 1


def test_a_name_that_lacks_a_letter_is_nearest_to_its_own() -> None:
    scores = likeness("read_fil")
    assert max(scores, key=lambda name: scores[name]) == READ_FILE.name
    assert scores[READ_FILE.name] > 0.9
    assert scores[FORECAST.name] == 0.0


def test_words_of_a_sentence_are_not_names() -> None:
    """`bash` within a sentence may be any word; an unmistakable name has more than one part."""
    assert likeness("i would like to bash my head on it")["bash"] == 0.0
    assert likeness("bash")["bash"] == 1.0


def test_only_the_requested_rows_are_compared() -> None:
    rows = INDEX.rows(None)[[ITEMS.index(WRITE_FILE)]]
    assert name_likeness("write_file", INDEX, rows).tolist() == [1.0]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("raed the file", {"raed": "read"}),
        ("serach fiels", {"serach": "search", "fiels": "files"}),
        ("retart it", {"retart": "restart"}),
        ("crate an event", {"crate": "create"}),
        ("clcik on it", {"clcik": "click"}),
    ],
)
def test_slips_and_a_missing_letter_are_corrected_to_the_likelier_word(typed: str, meant: dict[str, str]) -> None:
    index = index_of((READ_FILE, item("a", "search_files", "Search files and fields"), CALENDAR))
    assert corrections(typed, index.vocabulary) == meant


@pytest.mark.parametrize("typed", ["a garage", "toggle it", "a flight", "picky cats"])
def test_a_word_that_is_only_like_another_is_not_corrected(typed: str) -> None:
    index = index_of((item("a", "b", "get the ticker of a page, faster"), CALENDAR))
    assert corrections(typed, index.vocabulary) == {}
