"""A closer look at the best candidates: do their words, name and action fit what was asked?"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.model.index import Candidates
from toolscript.model.words import words_of
from toolscript.search.ranking.actions import agreement
from toolscript.search.ranking.request import Request
from toolscript.search.ranking.traits import Traits, trigrams

LOOKED_AT = 50
# A catalog of so many items, in powers of ten, is small: a word that fits proves nothing yet.
SMALL = 2.5


class Fit(NamedTuple):
    """Each 0 to 1, but for `action`: -1 when another action is asked for."""

    coverage: float = 0.0
    said: float = 0.0
    name: float = 0.0
    action: float = 0.0
    subject: float = 0.0


FIT_PARTS = Fit._fields


@dataclass(frozen=True)
class _Asked:
    """A wish, its stems as bits."""

    stems: int
    subject: int
    action: frozenset[str]


class SecondLook:
    """`found` tells how rare a word is in the catalog, and how large that is.

    Each word of the request is a bit, so that what a candidate has of it is one number: the same ones come again
    and again, and what they weigh is remembered.
    """

    def __init__(self, request: Request, found: Candidates) -> None:
        self._stems = frozenset().union(*(one.stems | one.subject for one in request.parts), request.plain_stems)
        self._bits = {stem: 1 << at for at, stem in enumerate(self._stems)}
        self._rarities = [(bit, found.rarity(stem)) for stem, bit in self._bits.items()]
        self._weights: dict[int, float] = {}
        self._whole, self._plain = self._mask(request.whole.stems), self._mask(request.plain_stems)
        self._wishes = [
            _Asked(self._mask(one.stems), self._mask(one.subject), one.action) for one in request.single_wishes
        ]
        self._letters = trigrams(request.text).union(*map(trigrams, words_of(request.text)))
        self._size = max(0.0, math.log10(max(1, found.points)) - SMALL)

    def fit(self, traits: Traits) -> Fit:
        there, wishes = self._mask(traits.stems & self._stems), self._wishes
        wish = wishes[0] if len(wishes) == 1 else max(wishes, key=lambda one: self._suits(one, there, traits))
        return Fit(
            coverage=self._share(self._whole, there),
            said=self._share(self._plain, there),
            name=len(traits.trigrams & self._letters) / len(traits.trigrams) if traits.trigrams else 0.0,
            action=agreement(wish.action, traits.actions),
            subject=self._share(wish.subject, there) if traits.name else 0.0,
        )

    def worth(self, fits: Sequence[Fit], weights: Mapping[str, float]) -> NDArray[np.float64]:
        """What each part adds to each candidate's standing: a row per candidate, a column per part."""
        rows = np.array(fits).reshape(-1, len(FIT_PARTS))
        by_part = [weights[part] * (self._size if part == "coverage" else 1.0) for part in FIT_PARTS]
        return np.asarray(rows * np.array(by_part))

    def _mask(self, stems: Iterable[int]) -> int:
        return sum(map(self._bits.__getitem__, stems))

    def _suits(self, wish: _Asked, there: int, traits: Traits) -> float:
        shared = self._share(wish.stems, there) + self._share(wish.subject, there)
        return shared + 0.2 * agreement(wish.action, traits.actions)

    def _share(self, asked: int, there: int) -> float:
        """How much of what is asked is there, the rarer a word the more of it."""
        total = self._weight(asked)
        return self._weight(asked & there) / total if total else 0.0

    def _weight(self, stems: int) -> float:
        known = self._weights.get(stems)
        if known is None:
            known = self._weights[stems] = sum(rarity for bit, rarity in self._rarities if stems & bit)
        return known
