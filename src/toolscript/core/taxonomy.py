"""Skills: categories of items, managed by people, that route tool search."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    # Skills are shown by commands that need no vectors, nor the library behind them.
    from toolscript.core.retrieval.model import Vector


# The same as for an item: the same model embeds both.
MAX_TEXT = 2_000

# Beyond this the exact number does not matter to a reviewer, and counting would be slow.
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
        """The text to embed: name, description and the names of example items."""
        parts = (self.name, self.description, ", ".join(self.examples))
        return ". ".join(part for part in parts if part)[:MAX_TEXT]

    @property
    def point_id(self) -> int:
        return skill_point_id(self.id)


def skill_point_id(skill_id: str, namespace: str = DEFAULT_NAMESPACE) -> int:
    """Return the id of the point that a skill has in a namespace: Qdrant needs a number."""
    name = skill_id if namespace == DEFAULT_NAMESPACE else f"{namespace}/{skill_id}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) >> 1


@dataclass(frozen=True)
class SkillEntry:
    """A skill of the taxonomy with the number of its active items.

    `enhanced_description` is made from its items, beside the description that people wrote and never over it. It
    is not matched. Empty until it was made.
    """

    skill: Skill
    tool_count: int
    created_at: datetime
    updated_at: datetime
    enhanced_description: str = ""


@dataclass(frozen=True)
class EnhancedDescription:
    """A description made from the items that a skill, as the entry has it, had in a namespace."""

    entry: SkillEntry
    namespace: str
    text: str
    source: AssignedBy


@dataclass(frozen=True)
class SuggestedSkill:
    """A skill that a classifier suggests because no existing one fits."""

    name: str
    description: str = ""

    @property
    def key(self) -> str:
        """A key that is equal for suggestions that differ only in case and punctuation."""
        return "_".join(re.findall(r"\w+", self.name.casefold()))


def skill_id_of(name: str) -> str:
    """Return an id for a name; empty if the name has no usable character."""
    plain = "_".join(re.findall(r"[a-z0-9]+", name.casefold()))
    return plain.lstrip("0123456789_")[:64].rstrip("_")


@dataclass(frozen=True)
class Unclassified:
    """An item to classify, with its vector."""

    item: Item
    vector: "Vector"


@dataclass(frozen=True)
class Classification:
    """The result of classifying an item: its skills, or a suggestion for a missing one."""

    assignments: tuple[Assignment, ...] = ()
    suggestion: SuggestedSkill | None = None


@dataclass(frozen=True)
class Classified:
    """The classification of an item at this version."""

    item_id: int
    version: int
    classification: Classification
    namespace: str = DEFAULT_NAMESPACE


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
    """Decision about a suggested skill."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MERGED = "merged"
    UNDONE = "undone"


class ProposalKind(StrEnum):
    """`suggestion` is a skill that classifiers asked for; a `new` one is proposed from the catalog."""

    SUGGESTION = "suggestion"
    NEW = "new"


@dataclass(frozen=True)
class ProposedChange:
    """What a proposal changes. `evidence` is plain data; `is_moving` while items wait to be classified again."""

    creates: tuple[Skill, ...] = ()
    evidence: Mapping[str, object] = field(default_factory=dict)
    is_moving: bool = False


@dataclass(frozen=True)
class Suggestion:
    """A suggested skill, by a classifier or from the catalog. A decided one is a rule: items with this suggestion
    get `skill_id`.

    `asked_by` is the number of items with this suggestion, at most MAX_COUNTED.
    """

    id: int
    suggested: SuggestedSkill
    state: SuggestionState
    asked_by: int
    created_at: datetime
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None
    skill_id: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    on_behalf_of: str | None = None
    kind: ProposalKind = ProposalKind.SUGGESTION
    change: ProposedChange | None = None


@dataclass(frozen=True)
class Actor:
    """Who decides. `on_behalf_of` is for whom, in the client's own words: nothing verifies it."""

    name: str
    on_behalf_of: str | None = None

    def __str__(self) -> str:
        return f"{self.name} on behalf of {self.on_behalf_of}" if self.on_behalf_of else self.name


# A program that authenticates nobody, as the command line, names the person alone.
DecidedBy = Actor | str


@dataclass(frozen=True)
class AuditEntry:
    """An entry of the audit log: actor, action, subject and time.

    `namespace` None: the subject is shared by all namespaces, as a skill is. `count` None: a job that has not
    ended, or an entry from before counts.
    """

    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, object]
    namespace: str | None = None
    on_behalf_of: str | None = None
    count: int | None = None
