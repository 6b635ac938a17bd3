"""Which window of a chunk is the snippet, and what is highlighted in it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.chunking import terms_of_chunk_query
from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.core.text import TextChunk
from toolscript.documents.hydration import snippet
from toolscript.documents.model.answer import Snippet

pytestmark = pytest.mark.requirement("DOC-001")

BEFORE = 1_000

LETTERS = "cat dog. \n東京は。ไทยe\u0301_-Ab!<b>👩\u200d🚀"
TEXTS = st.text(max_size=300) | st.text(st.sampled_from(LETTERS), max_size=300)
QUERIES = st.text(max_size=20) | st.sampled_from(["cat", "dog cat", "東京", "東京 dog", "Ab", "ไทย", "b"])


def snippet_of(text: str, query: str, max_chars: int = 240, **idf: float) -> Snippet:
    idfs = terms_of_chunk_query(query) | {terms_of_word(word)[0]: rare for word, rare in idf.items()}
    return snippet(TextChunk(3, BEFORE, BEFORE + len(text), text), idfs, max_chars)


def marked(text: str, query: str, max_chars: int = 240, **idf: float) -> str:
    """Return the window with highlights in brackets."""
    result = snippet_of(text, query, max_chars, **idf)
    window = result.text
    for start, end in reversed(result.highlights):
        window = f"{window[:start]}[{window[start:end]}]{window[end:]}"
    return window


@given(TEXTS, QUERIES, st.integers(1, 320))
def test_a_window_is_the_text_at_its_offsets_and_no_longer_than_requested(
    text: str, query: str, max_chars: int
) -> None:
    result = snippet_of(text, query, max_chars)
    assert result.text == text[result.start - BEFORE : result.end - BEFORE]
    assert len(result.text) <= max_chars
    assert result.text == result.text.strip()
    assert bool(result.text) == bool(text.strip())


@given(TEXTS, QUERIES, st.integers(1, 320))
def test_highlights_are_words_of_the_query_in_order_and_apart(text: str, query: str, max_chars: int) -> None:
    result = snippet_of(text, query, max_chars)
    stems = terms_of_chunk_query(query).keys()
    edges = [edge for highlight in result.highlights for edge in highlight]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(result.text) for start, end in result.highlights)
    for start, end in result.highlights:
        assert stems & {terms_of_word(word)[0] for word in words_of(result.text[start:end])}


@given(TEXTS, st.integers(4, 320))
def test_a_window_has_a_word_of_the_query_if_one_in_the_chunk_fits(text: str, max_chars: int) -> None:
    result = snippet_of(f"{text} cat {text}", "cat", max_chars)
    assert result.highlights


@given(TEXTS, QUERIES)
def test_a_chunk_that_fits_is_shown_whole(text: str, query: str) -> None:
    assert snippet_of(text, query, 300).text == text.strip()


FILLER = "Nothing of any interest is said in this long sentence. " * 10


def test_the_window_has_most_words_of_the_query() -> None:
    text = f"A cat. {FILLER}A cat has a red hat. {FILLER}A hat."
    assert marked(text, "cats with red hats", 30) == "A [cat] has a [red] [hat]."


def test_a_rare_word_counts_more_than_two_common_ones() -> None:
    text = f"{FILLER}A cat has a hat. {FILLER}One axolotl lives here. {FILLER}"
    assert marked(text, "", 25, cat=1.0, hat=1.0, axolotl=5.0) == "One [axolotl] lives here."
    assert marked(text, "", 25, cat=3.0, hat=3.0, axolotl=5.0) == "A [cat] has a [hat]."


def test_words_without_statistics_are_found() -> None:
    assert marked(f"{FILLER}An axolotl. {FILLER}", "", 15, axolotl=0.0) == "An [axolotl]."


def test_without_a_common_word_the_window_is_the_beginning() -> None:
    result = snippet_of(f"  {FILLER}", "axolotl", 60)
    assert (result.text, result.start) == ("Nothing of any interest is said in this long sentence.", BEFORE + 2)
    assert result.highlights == ()


def test_a_window_begins_and_ends_with_sentences_where_it_can() -> None:
    text = "First one here. Then the cat came in. It left again. Nobody saw it, and nobody will."
    assert marked(text, "cat", 40) == "Then the [cat] came in. It left again."
    assert marked(text, "cat", 24) == "Then the [cat] came in."


def test_a_window_at_the_end_of_a_chunk_extends_backwards() -> None:
    text = f"{FILLER}One more thing. The end has a cat."
    assert marked(text, "cat", 60) == "One more thing. The end has a [cat]."


def test_a_window_never_begins_or_ends_within_a_word_that_fits() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"
    for max_chars in range(7, len(text)):
        window = snippet_of(text, "zeta", max_chars).text
        assert "zeta" in window
        assert set(window.split()) <= set(text.split())


def test_a_word_that_does_not_fit_is_cut_and_not_highlighted() -> None:
    assert snippet_of("supercalifragilistic", "supercalifragilistic", 5) == Snippet("super", BEFORE, BEFORE + 5)


def test_text_is_returned_without_escaping() -> None:
    assert marked("A <b>cat</b> & <script>", "cat script") == "A <b>[cat]</b> & <[script]>"


@pytest.mark.parametrize(
    ("text", "query", "marks"),
    [
        ("Cats, CAT and cat's", "cat", "[Cats], [CAT] and [cat]'s"),
        ("readFile of read_files", "file", "read[File] of read_[files]"),
        ("readFile", "read_file", "[readFile]"),
        ("Un café, cafe\u0301 noir", "cafe", "Un [café], [cafe\u0301] noir"),
        ("東京都は日本の首都です", "日本の首都", "東京都は[日本の首都]です"),
        ("東京 大阪", "大阪", "東京 [大阪]"),
        ("東京大阪", "東京 大阪", "[東京][大阪]"),
        ("Новые книги", "книга", "Новые [книги]"),
        ("ภาษาไทย", "ไทย", "ภาษา[ไทย]"),
    ],
)
def test_highlights_in_every_script(text: str, query: str, marks: str) -> None:
    assert marked(text, query) == marks


def test_a_window_of_an_unspaced_script_is_filled() -> None:
    text = "とても大きい街でたくさんの人が住んでいます" * 20
    result = snippet_of(f"{text}東京{text}", "東京", 50)
    assert len(result.text) == 50
    assert 10 < result.highlights[0][0] < 30


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("fragment", ["cat ", "cat. ", "cat", "東京", "\n", "a_cat-", " "])
def test_the_time_grows_with_the_length_and_no_faster(fragment: str) -> None:
    def seconds(letters: int) -> float:
        text = fragment * (letters // len(fragment))
        return min(_timed(text) for _ in range(3))

    # The text is thirty times as long; quadratic time would be nine hundred times.
    assert seconds(300_000) < 200 * max(seconds(10_000), 1e-3)


def _timed(text: str) -> float:
    started = time.process_time()
    snippet_of(text, "cat 東京")
    return time.process_time() - started
