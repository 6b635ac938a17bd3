"""Queries are values that cannot exist when they are invalid."""

from dataclasses import dataclass
from enum import StrEnum

from toolscript.core.items import SKILL_ID, ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, readable_query, require
from toolscript.core.text import readable

MAX_SKILLS = 32
MAX_SERVERS = 32
MAX_NAME = 500


class Strategy(StrEnum):
    """Which items are searched: those of the skills that match the query, all items, or both at once."""

    HIERARCHICAL = "hierarchical"
    DIRECT = "direct"
    HYBRID = "hybrid"


class Preset(StrEnum):
    """Thresholds by name, from few and sure results to many."""

    PRECISION = "precision"
    BALANCED = "balanced"
    RECALL = "recall"


@dataclass(frozen=True)
class Thresholds:
    """The minimum similarity to the query, of a skill and of a tool."""

    skill: float
    tool: float


PRESETS = {
    Preset.PRECISION: Thresholds(skill=0.7, tool=0.6),
    Preset.BALANCED: Thresholds(skill=0.4, tool=0.3),
    Preset.RECALL: Thresholds(skill=0.2, tool=0.1),
}
USUAL = PRESETS[Preset.BALANCED]


@dataclass(frozen=True)
class SkillQuery:
    """A search for the best `limit` skills that reach the threshold."""

    text: str
    limit: int = 5
    threshold: float = USUAL.skill
    search_type: SearchType = SearchType.HYBRID
    namespaces: tuple[str, ...] = (DEFAULT_NAMESPACE,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", readable_query(self.text))
        require(1 <= self.limit <= MAX_SKILLS, "limit", f"must be 1 to {MAX_SKILLS}")
        require(0.0 <= self.threshold <= 1.0, "threshold", "must be 0 to 1")


@dataclass(frozen=True)
class ToolQuery:
    """`skill_ids` are skills that the client names: only their items are searched, whatever the strategy.

    `servers` are MCP servers by name: only their items are searched; empty for all.

    `explain` adds an explanation to every hit; `about` is an item, by id or by name, whose absence is explained.
    """

    text: str
    kind: ItemKind | None = None
    limit: int = 5
    threshold: float = USUAL.tool
    search_type: SearchType = SearchType.HYBRID
    strategy: Strategy = Strategy.HIERARCHICAL
    include_schemas: bool = True
    skill_ids: tuple[str, ...] = ()
    skill_limit: int = 3
    skill_threshold: float = USUAL.skill
    explain: bool = False
    about: str = ""
    namespaces: tuple[str, ...] = (DEFAULT_NAMESPACE,)
    servers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", readable_query(self.text))
        require(1 <= self.limit <= MAX_LIMIT, "limit", f"must be 1 to {MAX_LIMIT}")
        require(0.0 <= self.threshold <= 1.0, "threshold", "must be 0 to 1")
        require(1 <= self.skill_limit <= MAX_SKILLS, "skill_limit", f"must be 1 to {MAX_SKILLS}")
        require(0.0 <= self.skill_threshold <= 1.0, "skill_threshold", "must be 0 to 1")
        require(len(self.about) <= MAX_NAME, "about", f"is longer than {MAX_NAME} characters")
        require(len(self.skill_ids) <= MAX_SKILLS, "skill_ids", f"at most {MAX_SKILLS} at once")
        for skill in self.skill_ids:
            require(bool(SKILL_ID.fullmatch(skill)), "skill_ids", f"{skill[:80]!r} is not a skill id")
        require(len(self.servers) <= MAX_SERVERS, "servers", f"at most {MAX_SERVERS} at once")
        for server in self.servers:
            require(len(server) <= MAX_NAME, "servers", f"a name is at most {MAX_NAME} characters")
        object.__setattr__(self, "servers", tuple(map(readable, self.servers)))
