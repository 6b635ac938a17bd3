"""Text to words to term ids, for sparse (BM25) retrieval.

Any script: identifiers are split at punctuation and camelCase with the whole kept too, English and Russian
words are stemmed, and scripts written without spaces become bigrams. Every word yields two terms, its stem
and its surface form; a hit on both counts more than a hit on the stem alone.
"""

import hashlib
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

# Part of the index fingerprint: raise it whenever a change here changes the terms of any text.
WORDS_VERSION = 1

STEM_SHARE, SURFACE_SHARE = 0.65, 0.35
MAX_WORD = 64
SHORT = 1_000

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "she",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "too",
        "us",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "please",
        "want",
        "need",
        "like",
        "also",
        "using",
        "via",
    ]
)

UNSPACED = (
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"  # CJK
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\U00020000-\U0003134f"
)
_COMPOUND = re.compile(rf"[^\W{UNSPACED}]+(?:[_\-./][^\W{UNSPACED}]+)*|[{UNSPACED}]+")
_SEGMENT = re.compile(r"[^\W_]+")
# The same for text that is not normalized, where a combining accent may follow its letter.
_LETTER = rf"[^\W{UNSPACED}][\u0300-\u036f]*"
_WRITTEN_COMPOUND = re.compile(rf"(?:{_LETTER})+(?:[_\-./](?:{_LETTER})+)*|[{UNSPACED}]+")
_WRITTEN_ASCII = re.compile(r"\w+(?:[-./]\w+)*", re.ASCII)
_WRITTEN_SEGMENT = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[A-Z][a-z])")
_IS_UNSPACED = re.compile(rf"[{UNSPACED}]")
# A word with its start and end.
WordPosition = tuple[str, int, int]

_ENGLISH, _RUSSIAN = SnowballStemmer("english"), SnowballStemmer("russian")


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, lower case, identifiers both whole and in parts."""
    return list(_words_of_short(text)) if len(text) <= SHORT else _words_of(text)


@lru_cache(maxsize=512)
def _words_of_short(text: str) -> tuple[str, ...]:
    """Cached: several stages split the same request into words."""
    return tuple(_words_of(text))


def _words_of(text: str) -> list[str]:
    return [word[:MAX_WORD] for run in _COMPOUND.findall(_normal(text)) for word in _words_of_run(run)]


def words_by_run(text: str) -> list[tuple[str, ...]]:
    """Return the words of each run of a text; those of an identifier are its parts, and the whole as the last."""
    return [tuple(word[:MAX_WORD] for word in _words_of_run(run)) for run in _COMPOUND.findall(_normal(text))]


def words_with_positions(text: str) -> Iterator[WordPosition]:
    """Yield the words of a text, each with its start and end in the original text."""
    for run in _runs_in(text):
        for word, start, end in _words_in_run(run.group()):
            yield word, run.start() + start, run.start() + end


def stems_with_positions(text: str, stems: Container[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the occurrences of these stems with start and end. Most words are others, and come from a cache."""
    for run in _runs_in(text):
        for stem, start, end in _stems_in(run.group()):
            if stem in stems:
                yield stem, run.start() + start, run.start() + end


def _runs_in(text: str) -> Iterator[re.Match[str]]:
    """Find runs; for ASCII text the simpler expression finds the same in a third of the time."""
    return (_WRITTEN_ASCII if text.isascii() else _WRITTEN_COMPOUND).finditer(text)


def _stems_in(run: str) -> Sequence[tuple[int, int, int]]:
    """Return the stems of a run; long runs seldom repeat and are not cached."""
    return _stems_in_short(run) if len(run) <= MAX_WORD else _stems_of(_words_in_run(run))


@lru_cache(maxsize=100_000)
def _stems_in_short(run: str) -> Sequence[tuple[int, int, int]]:
    return _stems_of(_words_in_run(run))


def _stems_of(positions: Iterable[WordPosition]) -> Sequence[tuple[int, int, int]]:
    return tuple((terms_of_word(word)[0], start, end) for word, start, end in positions)


def _words_in_run(run: str) -> Iterator[WordPosition]:
    if is_plain(run):
        yield run.lower()[:MAX_WORD], 0, len(run)
        return
    is_unspaced = _IS_UNSPACED.match(run)
    places = list(_places_of_bigrams(0, len(run)) if is_unspaced else _places_of_parts(run))
    for start, end in places:
        yield from ((word, start, end) for word in _words_of_part(run[start:end]))
    if len(places) > 1 and not is_unspaced:
        whole = "".join(run[start:end] for start, end in places)
        yield _normal(whole).casefold()[:MAX_WORD], places[0][0], places[-1][1]


def split_identifier(name: str) -> str:
    """Split an identifier into words: `readFile_v2` becomes `read File v2`."""
    return " ".join(part for segment in _SEGMENT.findall(_normal(name)) for part in _CAMEL.split(segment))


def without_stop_words(words: list[str]) -> list[str]:
    """Remove stop words, unless there are no other words."""
    return [word for word in words if word not in STOP_WORDS] or words


@lru_cache(maxsize=200_000)
def terms_of_word(word: str) -> tuple[int, int]:
    """Return the ids of a word's stem and of its surface form."""
    return _term_id("s:" + _stem(word)), _term_id("w:" + word)


def query_terms(text: str) -> dict[int, float]:
    """Return the terms of a query, each counted once however often it occurs."""
    terms: dict[int, float] = {}
    for word in without_stop_words(words_of(text)):
        stem, surface = terms_of_word(word)
        terms[stem], terms[surface] = STEM_SHARE, SURFACE_SHARE
    return terms


def _normal(text: str) -> str:
    # Combining accents are folded so that "café" and "cafe" match; other marks belong to their script.
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    folded = "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f" or char == "\u0306")
    return unicodedata.normalize("NFKC", folded)


def _words_of_run(run: str) -> Iterator[str]:
    if is_plain(run):
        yield run.lower()
        return
    if _IS_UNSPACED.match(run):
        yield from _bigrams(run)
        return
    segments = _SEGMENT.findall(run)
    parts = [part for segment in segments for part in _CAMEL.split(segment)]
    yield from (part.casefold() for part in parts)
    if len(parts) > 1:
        yield "".join(parts).casefold()


def is_plain(run: str) -> bool:
    """Return whether the run is a single word without parts, as nearly all are."""
    return run.isascii() and run.isalpha() and run[1:].islower()


def _places_of_bigrams(start: int, end: int) -> Iterator[tuple[int, int]]:
    yield from ((index, min(index + 2, end)) for index in range(start, max(end - 1, start + 1)))


def _places_of_parts(run: str) -> Iterator[tuple[int, int]]:
    for segment in _WRITTEN_SEGMENT.finditer(run):
        start = segment.start()
        for camel in _CAMEL.finditer(segment.group()):
            yield start, segment.start() + camel.start()
            start = segment.start() + camel.start()
        yield start, segment.end()


@lru_cache(maxsize=20_000)
def _words_of_part(part: str) -> tuple[str, ...]:
    return (part.casefold()[:MAX_WORD],) if part.isascii() else tuple(_words_of(part))


def _bigrams(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(len(run) - 1)] or [run]


def _stem(word: str) -> str:
    if word.isascii():
        return str(_ENGLISH.stem_word(word))
    if "\u0400" <= word[0] <= "\u04ff":
        return str(_RUSSIAN.stem_word(word))
    return word


def _term_id(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=4).digest(), "little")
