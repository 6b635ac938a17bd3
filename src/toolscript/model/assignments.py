"""An item is in a skill because somebody put it there: a person, a language model or a rule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

SKILL_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
LEAST_CONFIDENCE = 0.5
MOST_ASSIGNMENTS = 3
MOST_BY_HAND = 10
MAX_REASON = 300


class AssignedBy(StrEnum):
    LLM = "llm"
    RULES = "rules"
    HUMAN = "human"


@dataclass(frozen=True)
class Assignment:
    """An item is in a skill, as sure as this, because somebody said so."""

    skill_id: str
    confidence: float
    source: AssignedBy
    reason: str = ""

    @property
    def weight(self) -> int:
        """The confidence in ten-thousandths: whole numbers can be added up and taken away without a rest."""
        return round(self.confidence * 10_000)


def valid_assignments(given: Sequence[Assignment], known: frozenset[str]) -> tuple[Assignment, ...]:
    """What a classifier may say: known skills, each once, sure enough, the best few, best first."""
    best: dict[str, Assignment] = {}
    for one in given:
        kept = best.get(one.skill_id)
        if one.skill_id in known and (kept is None or kept.confidence < one.confidence):
            best[one.skill_id] = one
    sure = [_tidy(one) for one in best.values() if LEAST_CONFIDENCE <= one.confidence <= 1.0]
    return tuple(sorted(sure, key=lambda one: (-one.confidence, one.skill_id))[:MOST_ASSIGNMENTS])


def _tidy(one: Assignment) -> Assignment:
    return replace(one, confidence=round(one.confidence, 4), reason=one.reason[:MAX_REASON])
