"""What a person has to see to decide about a suggested skill."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.items import StoredItem
from toolscript.model.skills import Skill, Suggestion


@dataclass(frozen=True)
class NearSkill:
    """`score` is the cosine of the two texts."""

    skill: Skill
    score: float


@dataclass(frozen=True)
class Evidence:
    """`nearest` is None, for this reason, when no model could be asked; `more_after` is None at the last item."""

    suggestion: Suggestion
    items: Sequence[StoredItem]
    more_after: int | None
    nearest: tuple[NearSkill, ...] | None
    reason: str = ""
