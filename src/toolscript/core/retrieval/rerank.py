"""The arms' lists into one order: every arm's scores as z-scores, then the best wish beside the whole."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.model.index import Candidate, Candidates
from toolscript.search.ranking.recipe import Recipe

Scores = NDArray[np.float64]
Ids = NDArray[np.int64]

CANDIDATES_PER_ARM = 100
LEAST_SPREAD = 1e-9
# Whoever comes after others stands at least so far behind them: of equals the lower id would come first.
LEAST_GAP = 1e-3


@dataclass(frozen=True)
class FirstLook:
    """One row per candidate, best first. `similarity` is the whole's cosine, NaN where the dense arm is silent.

    `meaning`, `words` and `wishes` are what each gave to the standing. `whole` is what the arms said of it all.
    """

    ids: Ids
    standing: Scores
    meaning: Scores
    words: Scores
    wishes: Scores
    similarity: Scores
    whole: Candidates

    @property
    def is_semantic(self) -> bool:
        return self.whole.dense is not None

    def followed_by(self, other: "FirstLook") -> "FirstLook":
        """Whom only the other names comes after all of these, in its order."""
        new = ~np.isin(other.ids, self.ids)
        gap = float(self.standing.min() - other.standing[new].max()) if len(self.ids) and new.any() else 0.0

        def joined(field: str) -> Scores:
            return np.concatenate([getattr(self, field), getattr(other, field)[new]])

        return FirstLook(
            ids=np.concatenate([self.ids, other.ids[new]]),
            standing=np.concatenate([self.standing, other.standing[new] + min(0.0, gap - LEAST_GAP)]),
            meaning=joined("meaning"),
            words=joined("words"),
            wishes=joined("wishes"),
            similarity=joined("similarity"),
            whole=self.whole,
        )


def first_look(found: Sequence[Candidates], limit: int, recipe: Recipe, also: Iterable[int] = ()) -> FirstLook:
    """`found` is what the arms gave for each part of a request, the whole first; `limit` what each was asked for.

    `also` are candidates that something else has named.
    """
    whole = found[0]
    ids = _everyone(found, also)
    at = {id_: row for row, id_ in enumerate(ids.tolist())}
    meaning, words = _arms(whole, at, limit, recipe)
    wishes = _best_wish([_arms(one, at, limit, recipe) for one in found[1:]], meaning + words) * recipe.wishes
    standing = meaning + words + wishes
    order = np.lexsort((ids, -standing))
    similarity = np.full(len(ids), np.nan)
    similarity[[at[hit.id] for hit in whole.dense or ()]] = [hit.score for hit in whole.dense or ()]
    return FirstLook(
        ids[order], standing[order], meaning[order], words[order], wishes[order], similarity[order], whole
    )


def _everyone(found: Sequence[Candidates], also: Iterable[int]) -> Ids:
    named = frozenset(also).union(*(one.ids for one in found))
    return np.array(sorted(named), dtype=np.int64)


def _arms(found: Candidates, at: dict[int, int], limit: int, recipe: Recipe) -> tuple[Scores, Scores]:
    """What either arm gives. One with nothing to say leaves the whole word to the other."""
    dense, words = found.dense or (), found.words or ()
    share = recipe.share_of_meaning if dense and words else float(bool(dense))
    return share * _z_scores(dense, at, limit), (1 - share) * _z_scores(words, at, limit, ends_at_zero=True)


def _z_scores(arm: Sequence[Candidate], at: dict[int, int], limit: int, *, ends_at_zero: bool = False) -> Scores:
    """Among the arm's own; whom it did not name stands at its end.

    A word arm that gave fewer than asked has named all it knows: the rest have no word of it, and count.
    """
    if not arm:
        return np.zeros(len(at))
    known = np.array([hit.score for hit in arm])
    complete = ends_at_zero and len(arm) < limit
    scores = np.full(len(at), 0.0 if complete else known.min())
    scores[[at[hit.id] for hit in arm]] = known
    sample = scores if complete else known
    spread = float(sample.std())
    return (scores - sample.mean()) / spread if spread > LEAST_SPREAD else np.zeros(len(at))


def _best_wish(wishes: Sequence[tuple[Scores, Scores]], whole: Scores) -> Scores:
    """How far the best of the wishes lifts each candidate over what it is to the whole."""
    if not wishes:
        return np.zeros_like(whole)
    best = np.max([meaning + words for meaning, words in wishes], axis=0)
    return np.asarray(best - whole)
