"""Split a document's text into chunks: small enough for one vector, cut where a reader would pause."""

import re
import unicodedata
from collections.abc import Mapping

from toolscript.core.item_text import K1, Field, stem_terms_of_fields
from toolscript.core.retrieval.terms import UNSPACED, terms_of_word, without_stop_words, words_of
from toolscript.core.text import TextChunk

# Part of the index fingerprint: raise it whenever a text is split, embedded or indexed differently.
CHUNKING_VERSION = 1

# Characters of a chunk: a shorter one contains fewer of a query's words, and a model truncates a longer one.
# A character of an unspaced script carries as much meaning, and as many tokens, as three others.
MAX_LETTERS = 1_600
UNSPACED_COUNTS = 3
# The splitter looks for a border in the second half of a chunk; a tail shorter than this joins the chunk before.
MIN_SHARE = 0.5
SHORT_TAIL_SHARE = 0.25
MAX_TITLE = 300
# The maximum weight of a word, however often it occurs.
MAX_WORD = K1 + 1
MAX_MARKS = 32

FIELDS: Mapping[str, Field] = {"title": Field(2.0, 0.3, 14.0), "text": Field(1.0, 0.75, 140.0)}

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_HEADING = re.compile(r"(?<=\n)(?=#{1,6} )")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_LINE_END = re.compile(r"\n\s*")
SENTENCE_END = re.compile(r"[.!?…؟।។]['\")\]»’”]*\s+|[。！？][」』）”’]*\s*")
WORD_END = re.compile(r"\s+")
# The least harmful place to cut comes first.
_BORDERS = (_HEADING, _PARAGRAPH_END, _LINE_END, SENTENCE_END, WORD_END)
_JOINER = "\u200d"


def split_into_chunks(text: str) -> list[TextChunk]:
    """Return the text as chunks, in order and without gaps. An empty text is one chunk, found by its title."""
    chunks: list[TextChunk] = []
    start = 0
    while start < len(text) or not chunks:
        end = _end_of_chunk(text, start)
        chunks.append(TextChunk(len(chunks), start, end, text[start:end]))
        start = end
    return chunks


def text_to_embed(title: str, chunk: TextChunk) -> str:
    """Return the text to embed: a chunk without its title often does not name its subject."""
    return f"{title[:MAX_TITLE]}\n{chunk.text}".strip()


def terms_of_chunk(title: str, text: str) -> dict[int, float]:
    """Return the chunk as a sparse vector: BM25F saturation per stem; the query adds the IDF."""
    words = {"title": words_of(title[:MAX_TITLE]), "text": without_stop_words(words_of(text))}
    return stem_terms_of_fields(words, FIELDS)


def terms_of_chunk_query(text: str) -> dict[int, float]:
    """Return the stems of a query, each with weight 1 however often it occurs."""
    return {terms_of_word(word)[0]: 1.0 for word in without_stop_words(words_of(text))}


def _end_of_chunk(text: str, start: int) -> int:
    maximum = _max_length(text[start : start + MAX_LETTERS])
    if len(text) - start <= maximum + int(maximum * SHORT_TAIL_SHARE):
        return len(text)
    minimum, end = start + int(maximum * MIN_SHARE), start + maximum
    for border in _BORDERS:
        cuts = [match.end() for match in border.finditer(text, minimum, end)]
        if cuts:
            return cuts[-1]
    return between_letters(text, end)


def _max_length(ahead: str) -> int:
    if ahead.isascii():
        return MAX_LETTERS
    share = sum(map(len, _UNSPACED_RUN.findall(ahead))) / len(ahead)
    return int(MAX_LETTERS / (1 + share * (UNSPACED_COUNTS - 1)))


def between_letters(text: str, cut: int, minimum: int = 0) -> int:
    """Return the last place to cut that keeps a letter and its combining marks (up to MAX_MARKS) together."""
    earliest = max(minimum, cut - MAX_MARKS)
    return next(
        (index for index in range(cut, earliest, -1) if not _is_single_letter(text[index - 1 : index + 1])), cut
    )


def _is_single_letter(pair: str) -> bool:
    return _JOINER in pair or unicodedata.category(pair[-1]).startswith("M")
