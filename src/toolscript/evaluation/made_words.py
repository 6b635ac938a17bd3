"""A vocabulary as large as that of real documents: words of real texts, and rarer ones made up behind them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from toolscript.model.words import terms_of_word, without_stop_words, words_of

WORDS = 50_000
# How often the word of a rank comes, as in real texts: 1 / (rank + SHIFT).
SHIFT = 10.0
_FILLERS = ("the", "of", "and", "in", "with", "for", "by", "on")

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
    """One word a stem, the commonest first; a word is known by its place. `phrases` are what a text is made of."""

    words: Sequence[str]
    phrases: Sequence[str]
    terms: NDArray[np.uint32]
    reach: NDArray[np.float64]

    def draw(self, chance: np.random.Generator, shape: tuple[int, int]) -> Numbers:
        return np.searchsorted(self.reach, chance.random(shape))


def vocabulary_of(texts: Sequence[str]) -> tuple[Vocabulary, list[Numbers]]:
    """The vocabulary, and each text in it, in the text's order."""
    read = [without_stop_words(words_of(text)) for text in texts]
    word_of_stem: dict[int, str] = {}
    for word, _ in Counter(word for words in read for word in words).most_common():
        word_of_stem.setdefault(terms_of_word(word)[0], word)
    for word in _made_up():
        if len(word_of_stem) >= WORDS:
            break
        word_of_stem.setdefault(terms_of_word(word)[0], word)
    place = {stem: at for at, stem in enumerate(word_of_stem)}
    shares = 1 / (np.arange(len(place)) + SHIFT)
    known = Vocabulary(
        list(word_of_stem.values()),
        [word if at % 2 else f"{_FILLERS[at // 2 % 8]} {word}" for at, word in enumerate(word_of_stem.values())],
        np.fromiter(word_of_stem, dtype=np.uint32, count=len(word_of_stem)),
        np.cumsum(shares / shares.sum())[:-1],
    )
    return known, [np.array([place[terms_of_word(word)[0]] for word in words]) for words in read]


def _made_up() -> Iterator[str]:
    """Names of two or three syllables."""
    syllables = [before + vowel for before, vowel in product("bdfgklmnprstvz", "aeiou")]
    yield from (f"{one}{two}x" for one, two in product(syllables, syllables))
    yield from (f"{one}{two}{three}n" for one, two, three in product(syllables, syllables, syllables))
