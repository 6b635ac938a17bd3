"""A document's text, cut into passages: small enough for one vector, and cut where a reader would pause."""

import re
import unicodedata
from collections.abc import Mapping

from toolscript.core.item_text import K1, Field, stem_terms_of_fields
from toolscript.core.retrieval.terms import UNSPACED, terms_of_word, without_stop_words, words_of
from toolscript.core.text import Passage

# All of it is part of the index fingerprint: raise it whenever a text is cut, embedded or indexed differently.
PASSAGES_VERSION = 1

# Letters of a passage: a shorter one has fewer of a query's words, and of a longer one a model reads but a part.
# One of an unspaced script says as much, and costs a model as much, as three others.
MAX_LETTERS = 1_600
UNSPACED_COUNTS = 3
# A border is looked for in the second half; what is left over and shorter than this joins the passage before it.
MIN_SHARE = 0.5
SHORT_TAIL_SHARE = 0.25
MAX_TITLE = 300
# What a word counts at most, however often it comes.
MAX_WORD = K1 + 1
MAX_MARKS = 32

FIELDS: Mapping[str, Field] = {"title": Field(2.0, 0.3, 14.0), "text": Field(1.0, 0.75, 140.0)}

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_HEADING = re.compile(r"(?<=\n)(?=#{1,6} )")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_LINE_END = re.compile(r"\n\s*")
SENTENCE_END = re.compile(r"[.!?…؟।។]['\")\]»’”]*\s+|[。！？][」』）”’]*\s*")
WORD_END = re.compile(r"\s+")
# Where a cut hurts least, first.
_BORDERS = (_HEADING, _PARAGRAPH_END, _LINE_END, SENTENCE_END, WORD_END)
_JOINER = "\u200d"


def split_into_chunks(text: str) -> list[Passage]:
    """All of the text, in order and without gaps. A text of nothing is one passage: its title can be found."""
    passages: list[Passage] = []
    start = 0
    while start < len(text) or not passages:
        end = _end_of_passage(text, start)
        passages.append(Passage(len(passages), start, end, text[start:end]))
        start = end
    return passages


def passage_text(title: str, passage: Passage) -> str:
    """What is embedded: a passage alone often does not say what it is about."""
    return f"{title[:MAX_TITLE]}\n{passage.text}".strip()


def terms_of_chunk(title: str, text: str) -> dict[int, float]:
    """The passage as a sparse vector: BM25F saturation per stem; how rare a word is comes with the query."""
    words = {"title": words_of(title[:MAX_TITLE]), "text": without_stop_words(words_of(text))}
    return stem_terms_of_fields(words, FIELDS)


def terms_of_chunk_query(text: str) -> dict[int, float]:
    """The stems a query asks for, each once however often it is said."""
    return {terms_of_word(word)[0]: 1.0 for word in without_stop_words(words_of(text))}


def _end_of_passage(text: str, start: int) -> int:
    maximum = _room(text[start : start + MAX_LETTERS])
    if len(text) - start <= maximum + int(maximum * SHORT_TAIL_SHARE):
        return len(text)
    minimum, end = start + int(maximum * MIN_SHARE), start + maximum
    for border in _BORDERS:
        cuts = [match.end() for match in border.finditer(text, minimum, end)]
        if cuts:
            return cuts[-1]
    return between_letters(text, end)


def _room(ahead: str) -> int:
    if ahead.isascii():
        return MAX_LETTERS
    share = sum(map(len, _UNSPACED_RUN.findall(ahead))) / len(ahead)
    return int(MAX_LETTERS / (1 + share * (UNSPACED_COUNTS - 1)))


def between_letters(text: str, cut: int, minimum: int = 0) -> int:
    """Where to cut at the latest: a letter and its marks stay together, if they are not absurdly many."""
    earliest = max(minimum, cut - MAX_MARKS)
    return next(
        (index for index in range(cut, earliest, -1) if not _is_one_letter(text[index - 1 : index + 1])), cut
    )


def _is_one_letter(two: str) -> bool:
    return _JOINER in two or unicodedata.category(two[-1]).startswith("M")
