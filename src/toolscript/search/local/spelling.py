"""What a person meant to type: words nobody knows are read as the nearest word somebody knows."""

from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from toolscript.model.words import terms_of_word, without_stop_words, words_of
from toolscript.search.local.index import LocalIndex, Rows, Scores, squashed
from toolscript.search.ranking.values import without_values

SHORTEST_CORRECTED = 4
NEAREST_WORD = 0.82
SWAPPED_LETTERS = 0.75

LONGEST_NAME_ASKED = 5
NEAREST_NAME = 86.0
ALL_BUT_EXACT, EXACT_BUT_FOR_CASE = 0.99, 0.995
MOST_NAMES = 8
MOST_CORRECTED = 4


def corrections(text: str, index: LocalIndex) -> dict[str, str]:
    """The words nobody knows, each with the nearest that somebody does. A value is not misspelt, it is a value."""
    words = dict.fromkeys(without_stop_words(words_of(without_values(text))))
    return _corrections([word for word in words if not _is_known(word, index)], index)


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
