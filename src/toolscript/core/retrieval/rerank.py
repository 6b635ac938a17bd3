"""Fusion of the retrievers' lists and the reranking of the best candidates by their features."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.item_text import unpack_stems
from toolscript.core.retrieval.model import Candidate, Candidates, Fields
from toolscript.core.retrieval.request import Request, actions_named, agreement, strip_phrases
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, words_of
from toolscript.core.retrieval.weights import EVIDENCE, MAX_LEAD, RankingWeights

# The fields of a point they are read from.
FEATURE_FIELDS = ("server", "name", "stems")

RERANK_DEPTH = 50
# A catalog of so many items, in powers of ten, is small: a word that fits proves nothing yet.
SMALL = 2.5

Scores = NDArray[np.float64]
Ids = NDArray[np.int64]

CANDIDATES_PER_RETRIEVER = 100
MIN_SPREAD = 1e-9
# Whoever comes after others stands at least so far behind them: of equals the lower id would come first.
MIN_GAP = 1e-3

RETRIEVER_PARTS = ("meaning", "words", "wishes")


@dataclass(frozen=True)
class Features:
    """`name` is blank for a document: its title says nothing about what it does."""

    name: str
    stems: frozenset[int]

    @cached_property
    def trigrams(self) -> frozenset[str]:
        return trigrams(self.name)

    @cached_property
    def actions(self) -> frozenset[str]:
        return actions_named(split_identifier(self.name).casefold().split())


def features_of_payload(fields: Fields) -> Features:
    return Features(
        str(fields["name"]) if fields.get("server") else "", unpack_stems(str(fields.get("stems", "")))
    )


def trigrams(text: str) -> frozenset[str]:
    letters = "".join(char for char in text.casefold() if char.isalnum())
    return frozenset(letters[index : index + 3] for index in range(len(letters) - 2)) or frozenset(
        filter(None, [letters])
    )


NOTHING_KNOWN = Features("", frozenset())
FeaturesById = Mapping[int, Features]


class Fit(NamedTuple):
    """Each 0 to 1, but for `action`: -1 when another action is asked for."""

    coverage: float = 0.0
    said: float = 0.0
    name: float = 0.0
    action: float = 0.0
    subject: float = 0.0


FIT_PARTS = Fit._fields


@dataclass(frozen=True)
class _SubQueryTerms:
    """A wish, its stems as bits."""

    stems: int
    subject: int
    action: frozenset[str]


class FeatureReranker:
    """`found` tells how rare a word is in the catalog, and how large that is.

    Each word of the request is a bit, so that what a candidate has of it is one number: the same ones come again
    and again, and what they weigh is remembered.
    """

    def __init__(self, request: Request, found: Candidates) -> None:
        self._stems = frozenset().union(
            *(query.stems | query.subject for query in request.parts), request.plain_stems
        )
        self._bits = {stem: 1 << index for index, stem in enumerate(self._stems)}
        self._idfs = [(bit, found.idf(stem)) for stem, bit in self._bits.items()]
        self._weights: dict[int, float] = {}
        self._whole, self._plain = self._mask(request.whole.stems), self._mask(request.plain_stems)
        self._wishes = [
            _SubQueryTerms(self._mask(query.stems), self._mask(query.subject), query.action)
            for query in request.single_subqueries
        ]
        self._letters = trigrams(request.text).union(*map(trigrams, words_of(request.text)))
        self._size = max(0.0, math.log10(max(1, found.points)) - SMALL)

    def fit(self, features: Features) -> Fit:
        there, wishes = self._mask(features.stems & self._stems), self._wishes
        subquery = (
            wishes[0] if len(wishes) == 1 else max(wishes, key=lambda one: self._suits(one, there, features))
        )
        return Fit(
            coverage=self._share(self._whole, there),
            said=self._share(self._plain, there),
            name=len(features.trigrams & self._letters) / len(features.trigrams) if features.trigrams else 0.0,
            action=agreement(subquery.action, features.actions),
            subject=self._share(subquery.subject, there) if features.name else 0.0,
        )

    def worth(self, fits: Sequence[Fit], weights: Mapping[str, float]) -> NDArray[np.float64]:
        """What each part adds to each candidate's standing: a row per candidate, a column per part."""
        rows = np.array(fits).reshape(-1, len(FIT_PARTS))
        by_part = [weights[part] * (self._size if part == "coverage" else 1.0) for part in FIT_PARTS]
        return np.asarray(rows * np.array(by_part))

    def _mask(self, stems: Iterable[int]) -> int:
        return sum(map(self._bits.__getitem__, stems))

    def _suits(self, subquery: _SubQueryTerms, there: int, features: Features) -> float:
        shared = self._share(subquery.stems, there) + self._share(subquery.subject, there)
        return shared + 0.2 * agreement(subquery.action, features.actions)

    def _share(self, asked: int, there: int) -> float:
        """How much of what is asked is there, the rarer a word the more of it."""
        total = self._weight(asked)
        return self._weight(asked & there) / total if total else 0.0

    def _weight(self, stems: int) -> float:
        known = self._weights.get(stems)
        if known is None:
            known = self._weights[stems] = sum(idf for bit, idf in self._idfs if stems & bit)
        return known


