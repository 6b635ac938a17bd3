"""A closer look at the best candidates: do their words, name and action fit what was asked?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from toolscript.model.index import Candidates
from toolscript.model.words import words_of
from toolscript.search.ranking.actions import agreement
from toolscript.search.ranking.request import Request, Wish
from toolscript.search.ranking.traits import Traits, trigrams

LOOKED_AT = 50
# A catalog of so many items, in powers of ten, is small: a word that fits proves nothing yet.
SMALL = 2.5


@dataclass(frozen=True)
class Fit:
    """Each 0 to 1, but for `action`: -1 when another action is asked for."""

    coverage: float = 0.0
    said: float = 0.0
    name: float = 0.0
    action: float = 0.0
    subject: float = 0.0


FIT_PARTS = tuple(one.name for one in fields(Fit))


class SecondLook:
    """`found` tells how rare a word is in the catalog, and how large that is."""

    def __init__(self, request: Request, found: Candidates) -> None:
        self._request = request
        stems = frozenset().union(*(one.stems | one.subject for one in request.parts), request.plain_stems)
        self._rarities = {stem: found.rarity(stem) for stem in stems}
        self._totals: dict[frozenset[int], float] = {}
        self._letters = trigrams(request.text).union(*map(trigrams, words_of(request.text)))
        self._size = max(0.0, math.log10(max(1, found.points)) - SMALL)

    def fit(self, traits: Traits) -> Fit:
        wishes = self._request.single_wishes
        wish = wishes[0] if len(wishes) == 1 else max(wishes, key=lambda one: self._suits(one, traits))
        return Fit(
            coverage=self._share(self._request.whole.stems, traits.stems),
            said=self._share(self._request.plain_stems, traits.stems),
            name=len(traits.trigrams & self._letters) / len(traits.trigrams) if traits.trigrams else 0.0,
            action=agreement(wish.action, traits.actions),
            subject=self._share(wish.subject, traits.stems) if traits.name else 0.0,
        )

    def worth(self, fits: Sequence[Fit], weights: Mapping[str, float]) -> NDArray[np.float64]:
        """What each part adds to each candidate's standing: a row per candidate, a column per part."""
        rows = np.array([[getattr(fit, part) for part in FIT_PARTS] for fit in fits]).reshape(-1, len(FIT_PARTS))
        by_part = [weights[part] * (self._size if part == "coverage" else 1.0) for part in FIT_PARTS]
        return np.asarray(rows * np.array(by_part))

    def _suits(self, wish: Wish, traits: Traits) -> float:
        shared = self._share(wish.stems, traits.stems) + self._share(wish.subject, traits.stems)
        return shared + 0.2 * agreement(wish.action, traits.actions)

    def _share(self, asked: frozenset[int], there: frozenset[int]) -> float:
        """How much of what is asked is there, the rarer a word the more of it."""
        if asked not in self._totals:
            self._totals[asked] = sum(map(self._rarities.__getitem__, asked))
        total = self._totals[asked]
        return sum(map(self._rarities.__getitem__, asked & there)) / total if total else 0.0
