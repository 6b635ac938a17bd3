"""Items of MCP servers: tools, prompts and resources, their names and the skills they are in."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from toolscript.core.errors import InvalidRequest
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.text import has_invisible, readable

SKILL_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
MIN_CONFIDENCE = 0.5
MAX_ASSIGNMENTS = 3
MAX_MANUAL_ASSIGNMENTS = 10
MAX_REASON = 300

JsonObject = Mapping[str, object]

# Ids of items, and all other numeric ids, have 64 bits.
MAX_ID = 2**63 - 1

SEPARATOR = "__"
CLIENT_PREFIX = "mcp__toolscript__"

# Scripts with letters that look Latin. A name written in only one of them is fine.
LOOK_ALIKE_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH LATIN", "MATHEMATICAL")
INVISIBLE = frozenset({"Cf", "Co", "Cs"})

# How servers say that a tool should no longer be used: first in a line, in capitals before a colon or a full stop,
# last in the description, or in a sentence.
_DEPRECATED = re.compile(
    r"(?im:^\W*deprecated\b(?!\s+(?!tool|since|as of|and|use|in favou?r|from)[a-z]))"
    r"|\bDEPRECATED(?=\s*[:!.,)\]–—-])"
    r"|(?i:[\[(]deprecated[\])]\W*\Z)"
    r"|(?i:\bthis (?:tool|function|method|endpoint|command|operation|action|api)"
    r"(?: is| has been| was)(?: now)? deprecated\b)"
)
_DEPRECATED_NAME = re.compile(r"(?:^|[_\W])deprecated(?:$|[_\W])", re.IGNORECASE)
_MAX_NOTICE = 2_000

_SENT_BACK = ("const", "enum", "required")
_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired")


class AssignedBy(StrEnum):
    """Who assigned a skill to an item."""

    LLM = "llm"
    RULES = "rules"
    HUMAN = "human"


@dataclass(frozen=True)
class Assignment:
    """An item's membership in a skill, with its confidence and its source."""

    skill_id: str
    confidence: float
    source: AssignedBy
    reason: str = ""

    @property
    def weight(self) -> int:
        """The confidence in ten-thousandths: integers add and subtract without rounding errors."""
        return round(self.confidence * 10_000)


def valid_assignments(assignments: Sequence[Assignment], skill_ids: frozenset[str]) -> tuple[Assignment, ...]:
    """Return the usable assignments of a classifier: existing skills, each once, at least MIN_CONFIDENCE,
    at most MAX_ASSIGNMENTS, best first."""
    best: dict[str, Assignment] = {}
    for assignment in assignments:
        kept = best.get(assignment.skill_id)
        if assignment.skill_id in skill_ids and (kept is None or kept.confidence < assignment.confidence):
            best[assignment.skill_id] = assignment
    sure = [_tidy(assignment) for assignment in best.values() if MIN_CONFIDENCE <= assignment.confidence <= 1.0]
    return tuple(
        sorted(sure, key=lambda assignment: (-assignment.confidence, assignment.skill_id))[:MAX_ASSIGNMENTS]
    )


def _tidy(assignment: Assignment) -> Assignment:
    return replace(assignment, confidence=round(assignment.confidence, 4), reason=assignment.reason[:MAX_REASON])


class ItemKind(StrEnum):
    """What an MCP server offers: tool, prompt or resource."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"


@dataclass(frozen=True)
class Item:
    """An item as its source defines it. `key` identifies it within its source.

    `definition` is what an MCP server sent, whole, as canonical JSON; it is empty for items from elsewhere.
    """

    key: str
    kind: ItemKind
    server: str
    name: str
    description: str = ""
    server_description: str = ""
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject | None = None
    definition: str = field(default="", repr=False)

    @property
    def is_document(self) -> bool:
        """Whether the item is a stand-alone text. A tool is none, even one that no server offers."""
        return not self.server and self.kind is not ItemKind.TOOL

    @cached_property
    def is_deprecated(self) -> bool:
        """Whether its definition, its name or its description says that it should no longer be used."""
        stated = (self.annotations or {}).get("deprecated")
        if stated is not None:
            return stated is True or (isinstance(stated, str) and bool(stated))
        if "deprecated" in self.name.lower() and _DEPRECATED_NAME.search(self.name):
            return True
        if '"deprecated"' in self.definition and _states_deprecation(self.definition):
            return True
        start = self.description[:_MAX_NOTICE]
        return "deprecated" in start.lower() and _DEPRECATED.search(start) is not None

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes exactly when something stored, searched or returned changes."""
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