@dataclass(frozen=True)
class FusedScores:
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

    def followed_by(self, other: "FusedScores") -> "FusedScores":
        """Whom only the other names comes after all of these, in its order."""
        new = ~np.isin(other.ids, self.ids)
        gap = float(self.standing.min() - other.standing[new].max()) if len(self.ids) and new.any() else 0.0

        def joined(field: str) -> Scores:
            return np.concatenate([getattr(self, field), getattr(other, field)[new]])

        return FusedScores(
            ids=np.concatenate([self.ids, other.ids[new]]),
            standing=np.concatenate([self.standing, other.standing[new] + min(0.0, gap - MIN_GAP)]),
            meaning=joined("meaning"),
            words=joined("words"),
            wishes=joined("wishes"),
            similarity=joined("similarity"),
            whole=self.whole,
        )


def fuse_scores(
    found: Sequence[Candidates], limit: int, weights: RankingWeights, also: Iterable[int] = ()
) -> FusedScores:
    """`found` is what the arms gave for each part of a request, the whole first; `limit` what each was asked for.

    `also` are candidates that something else has named.
    """
    whole = found[0]
    ids = _everyone(found, also)
    at = {id_: row for row, id_ in enumerate(ids.tolist())}
    meaning, words = _retrievers(whole, at, limit, weights)
    wishes = (
        _best_subquery([_retrievers(candidates, at, limit, weights) for candidates in found[1:]], meaning + words)
        * weights.wishes
    )
    standing = meaning + words + wishes
    order = np.lexsort((ids, -standing))
    similarity = np.full(len(ids), np.nan)
    similarity[[at[hit.id] for hit in whole.dense or ()]] = [hit.score for hit in whole.dense or ()]
    return FusedScores(
        ids[order], standing[order], meaning[order], words[order], wishes[order], similarity[order], whole
    )


def _everyone(candidate_lists: Sequence[Candidates], also: Iterable[int]) -> Ids:
    named = frozenset(also).union(*(candidates.ids for candidates in candidate_lists))
    return np.array(sorted(named), dtype=np.int64)


def _retrievers(
    candidates: Candidates, at: dict[int, int], limit: int, weights: RankingWeights
) -> tuple[Scores, Scores]:
    """What either arm gives. One with nothing to say leaves the whole word to the other."""
    dense, words = candidates.dense or (), candidates.words or ()
    share = weights.share_of_meaning if dense and words else float(bool(dense))
    return share * _z_scores(dense, at, limit), (1 - share) * _z_scores(words, at, limit, ends_at_zero=True)


def _z_scores(
    retriever: Sequence[Candidate], at: dict[int, int], limit: int, *, ends_at_zero: bool = False
) -> Scores:
    """Among the arm's own; whom it did not name stands at its end.

    A word arm that gave fewer than asked has named all it knows: the rest have no word of it, and count.
    """
    if not retriever:
        return np.zeros(len(at))
    known = np.array([hit.score for hit in retriever])
    complete = ends_at_zero and len(retriever) < limit
    scores = np.full(len(at), 0.0 if complete else known.min())
    scores[[at[hit.id] for hit in retriever]] = known
    sample = scores if complete else known
    spread = float(sample.std())
    return (scores - sample.mean()) / spread if spread > MIN_SPREAD else np.zeros(len(at))


def _best_subquery(wishes: Sequence[tuple[Scores, Scores]], whole: Scores) -> Scores:
    """How far the best of the wishes lifts each candidate over what it is to the whole."""
    if not wishes:
        return np.zeros_like(whole)
    best = np.max([meaning + words for meaning, words in wishes], axis=0)
    return np.asarray(best - whole)


