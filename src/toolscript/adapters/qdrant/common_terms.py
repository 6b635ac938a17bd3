"""Keeps a word search from reading the whole catalog.

The engine reads, for each term of a query, the list of all points that have it. A common word's list is as long as
the catalog. In a large collection the most common terms of a query therefore find nothing, as many as it takes to
stay within a budget: they say the least, and count only on what the rarer ones have found. A sample of the points
tells which terms are common.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolscript.model.index import Terms

BUDGET = 250_000
ALWAYS_KEPT = 4
SAMPLE = 2_000


@dataclass(frozen=True)
class CommonTerms:
    """How many points have a term, as far as a sample can tell: a term it lacks counts as rare."""

    points: int
    shares: Mapping[int, float]

    @classmethod
    def of_sample(cls, points: int, sample: Iterable[Iterable[int]]) -> "CommonTerms":
        rows = list(sample)
        counts = Counter(term for row in rows for term in row)
        return cls(points, {term: count / len(rows) for term, count in counts.items()})

    def shares_of(self, terms: Iterable[int]) -> dict[int, float]:
        return {term: self.shares[term] for term in terms if term in self.shares}

    def within_budget(self, terms: Terms) -> Terms:
        rarest_first = sorted(terms, key=lambda term: self.shares.get(term, 0.0))
        kept, spent = dict[int, float](), 0.0
        for term in rarest_first:
            spent += self.shares.get(term, 0.0) * self.points
            if spent > BUDGET and len(kept) >= ALWAYS_KEPT:
                break
            kept[term] = terms[term]
        return kept
