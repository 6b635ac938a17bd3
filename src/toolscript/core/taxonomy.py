"""A skill is a category that people manage, by which tool search is routed."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from toolscript.core.items import Assignment, Item, ItemKind

if TYPE_CHECKING:
    # Skills are shown by commands that need no vectors, nor the library behind them.
    from toolscript.core.retrieval.model import Vector


# As much as of an item: what embeds the one embeds the other.
MAX_TEXT = 2_000

# Beyond this it does not matter to a reviewer how many more there are, and counting them all would take its time.
MAX_COUNTED = 1_000


@dataclass(frozen=True)
class Skill:
    id: str
    name: str
    description: str = ""
    parent_domain: str | None = None
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    is_active: bool = True

    @property
    def text(self) -> str:
        """What is embedded of a skill: what it is called, what it covers, how its items are called."""
        parts = (self.name, self.description, ", ".join(self.examples))
        return ". ".join(part for part in parts if part)[:MAX_TEXT]

    @property
    def point_id(self) -> int:
        return skill_point_id(self.id)


def skill_point_id(skill_id: str) -> int:
    """An engine wants a number."""
    return int.from_bytes(hashlib.sha256(skill_id.encode()).digest()[:8]) >> 1


@dataclass(frozen=True)
class SkillEntry:
    """A skill of the taxonomy. `tool_count` is how many active items are in it."""

    skill: Skill
    tool_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SuggestedSkill:
    """A skill that a classifier misses."""

    name: str
    description: str = ""

    @property
    def key(self) -> str:
        """Equal for suggestions that differ only in how they are written."""
        return "_".join(re.findall(r"\w+", self.name.casefold()))


def skill_id_of(name: str) -> str:
    """An id made from a name; empty when nothing of the name can be in one."""
    plain = "_".join(re.findall(r"[a-z0-9]+", name.casefold()))
    return plain.lstrip("0123456789_")[:64].rstrip("_")


@dataclass(frozen=True)
class Unclassified:
    """An item a classifier is asked about, with its vector."""

    item: Item
    vector: "Vector"


@dataclass(frozen=True)
class Classification:
    """What a classifier says of one item: the skills it is in, or which one is missing."""

    assignments: tuple[Assignment, ...] = ()
    suggestion: SuggestedSkill | None = None


@dataclass(frozen=True)
class Classified:
    """A classification of an item as it was at this version."""

    item_id: int
    version: int
    classification: Classification


@dataclass(frozen=True)
class Member:
    """An item in a skill."""

    item_id: int
    kind: ItemKind
    server: str
    name: str
    description: str
    assignment: Assignment
    is_primary: bool


class SuggestionState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MERGED = "merged"


@dataclass(frozen=True)
class Suggestion:
    """A skill that items asked for. A decided one is a rule: `skill_id` is what those who ask for it get.

    `asked_by` is how many items ask, MOST_COUNTED where they are more.
    """

    id: int
    suggested: SuggestedSkill
    state: SuggestionState
    asked_by: int
    created_at: datetime
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None
    skill_id: str | None = None


@dataclass(frozen=True)
class AuditEntry:
    """Who decided what, when."""

    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, object]
