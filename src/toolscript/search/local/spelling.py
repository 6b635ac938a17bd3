"""What a person meant to type: words nobody knows are read as the nearest word somebody knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from toolscript.model.words import STEM_SHARE, SURFACE_SHARE, terms_of_word, without_stop_words, words_of
from toolscript.search.local.index import LocalIndex, Rows, Scores, squashed

SHORTEST_CORRECTED = 4
NEAREST_WORD = 0.82
SWAPPED_LETTERS = 0.75
# A corrected word is a guess.
TRUST_IN_A_CORRECTION = 0.8

LONGEST_NAME_ASKED = 5
NEAREST_NAME = 86.0
ALL_BUT_EXACT, EXACT_BUT_FOR_CASE = 0.99, 0.995
MOST_NAMES = 8
MOST_CORRECTED = 4


@dataclass(frozen=True)
class Wanted:
    """A query as the word arm asks it. `meant` maps a misspelt word to the one it was read as."""

    words: tuple[str, ...]
    terms: Mapping[int, float]
    meant: Mapping[str, str]


def wanted(text: str, index: LocalIndex) -> Wanted:
    words = tuple(dict.fromkeys(without_stop_words(words_of(text))))
    wholes = {_whole(one) for one in text.split()}
    meant = _corrections([word for word in words if not _is_known(word, index)], index)
    terms: dict[int, float] = {}
    for word in words:
        trust = TRUST_IN_A_CORRECTION if word in meant else 1.0
        stem, surface = terms_of_word(meant.get(word, word))
        terms.setdefault(stem, STEM_SHARE * trust)
        terms.setdefault(surface, SURFACE_SHARE * trust)
    return Wanted(tuple(word for word in words if word not in wholes), terms, meant)


def _whole(run: str) -> str:
    """`readfile` of `read_file`: asked for like its parts, and no word a person said."""
    *parts, last = words_of(run) or [""]
    return last if parts and last == "".join(parts) else ""


def _is_known(word: str, index: LocalIndex) -> bool:
    return any(index.knows(term) for term in terms_of_word(word))


def _corrections(unknown: Sequence[str], index: LocalIndex) -> dict[str, str]:
    candidates = [word for word in unknown if len(word) >= SHORTEST_CORRECTED and not word.isdigit()]
    nearest = {word: _nearest(word, index) for word in candidates[:MOST_CORRECTED]}
    return {word: found for word, found in nearest.items() if found}


def _nearest(word: str, index: LocalIndex) -> str | None:
    """The nearest known word that is at most two letters longer or shorter."""
    known = [
        one for length in range(len(word) - 2, len(word) + 3) for one in index.words_by_length.get(length, ())
    ]
    found = process.extractOne(word, known, scorer=OSA.normalized_similarity, score_cutoff=SWAPPED_LETTERS)
    if found is None:
        return None
    nearest, likeness = str(found[0]), found[1]
    return nearest if likeness >= NEAREST_WORD or sorted(nearest) == sorted(word) else None


def name_likeness(text: str, index: LocalIndex, rows: Rows) -> Scores:
    """How much the query looks like each item's own name, 0 to 1; 1 only when it is the name to the letter.

    A name said within a sentence counts as well when it can be nothing else: `read_file`, `readFile`.
    """
    said = _names_said(text)
    likeness = _nearness([squashed(one) for one in said], index)
    for name in (text.strip(), *said):
        likeness[index.rows_named(name, of_any_case=True)] = EXACT_BUT_FOR_CASE
    for name in (text.strip(), *said):
        likeness[index.rows_named(name)] = 1.0
    return likeness[rows]


def _nearness(said: Sequence[str], index: LocalIndex) -> Scores:
    if not said or not len(index):
        return np.zeros(len(index))
    by_name = process.cdist(said, index.names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    by_full_name = process.cdist(said, index.full_names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    nearest = np.maximum(by_name, by_full_name).max(axis=0)
    return np.asarray(nearest / 100 * ALL_BUT_EXACT, dtype=np.float64)


def _names_said(text: str) -> list[str]:
    """The whole query when it is short enough to be a name, and its words that look like one."""
    words = text.split()
    parts = [one for one in words if len(words_of(one)) > 1] if len(words) > 1 else []
    whole = [text.strip()] if len(words) <= LONGEST_NAME_ASKED else []
    return [part for part in dict.fromkeys(whole + parts) if len(squashed(part)) > 1][:MOST_NAMES]
