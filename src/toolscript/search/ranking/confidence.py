"""How likely a candidate is the right one, from what speaks for it. Fitted, and judged on sets it never saw."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

MOST_LEAD = 4.0


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
