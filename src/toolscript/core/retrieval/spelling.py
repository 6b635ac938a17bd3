"""Spelling: misspelt words and loan words of a request, each with the word of the catalog that it is like."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, cached_property

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from toolscript.core.retrieval.language import foreign_language
from toolscript.core.retrieval.request import ACTIONS, VERBS, is_english, strip_literals
from toolscript.core.retrieval.terms import terms_of_word, without_stop_words, words_of
from toolscript.core.retrieval.verdict import CosineScale

# The payload fields whose words are the vocabulary of an index.
WORD_FIELDS = ("server", "name", "description")

MIN_CORRECTED = 4
NEAREST_WORD = 0.82
SWAPPED_LETTERS = 0.75
# Swapped or doubled letters are a slip of the fingers: so much less than an edit.
SLIP = 0.3
MAX_ALIKE = 8
_DOUBLED = re.compile(r"(.)\1+")
MAX_CORRECTED = 4
# A word that shares this part of its trigrams with a word of the catalog is likely to be the same loan word; with
# a smaller part, if it shares this part of its letters in their order: `Kalender`, `calendar`.
LIKELY_LOAN, MAYBE_LOAN, LETTERS_OF_LOAN = 0.45, 0.3, 0.75
MAX_LOANS = 8


class Vocabulary:
    """The words of a catalog. `terms` are the ids of their stems and surface forms, and perhaps of more words."""

    def __init__(self, words: Iterable[str] = (), terms: Container[int] = ()) -> None:
        self.words = frozenset(words)
        self.terms = terms
        self._words_near: dict[int, _NearWords] = {}

    @classmethod
    def of_texts(cls, texts: Iterable[str], terms: Container[int]) -> "Vocabulary":
        return cls((word for text in texts for word in words_of(text)), terms)

    @classmethod
    def merged(cls, parts: "Sequence[Vocabulary]") -> "Vocabulary":
        if len(parts) == 1:
            return parts[0]
        words = frozenset[str]().union(*(part.words for part in parts))
        return cls(words, _AnyOf([part.terms for part in parts]))

    def prepared(self) -> "Vocabulary":
        """Build the lazy properties, so that no search has to."""
        _ = self.words_by_length, self.trigrams
        return self

    def has_unknown(self, text: str) -> bool:
        """Return whether a text has words to be corrected; most have none."""
        words = without_stop_words(words_of(strip_literals(text)))
        return not all(self.knows(word) or is_english(word) for word in words)

    def knows(self, word: str) -> bool:
        return any(term in self.terms for term in terms_of_word(word))

    @cached_property
    def words_by_length(self) -> Mapping[int, Sequence[str]]:
        """All words by length, sorted."""
        by_length: dict[int, list[str]] = {}
        for word in sorted(self.words):
            by_length.setdefault(len(word), []).append(word)
        return by_length

    def words_near(self, word: str, max_edits: int) -> list[str]:
        """Return words at most two letters longer or shorter, the shortest first, without most of those that need
        more edits."""
        if len(word) not in self._words_near:
            lengths = range(len(word) - 2, len(word) + 3)
            words = [near for length in lengths for near in self.words_by_length.get(length, ())]
            self._words_near[len(word)] = _NearWords(words)
        return self._words_near[len(word)].within(word, max_edits)

    @cached_property
    def trigrams(self) -> "WordTrigrams":
        """The words by trigram, to find loan words; built when the first one is looked for."""
        words = [word for of_length in self.words_by_length.values() for word in of_length]
        return WordTrigrams([word for word in words if len(word) >= MIN_CORRECTED and word.isalpha()])


class _NearWords:
    """Words with the letters of each as bits: whether two words may be alike is told by these in a fraction of the
    time that it takes to count edits."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._letters = np.array([_letters_of(word) for word in words], dtype=np.uint64)

    def within(self, word: str, max_edits: int) -> list[str]:
        """Leave out words that need more edits, by their letters: an edit removes at most one, and adds one."""
        letters = np.uint64(_letters_of(word))
        removed, added = np.bitwise_count(letters & ~self._letters), np.bitwise_count(self._letters & ~letters)
        return [self._words[row] for row in np.flatnonzero(np.maximum(removed, added) <= max_edits).tolist()]


def _letters_of(word: str) -> int:
    """Return the letters of a word as bits. Some share a bit: words may differ by more letters than bits."""
    return sum({1 << ord(letter) % 64 for letter in word})


class _AnyOf:
    """What is in any of several containers."""

    def __init__(self, parts: Sequence[Container[int]]) -> None:
        self._parts = parts

    def __contains__(self, term: object) -> bool:
        return any(term in part for part in self._parts)


