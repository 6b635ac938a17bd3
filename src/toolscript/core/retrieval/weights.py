"""The weights of the ranking, and the calibration of its confidence."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import InvalidRequest

MAX_LEAD = 4.0

# A standard deviation of the sparse scores counts as much as this many of the cosines. The value is fitted; it is
# far from one because sparse scores have longer tails.
SPARSE_SCALE = 14 / 9

# `held_out` names the dataset that the weights were fitted without.
NO_WEIGHTS = ("calibration", "held_out")


@dataclass(frozen=True)
class Evidence:
    """The evidence for a candidate, or the weight of each kind of evidence.

    `one` is the intercept; `similarity` is a cosine; `word_match`, `name` and `subject` are features of the
    reranker; `lead` is the distance to the best of the other candidates; `subqueries` is how many sub-queries the
    request has: the more, the likelier that the candidate answers one; `fit` is the logit of the verdict.
    """

    one: float = 0.0
    similarity: float = 0.0
    word_match: float = 0.0
    name: float = 0.0
    subject: float = 0.0
    lead: float = 0.0
    subqueries: float = 0.0
    fit: float = 0.0


# The default threshold of a gateway. A probability of SHOWN^(1 / ROOT), .05, has this confidence.
SHOWN, ROOT = 0.35, 0.35
# The highest confidence where nothing fits.
GUESSED = 0.34

EVIDENCE = tuple(part.name for part in fields(Evidence))


def as_row(evidence: Evidence) -> list[float]:
    return [getattr(evidence, name) for name in EVIDENCE]


@dataclass(frozen=True)
class Calibration:
    """Weights with dense retrieval and for sparse retrieval alone, and the minimum confidence of a good match."""

    meaning: Evidence = field(default_factory=lambda: Evidence(-2.24, 0.4, 1.12, 0.35, 0.06, 0.63, 0.14, 0.35))
    words: Evidence = field(default_factory=lambda: Evidence(-2.66, 0.0, 1.83, 1.57, 0.65, 0.75, 0.23))
    good_match_threshold: float = 0.28

    def probabilities(self, evidence: NDArray[np.float64], *, semantic: bool) -> NDArray[np.float64]:
        """Return the probability that a row is right, best first: none is higher than the one before it."""
        weights = np.array(as_row(self.meaning if semantic else self.words))
        probabilities = 1 / (1 + np.exp(-(evidence @ weights)))
        return np.asarray(np.minimum.accumulate(probabilities)) if len(probabilities) else probabilities

    @classmethod
    def from_json(cls, data: object) -> "Calibration":
        if not isinstance(data, Mapping):
            raise TypeError(f"a calibration must be a JSON object, not {data!r}")
        if not data:
            return cls()
        meaning, words = (Evidence(**numbers_of(data.get(retriever))) for retriever in ("meaning", "words"))
        return cls(meaning, words, **numbers_of({"good_match_threshold": data.get("good_match_threshold")}))


def confidence_of(probability: NDArray[np.float64], *, good_match: bool) -> NDArray[np.float64]:
    """Return the confidence to show for probabilities, best first.

    Among many that would do, none is likely to be the one that is meant: where something fits, one that is right
    once in twenty times is worth its place, and the first one always; where nothing fits, none passes SHOWN.
    """
    confidence = np.asarray(probability**ROOT)
    if not good_match:
        return GUESSED * confidence
    confidence[:1] = np.maximum(confidence[:1], SHOWN)
    return confidence


def as_guess(confidence: float) -> float:
    """Return the confidence of what fits where it is no hit but a guess: it is on the scale of guesses then."""
    return GUESSED * confidence


def probability_of(confidence: float, *, good_match: bool) -> float:
    """Return the probability of which a confidence was made; the least of those that it may have been."""
    return float((confidence if good_match else confidence / GUESSED) ** (1 / ROOT))


def numbers_of(data: object) -> dict[str, float]:
    """Return the weights of a JSON object by name."""
    if not isinstance(data, Mapping):
        raise TypeError(f"weights must be a JSON object, not {data!r}")
    numbers = {str(name): float(value) for name, value in data.items()}
    if unusable := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise ValueError(f"{unusable[0]} must be a finite number")
    return numbers


@dataclass(frozen=True)
class RankingWeights:
    """The weights of the ranking. `meaning` splits a weight of one between dense and sparse scores: 0 is sparse
    alone, 1 is dense alone.

    `subquery`: how far the best sub-query of a request with several replaces the whole.
    `coverage`: the share of all words that match, times the size of the catalog: in a small one a match proves
    little.
    `word_match`: the share of the words, literals left out, that match.
    `name`: the share of the name's letters in the request.
    `action`: creating is not deleting. `subject`: the share of the words of the object.
    """

    meaning: float = 0.7
    subquery: float = 0.56
    coverage: float = 1.61
    word_match: float = 2.09
    name: float = 1.35
    action: float = 0.47
    subject: float = 0.69
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def dense_share(self) -> float:
        """The dense retriever's share of the common weight of both retrievers."""
        words = (1 - self.meaning) * SPARSE_SCALE
        return self.meaning / (self.meaning + words)

    @property
    def version(self) -> str:
        """A short hash: answers of equal versions were ranked by equal weights."""
        return _version(self)

    def without(self, part: str) -> "RankingWeights":
        """Return the weights with one part off; if a retriever is off, the other gets all of their weight."""
        values = vars(self) | ({"meaning": 1.0} if part == "words" else {part: 0.0})
        return RankingWeights(**values)


@lru_cache(maxsize=64)
def _version(weights: RankingWeights) -> str:
    """Cached: every search names the version of its weights."""
    canonical = json.dumps(weights_to_json(weights), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


DEFAULT_WEIGHTS = RankingWeights()

PARTS = (*(part.name for part in fields(RankingWeights) if part.name != "calibration"), "words")


def weights_to_json(weights: RankingWeights) -> dict[str, object]:
    return asdict(weights)


def weights_from_json(data: object) -> RankingWeights:
    """Parse weights that `eval fit` wrote, or that a person has edited."""
    if not isinstance(data, Mapping):
        raise InvalidRequest("ranking weights must be a JSON object")
    try:
        weights = numbers_of({name: value for name, value in data.items() if name not in NO_WEIGHTS})
        if not 0 <= weights.get("meaning", 0.0) <= 1 or min(weights.values(), default=0.0) < 0:
            raise ValueError("meaning must be 0 to 1, and no weight below 0")
        return RankingWeights(**weights, calibration=Calibration.from_json(data.get("calibration", {})))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(
            f"these are no ranking weights: {error}", hint="create them with `toolscript-eval fit`"
        ) from error
