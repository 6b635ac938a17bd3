"""The weights of the ranking, and the calibration of its confidence."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import InvalidRequest

MAX_LEAD = 4.0

# What a spread of word scores is worth in spreads of cosines: fitted, and far from one, because word scores have
# longer tails.
WORTH_OF_WORDS = 14 / 9

# `held_out` names the set a recipe was fitted without.
NO_WEIGHTS = ("calibration", "held_out")


@dataclass(frozen=True)
class Evidence:
    """What speaks for a candidate; as weights: how much each counts.

    `similarity` is a cosine; `said`, `name` and `subject` are those of the second look; `lead` is how far it
    stands before the best of the others, or behind; `wishes` is how many things are asked for at once: the more,
    the likelier that it is one of them.
    """

    one: float = 0.0
    similarity: float = 0.0
    said: float = 0.0
    name: float = 0.0
    subject: float = 0.0
    lead: float = 0.0
    wishes: float = 0.0


EVIDENCE = tuple(part.name for part in fields(Evidence))


def as_row(evidence: Evidence) -> list[float]:
    return [getattr(evidence, name) for name in EVIDENCE]


@dataclass(frozen=True)
class Calibration:
    """Weights with a model and by words alone, and the least confidence that is called a good match."""

    meaning: Evidence = field(default_factory=lambda: Evidence(-2.36, 0.89, 1.51, 0.49, 0.68, 0.78, 0.34))
    words: Evidence = field(default_factory=lambda: Evidence(-2.66, 0.0, 1.83, 1.57, 0.65, 0.75, 0.23))
    good_match: float = 0.28

    def confidences(self, evidence: NDArray[np.float64], *, semantic: bool) -> NDArray[np.float64]:
        """One per row, best first: none is likelier than the one before it."""
        weights = np.array(as_row(self.meaning if semantic else self.words))
        likely = 1 / (1 + np.exp(-(evidence @ weights)))
        return np.asarray(np.minimum.accumulate(likely)) if len(likely) else likely

    @classmethod
    def from_json(cls, data: object) -> "Calibration":
        if not isinstance(data, Mapping):
            raise TypeError(f"a calibration must be a JSON object, not {data!r}")
        if not data:
            return cls()
        meaning, words = (Evidence(**numbers_of(data.get(arm))) for arm in ("meaning", "words"))
        return cls(meaning, words, **numbers_of({"good_match": data.get("good_match")}))


def numbers_of(data: object) -> dict[str, float]:
    """Weights by name, as JSON has them."""
    if not isinstance(data, Mapping):
        raise TypeError(f"weights must be a JSON object, not {data!r}")
    numbers = {str(name): float(value) for name, value in data.items()}
    if unusable := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise ValueError(f"{unusable[0]} must be a finite number")
    return numbers


@dataclass(frozen=True)
class RankingWeights:
    """The weights of the parts; the two arms share a weight of one, and `meaning` weighs the vectors against the
    words: 0, words alone; 1, meaning alone.

    `wishes`: how far the best single wish of a request for several replaces the whole.
    `coverage`: of all words said, times how large the catalog is: in a small one a word proves little.
    `said`: of the words that are no values. `name`: of the name's letters in the request.
    `action`: creating is not deleting. `subject`: of the words that say what the wish is about.
    """

    meaning: float = 0.7
    wishes: float = 0.56
    coverage: float = 1.61
    said: float = 2.09
    name: float = 1.35
    action: float = 0.47
    subject: float = 0.69
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def share_of_meaning(self) -> float:
        """What the dense arm has of the arms' common weight."""
        words = (1 - self.meaning) * WORTH_OF_WORDS
        return self.meaning / (self.meaning + words)

    def without(self, part: str) -> "RankingWeights":
        """The same with one part off; an arm that is off leaves the whole word to the other."""
        values = vars(self) | ({"meaning": 1.0} if part == "words" else {part: 0.0})
        return RankingWeights(**values)


DEFAULT_WEIGHTS = RankingWeights()

PARTS = (*(one.name for one in fields(RankingWeights) if one.name != "calibration"), "words")


def weights_to_json(weights: RankingWeights) -> dict[str, object]:
    return asdict(weights)


def weights_from_json(data: object) -> RankingWeights:
    """As `eval fit` has written it, or a person has changed it."""
    if not isinstance(data, Mapping):
        raise InvalidRequest("a recipe must be a JSON object")
    try:
        weights = numbers_of({name: value for name, value in data.items() if name not in NO_WEIGHTS})
        if not 0 <= weights.get("meaning", 0.0) <= 1 or min(weights.values(), default=0.0) < 0:
            raise ValueError("meaning must be 0 to 1, and no weight below 0")
        return RankingWeights(**weights, calibration=Calibration.from_json(data.get("calibration", {})))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"this is no recipe: {error}", hint="write one with `toolscript eval fit`") from error
