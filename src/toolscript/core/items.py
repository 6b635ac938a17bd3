"""An item is a tool, a prompt or a resource of an MCP server: one path in, one path out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from toolscript.model.assignments import Assignment

JsonObject = Mapping[str, object]

# Numbers of items, and of whatever else has one, have 64 bits.
LARGEST_ID = 2**63 - 1


class ItemKind(StrEnum):
    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"


@dataclass(frozen=True)
class Item:
    """What a source says about one item. `key` names it within its source."""

    key: str
    kind: ItemKind
    server: str
    name: str
    description: str = ""
    server_description: str = ""
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject | None = None

    @property
    def is_document(self) -> bool:
        """A text of its own, which no server offers."""
        return not self.server

    @cached_property
    def fingerprint(self) -> str:
        """Changes exactly when something that is stored, searched or handed out changes."""
        parts = (
            self.kind,
            self.server,
            self.name,
            self.description,
            self.server_description,
            self.input_schema,
            self.output_schema,
            self.annotations,
        )
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class StoredItem:
    """An item of the catalog. `version` grows with every change of any item.

    `assignments` has the primary skill first; `needs_skills` until a classifier has looked at it as it is.
    """

    id: int
    version: int
    item: Item
    is_active: bool = True
    assignments: tuple[Assignment, ...] = ()
    needs_skills: bool = False

    @property
    def skill_ids(self) -> tuple[str, ...]:
        return tuple(one.skill_id for one in self.assignments)

    @property
    def primary_skill_id(self) -> str | None:
        return self.assignments[0].skill_id if self.assignments else None


@dataclass(frozen=True)
class Schemas:
    """What is loaded only for the items an answer returns."""

    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject | None = None


@dataclass(frozen=True)
class StoreReport:
    """What one batch did to the catalog; each item is counted once. `held` ones wait for a person."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    held: int = 0

    def __add__(self, other: "StoreReport") -> "StoreReport":
        return StoreReport(
            self.added + other.added,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.held + other.held,
        )


@dataclass(frozen=True)
class RefusedItem:
    """Something in a source that is not an item, where it stands and why."""

    where: str
    reason: str