def _states_deprecation(definition: str) -> bool:
    """Return whether a definition says so itself, or in its `_meta`; an argument may be called `deprecated`."""
    try:
        whole = json.loads(definition)
    except (ValueError, RecursionError):
        return False
    places = [whole, whole.get("_meta")] if isinstance(whole, Mapping) else []
    return any(isinstance(place, Mapping) and place.get("deprecated") not in (None, False, "") for place in places)


@dataclass(frozen=True)
class StoredItem:
    """An item of the catalog. `version` grows with every change of any item.

    `assignments` has the primary skill first; `needs_skills` is true until a classifier has seen this version.
    """

    id: int
    version: int
    item: Item
    is_active: bool = True
    assignments: tuple[Assignment, ...] = ()
    needs_skills: bool = False
    namespace: str = DEFAULT_NAMESPACE

    @property
    def skill_ids(self) -> tuple[str, ...]:
        return tuple(assignment.skill_id for assignment in self.assignments)

    @property
    def primary_skill_id(self) -> str | None:
        return self.assignments[0].skill_id if self.assignments else None


@dataclass(frozen=True)
class Schemas:
    """The schemas of an item, loaded only for the items of a response."""

    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject | None = None


@dataclass(frozen=True)
class StoreReport:
    """The effect of a batch on the catalog; each item counts once. `held` items wait for approval."""

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
    """An entry of a source that is not a valid item: its place and the reason."""

    where: str
    reason: str


def tool_id(server: str, name: str) -> str:
    return f"{server}{SEPARATOR}{name}"


def split_tool_id(text: str) -> tuple[str, str]:
    """Return server and tool name, without the prefix that clients add to names of this MCP endpoint."""
    server, separator, name = readable(text).removeprefix(CLIENT_PREFIX).partition(SEPARATOR)
    if not (server and separator and name):
        raise InvalidRequest(
            f"{text[:200]!r} is not the name of a tool",
            hint="write server__tool, as search results do",
        )
    return server, name


def is_allowed(server: str, name: str, allowed: Collection[str]) -> bool:
    """Return whether a filter of servers and `server__tool` names allows a tool; an empty one allows all."""
    return not allowed or server in allowed or tool_id(server, name) in allowed


def why_misleading(name: str) -> str:
    """Return why a server name is misleading; empty if it is fine."""
    if "__" in name or name.endswith("_"):
        return "must not have `__` in it or `_` at its end: a tool is called server__tool"
    hidden = [char for char in name if unicodedata.category(char) in INVISIBLE]
    if hidden:
        return f"has an invisible character: U+{ord(hidden[0]):04X}"
    return mixed_scripts(name)


def mixed_scripts(name: str) -> str:
    """Return which letter imitates a Latin one among Latin letters; empty if none does."""
    letters = [char for char in name if char.isalpha()]
    if not any(char.isascii() for char in letters):
        return ""
    for char in letters:
        if not char.isascii() and unicodedata.name(char, "").startswith(LOOK_ALIKE_SCRIPTS):
            described = unicodedata.name(char).lower()
            return f"mixes Latin letters with one that looks like them: {char!r}, {described} (U+{ord(char):04X})"
    return ""


def why_hidden(item: Item) -> str:
    """Return why an item must be hidden; empty if it can be shown and called."""
    if has_invisible(item.name) or any(char in item.name for char in "\r\n\t"):
        return f"its name has an invisible character: {ascii(item.name)[:80]}"
    if why := mixed_scripts(item.name):
        return f"its name {why}"
    hidden = next((text for text in _sent_back(item.input_schema) if has_invisible(text)), None)
    return "" if hidden is None else f"its arguments have an invisible character: {ascii(hidden)[:80]}"


def _sent_back(schema: object) -> Iterator[str]:
    """Yield the names of arguments, and the values an argument may have: a client sends them back."""
    if isinstance(schema, list | tuple):
        for inner in schema:
            yield from _sent_back(inner)
    if not isinstance(schema, Mapping):
        return
    for key, inner in schema.items():
        if key in _SENT_BACK:
            yield from _texts(inner)
        elif key in _NAMES and isinstance(inner, Mapping):
            # A key named like a JSON Schema keyword is an argument's name here.
            yield from map(str, inner)
            yield from _sent_back([*inner.values()])
        else:
            yield from _sent_back(inner)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