PART_NAMES = RETRIEVER_PARTS + FIT_PARTS


@dataclass(frozen=True)
class Ranking:
    """A row per candidate, best first. `similarity` is NaN where the dense arm is silent.

    `given` is what each part gave to the standing, `evidence` what each confidence was made from.
    """

    ids: Ids
    standing: Scores
    confidence: Scores
    similarity: Scores
    fits: Sequence[Fit]
    given: NDArray[np.float64]
    evidence: NDArray[np.float64]
    good_match: bool
    semantic: bool

    def parts(self, row: int) -> dict[str, float]:
        """What spoke for and against a candidate, part by part."""
        named = zip(PART_NAMES, self.given[row].tolist(), strict=True)
        return {name: round(value, 3) for name, value in named if abs(value) > 5e-4}


def rank(request: Request, fused: FusedScores, features: FeaturesById, weights: RankingWeights) -> Ranking:
    """`traits` are those of the first `RERANK_DEPTH`; whoever comes after them stays behind them."""
    reranker = FeatureReranker(request, fused.whole)
    fits = [reranker.fit(features.get(id_, NOTHING_KNOWN)) for id_ in fused.ids[:RERANK_DEPTH].tolist()]
    added = reranker.worth(fits, {part: getattr(weights, part) for part in FIT_PARTS})
    standing = _with_the_rest_behind(fused.standing, added.sum(axis=1))
    is_rest = np.arange(len(standing)) >= len(fits)
    order = np.lexsort((fused.ids, -standing, is_rest))
    every_fit = [*fits, *[Fit()] * (len(standing) - len(fits))]
    evidence = _evidence(request, fused, standing, fits)[order]
    confidence = weights.calibration.confidences(evidence, semantic=fused.is_semantic)
    return Ranking(
        ids=fused.ids[order],
        standing=standing[order],
        confidence=confidence,
        similarity=fused.similarity[order],
        fits=[every_fit[at] for at in order.tolist()],
        given=_given(fused, added)[order],
        evidence=evidence,
        good_match=bool(confidence.max(initial=0.0) >= weights.calibration.good_match),
        semantic=fused.is_semantic,
    )


def unmatched_words(request: Request, looked_at: Iterable[Features]) -> tuple[str, ...]:
    """The words of a request that none of the candidates has, as they were said."""
    there = [features.stems for features in looked_at]
    stem_of = {word: terms_of_word(request.meant.get(word, word))[0] for word in request.words}
    nowhere = [word for word, stem in stem_of.items() if not any(stem in stems for stems in there)]
    # What is part of a phrase that means another word was not asked for.
    read = frozenset(words_of(strip_phrases(request.text))) if nowhere else frozenset()
    return tuple(word for word in nowhere if word in read)


def _with_the_rest_behind(standing: Scores, added: Scores) -> Scores:
    reranker = standing[: len(added)] + added
    rest = standing[len(added) :]
    gap = max(0.0, float(rest.max() - reranker.min())) if len(rest) and len(reranker) else 0.0
    return np.concatenate([reranker, rest - gap])


def _given(fused: FusedScores, added: NDArray[np.float64]) -> NDArray[np.float64]:
    retrievers = np.column_stack([fused.meaning, fused.words, fused.wishes])
    rest = np.zeros((len(retrievers) - len(added), len(FIT_PARTS)))
    return np.hstack([retrievers, np.vstack([added, rest])])


def _evidence(request: Request, fused: FusedScores, standing: Scores, fits: Sequence[Fit]) -> NDArray[np.float64]:
    """Of those that nobody looked at closely, nothing is known to fit."""
    rows = np.zeros((len(standing), len(EVIDENCE)))
    of = {name: rows[:, index] for index, name in enumerate(EVIDENCE)}
    of["one"][:] = 1.0
    of["wishes"][:] = len(request.wishes)
    of["similarity"][:] = np.nan_to_num(fused.similarity)
    of["lead"][:] = _leads(standing)
    for name in ("said", "name", "subject"):
        of[name][: len(fits)] = [getattr(fit, name) for fit in fits]
    return rows


def _leads(standing: Scores) -> Scores:
    """How far each stands before the best of the others."""
    if len(standing) < 2:
        return np.full(len(standing), MAX_LEAD)
    second, first = np.partition(standing, -2)[-2:]
    rival = np.where(standing == first, second, first)
    return np.asarray(np.clip(standing - rival, -MAX_LEAD, MAX_LEAD))