class WordTrigrams:
    """Finds the most similar of many words by trigrams, those at its start and end among them."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        ids: dict[str, list[int]] = {}
        trigrams = [_trigrams(word) for word in words]
        for row, of_word in enumerate(trigrams):
            for trigram in of_word:
                ids.setdefault(trigram, []).append(row)
        self._rows = {trigram: np.array(rows) for trigram, rows in ids.items()}
        self._counts = np.array([len(of_word) for of_word in trigrams])

    def likely_loan(self, word: str) -> str | None:
        """Return the word with the highest share of common trigrams (Dice) that is likely to be the same word."""
        trigrams = _trigrams(word)
        rows = [self._rows[trigram] for trigram in trigrams if trigram in self._rows]
        if not rows:
            return None
        common = np.bincount(np.concatenate(rows), minlength=len(self._words))
        shares = 2 * common / (self._counts + len(trigrams))
        best = int(shares.argmax())
        if shares[best] >= LIKELY_LOAN:
            return self._words[best]
        maybe = [self._words[row] for row in np.flatnonzero(shares >= MAYBE_LOAN).tolist()]
        alike = process.extractOne(word, maybe, scorer=OSA.normalized_similarity, score_cutoff=LETTERS_OF_LOAN)
        return str(alike[0]) if alike else None


def _trigrams(word: str) -> frozenset[str]:
    spaced = f" {word} "
    return frozenset(spaced[start : start + 3] for start in range(len(word)))


def corrections_of(text: str, vocabulary: Vocabulary, scale: CosineScale | None) -> dict[str, str]:
    """Return the words of a request to read as words of the catalog. `scale` is that of the model in use.

    Words of another language are not misspelt; those that a model does not know may be loan words.
    """
    language = foreign_language(text)
    if language is None:
        return corrections(text, vocabulary)
    return {} if scale is not None and scale.knows(language.code) else loan_words(text, vocabulary)


def corrections(text: str, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the misspelt words of a query, each with the nearest word of the catalog. Literals are not corrected.

    A word that the catalog does not know may still be right: `flight` is no misspelt `light`.
    """
    words = dict.fromkeys(without_stop_words(words_of(strip_literals(text))))
    unknown = [word for word in words if not vocabulary.knows(word) and word not in _verbs().words]
    corrected = _correct_words([word for word in unknown if not is_english(word)], vocabulary)
    first = next(iter(words), "")
    if len(first) >= MIN_CORRECTED and first in unknown and first not in corrected:
        verb = _missing_letter(first, vocabulary)
        return {first: verb, **corrected} if verb else corrected
    return corrected


def loan_words(text: str, vocabulary: Vocabulary) -> dict[str, str]:
    """Return words of another language, each with the catalog's word that it is like: `Kalender`, `calendar`."""
    words = dict.fromkeys(without_stop_words(words_of(strip_literals(text))))
    unknown = [word for word in words if len(word) >= MIN_CORRECTED and not vocabulary.knows(word)]
    foreign = [word for word in unknown if word.isalpha() and not is_english(word)][:MAX_LOANS]
    loans = {word: vocabulary.trigrams.likely_loan(word) for word in foreign}
    return {word: loan for word, loan in loans.items() if loan}


def _correct_words(unknown: Sequence[str], vocabulary: Vocabulary) -> dict[str, str]:
    candidates = [word for word in unknown if len(word) >= MIN_CORRECTED and not word.isdigit()]
    nearest = {word: _nearest_word(word, vocabulary) for word in candidates[:MAX_CORRECTED]}
    return {word: correction for word, correction in nearest.items() if correction}


def _nearest_word(word: str, vocabulary: Vocabulary) -> str | None:
    """Return the nearest word of the catalog, or else the nearest verb, at most two letters longer or shorter."""
    for words in (vocabulary, _verbs()):
        near = words.words_near(word, int((1 - SWAPPED_LETTERS) * (len(word) + 2)))
        alike = process.extract(
            word, near, scorer=OSA.normalized_similarity, score_cutoff=SWAPPED_LETTERS, limit=MAX_ALIKE
        )
        nearest = min((str(match[0]) for match in alike), key=lambda other: _cost(word, other), default=None)
        if nearest is not None and _is_misspelt(word, nearest):
            return nearest
    return None


def _cost(word: str, nearest: str) -> tuple[float, bool, str]:
    """Return the edits between two words; letters that are swapped or doubled are less than one."""
    edits = float(OSA.distance(word, nearest))
    if sorted(word) == sorted(nearest) or _undoubled(word) == _undoubled(nearest):
        edits -= SLIP
    return edits, word[0] != nearest[0], nearest


def _is_misspelt(word: str, nearest: str) -> bool:
    edits, differs, _ = _cost(word, nearest)
    misses_a_letter = edits == 1 and len(nearest) > len(word) and not differs
    return edits <= 1 - SLIP or misses_a_letter or 1 - edits / max(len(word), len(nearest)) >= NEAREST_WORD


def _undoubled(word: str) -> str:
    return _DOUBLED.sub(r"\1", word)


def _missing_letter(word: str, vocabulary: Vocabulary) -> str | None:
    """Return the verb that the first word of a request is but for a letter, though it is a word: `crate`."""
    for place in range(1, len(word)):
        for verb in _verbs().words_by_length.get(len(word) + 1, ()):
            if verb[:place] + verb[place + 1 :] == word and vocabulary.knows(verb):
                return verb
    return None


@cache
def _verbs() -> Vocabulary:
    return Vocabulary({*VERBS, *frozenset().union(*ACTIONS.values())})
