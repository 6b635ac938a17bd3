"""Queries are values that cannot exist when they are invalid."""

from dataclasses import dataclass
from enum import StrEnum

from toolscript.errors import BlankQuery, InvalidRequest
from toolscript.model.assignments import SKILL_ID
from toolscript.model.items import ItemKind
from toolscript.model.text import readable

MAX_QUERY = 1_000
MAX_LIMIT = 100
MAX_SKILLS = 32


class SearchType(StrEnum):
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class Strategy(StrEnum):
    DIRECT = "direct"


@dataclass(frozen=True)
class ToolQuery:
    text: str
    kind: ItemKind | None = None
    limit: int = 5
    threshold: float = 0.3
    search_type: SearchType = SearchType.HYBRID
    strategy: Strategy = Strategy.DIRECT
    include_schemas: bool = True
    skill_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require(len(self.text) <= MAX_QUERY, "query", f"is longer than {MAX_QUERY} characters")
        object.__setattr__(self, "text", readable(self.text))
        if not self.text.strip():
            raise BlankQuery("the query is blank", hint="say in a few words what the tool should do")
        _require(1 <= self.limit <= MAX_LIMIT, "limit", f"must be 1 to {MAX_LIMIT}")
        _require(0.0 <= self.threshold <= 1.0, "threshold", "must be 0 to 1")
        _require(len(self.skill_ids) <= MAX_SKILLS, "skill_ids", f"at most {MAX_SKILLS} at once")
        for skill in self.skill_ids:
            _require(bool(SKILL_ID.fullmatch(skill)), "skill_ids", f"{skill[:80]!r} is not a skill id")


def _require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise InvalidRequest(f"{field} {problem}", details={"field": field})
