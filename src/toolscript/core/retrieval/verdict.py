"""The verdict of a search: whether anything fits the request.

That is another question than whether the first candidate is right, which is its probability: in a list of twins no
one is likely to be the right one, and yet the request is served. This is the verdict on tools; `text_verdict` has
that on documents and on chunks of a library.

It is two questions, and both have to be answered with yes. Does the catalog have anything on the subject? With a
model, cosines tell most of it; without one, words have to: what they say against the words of the catalog. And do
the first candidates do what is asked, or are they only near: a repository can be created, and not deleted?
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.model import Candidates, Vector

# A request that the catalog serves is near to several items. A small catalog has few.
MAX_NEIGHBOURS, ITEMS_PER_NEIGHBOUR = 10, 20
# The best of many unrelated items is nearer than the best of few, from 10^SMALL items on. No larger catalog than
# 10^LARGE was measured.
SMALL, LARGE = 2.3, 4.5
# The share of a request's baseline that says nothing of whether anything fits.
BASELINE = 0.75
# How far what a candidate shares with a request may lie above what the catalog has by chance; 0 is chance.
MAX_SURPRISE = 2.0
# So many standard deviations above the mean of unrelated texts, texts are related.
RELATED = 6
# The languages other than English that are tried with every model.
PROBED_LANGUAGES = ("de", "es", "ru", "zh")


@dataclass(frozen=True)
class CosineScale:
    """The mean and the standard deviation of the cosines of unrelated texts with a model.

    Not trusted: it hardly finds what is related. `offset` is added to the logit that anything fits. `centre` is
    the mean vector of unrelated tools; empty if not known. `languages` are those of PROBED_LANGUAGES that the
    model knows; None: not tried.
    """

    unrelated: float
    spread: float
    is_trusted: bool = True
    offset: float = 0.0
    centre: tuple[float, ...] = field(default=(), repr=False)
    languages: Collection[str] | None = None

    def __post_init__(self) -> None:
        # A scale that was stored as JSON has a list.
        object.__setattr__(self, "languages", None if self.languages is None else tuple(self.languages))

    def knows(self, language: str) -> bool:
        """Return whether the model knows a language. It knows one that was not tried if it knows most others."""
        if self.languages is None or language in self.languages:
            return True
        return language not in PROBED_LANGUAGES and 2 * len(self.languages) > len(PROBED_LANGUAGES)

    def baseline(self, request: Vector) -> float:
        """Return how much nearer a request is to tools of any kind than most are: this says nothing of a tool."""
        if len(self.centre) != len(request):
            return 0.0
        return float(request @ self._centre) - self.unrelated

    def with_baselines(
        self, candidates: Sequence[Candidates], vectors: Sequence[Vector] | None
    ) -> list[Candidates]:
        """Return the candidates of each part of a request with the baseline of its vector."""
        if not vectors:
            return list(candidates)
        return [
            replace(of_part, baseline=self.baseline(vector))
            for of_part, vector in zip(candidates, vectors, strict=True)
        ]

    @cached_property
    def _centre(self) -> Vector:
        return np.array(self.centre, dtype=np.float32)

    def relative(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return cosines on a scale that is the same for all models: 0 is unrelated, about 1 is related."""
        return (cosines - self.unrelated) / max(RELATED * self.spread, 1e-6)

    def as_fitted(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return cosines as the model would give them that the confidence was fitted with."""
        return FITTED.unrelated + RELATED * FITTED.spread * self.relative(cosines)


# all-MiniLM-L6-v2, with which all weights were fitted.
FITTED = CosineScale(0.0663, 0.0824)


@dataclass(frozen=True)
class FitEvidence:
    """The evidence that anything fits. Per candidate: `similarity`, the best cosine with the request or one of its
    sub-queries, and the features `word_match`, `subject` and `action`. `neighbours` are the best cosines of any
    item, best first. Both are less BASELINE of the request's baseline. `matched` is the share of the words that
    some candidate has; `items` is the catalog's size.
    """

    similarity: NDArray[np.float64]
    word_match: NDArray[np.float64]
    subject: NDArray[np.float64]
    action: NDArray[np.float64]
    neighbours: NDArray[np.float64]
    matched: float
    items: int


@dataclass(frozen=True)
class FitWeights:
    """Weights of a logistic regression, fitted to requests that are served and to hundreds that nothing serves."""

    one: float = -3.55
    similarity: float = 3.38
    neighbours: float = 2.82
    word_match: float = 0.78
    subject: float = 1.14
    action: float = 0.34
    matched: float = 1.05
    size: float = -1.3


FIT_WEIGHTS = FitWeights()


def fit(evidence: FitEvidence, scale: CosineScale, weights: FitWeights = FIT_WEIGHTS) -> float:
    """Return the logit that anything fits: above 0 is a good match."""
    if not len(evidence.similarity) or not len(evidence.neighbours):
        return -math.inf
    count = min(MAX_NEIGHBOURS, max(1, evidence.items // ITEMS_PER_NEIGHBOUR))
    size = min(LARGE, math.log10(max(1, evidence.items))) - SMALL
    best = (
        weights.similarity * scale.relative(evidence.similarity)
        + weights.word_match * evidence.word_match
        + weights.subject * evidence.subject
        + weights.action * evidence.action
    ).max()
    neighbours = scale.relative(evidence.neighbours[:count]).mean()
    return float(
        weights.one
        + scale.offset
        + best
        + weights.neighbours * neighbours
        + weights.matched * evidence.matched
        + weights.size * max(0.0, size)
    )


# A request that names a service which no candidate names is hardly served: so much is taken off either logit.
MISSING_PRODUCT = 3.0
# Either logit is added so much: where both are above 0, the verdict is right most often.
SUBJECT_OFFSET, SERVED_OFFSET = 0.4, 1.0
MAX_LOGIT = 6.0
# What the best score of fewer items lacks for each power of ten.
FEW, AMONG_FEW = 50, 1.5


@dataclass(frozen=True)
class ServedEvidence:
    """The evidence that the first candidates do what is asked. `fit` is the logit that anything is on the subject;
    `score` is the best score of the ranking, which tells how far it stands out; `differs`: the first candidate is
    named after another action; `verb_missing`: none of the first has the verb; `subqueries` is how many there are;
    `items` is the catalog's size: nothing stands out far among few.
    """

    fit: float
    score: float
    items: int
    differs: bool = False
    verb_missing: bool = False
    subqueries: int = 0


@dataclass(frozen=True)
class ServedWeights:
    """Weights of a logistic regression, fitted to requests whose tool is among the first three, and to others."""

    one: float = -3.18
    fit: float = 0.43
    score: float = 0.53
    differs: float = -1.3
    verb_missing: float = -1.1
    subqueries: float = 0.4


SERVED_WEIGHTS = ServedWeights()


def served(evidence: ServedEvidence, weights: ServedWeights = SERVED_WEIGHTS) -> float:
    """Return the logit that one of the first candidates does what is asked."""
    score = evidence.score + AMONG_FEW * max(0.0, math.log10(FEW / max(1, evidence.items)))
    return (
        weights.one
        + weights.fit * min(MAX_LOGIT, max(-MAX_LOGIT, evidence.fit))
        + weights.score * score
        + weights.differs * evidence.differs
        + weights.verb_missing * evidence.verb_missing
        + weights.subqueries * evidence.subqueries
    )


def verdict_of(evidence: ServedEvidence, *, product_missing: bool) -> float:
    """Return the logit of the verdict: above 0 is a good match."""
    logit = min(evidence.fit + SUBJECT_OFFSET, served(evidence) + SERVED_OFFSET)
    return logit - (MISSING_PRODUCT if product_missing else 0.0)


@dataclass(frozen=True)
class WordEvidence:
    """The evidence of words alone that anything fits. Per candidate: the features `word_match`, `subject`,
    `action` and `name`. `information` is the IDF of all words of the request, literals left out; `matched` is the
    share of the words that some candidate has; `items` is the catalog's size.
    """

    word_match: NDArray[np.float64]
    subject: NDArray[np.float64]
    action: NDArray[np.float64]
    name: NDArray[np.float64]
    information: float
    matched: float
    items: int


@dataclass(frozen=True)
class WordWeights:
    """Weights of a logistic regression, fitted like FitWeights, without a model."""

    one: float = -3.3
    word_match: float = 2.1
    subject: float = 1.4
    action: float = 0.45
    name: float = 2.5
    surprise: float = 1.4
    matched: float = 1.8
    size: float = -0.9


WORD_WEIGHTS = WordWeights()


def fit_by_words(evidence: WordEvidence, weights: WordWeights = WORD_WEIGHTS) -> float:
    """Return the logit that anything fits, by words alone: above 0 is a good match.

    In a catalog of n items some item has words of an IDF of log(n) in common with any request, by chance. What a
    candidate has beyond that counts, in multiples of it.
    """
    if not len(evidence.word_match):
        return -math.inf
    magnitude = min(LARGE, math.log10(max(2, evidence.items)))
    shared = evidence.word_match * evidence.information
    best = (
        weights.word_match * evidence.word_match
        + weights.subject * evidence.subject
        + weights.action * evidence.action
        + weights.name * evidence.name
        + weights.surprise * np.minimum(MAX_SURPRISE, shared / (magnitude * math.log(10)) - 1)
    ).max()
    size = max(0.0, magnitude - SMALL)
    return float(weights.one + best + weights.matched * evidence.matched + weights.size * size)
