"""What a search answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from toolscript.core.items import ItemKind, Schemas
from toolscript.tools.model.query import Strategy


class MatchedBy(StrEnum):
    """What a skill shares with the query: the vector of its items, or the words of some of them."""

    VECTOR = "vector"
    WORDS = "words"


@dataclass(frozen=True)
class MatchedSkill:
    """`score` is its similarity to the query, None where there was no vector to compare."""

    id: str
    name: str
    description: str
    score: float | None
    tool_count: int
    matched_by: MatchedBy


@dataclass(frozen=True)
class Explanation:
    """How an item came to its place. `parts` are what gave it its standing; they are no similarities.

    `similarity` is the cosine and `word_score` what the word arm gave; None where that arm did not name it.
    `matched_skills` are those of its skills that the query was routed by.
    """

    place: int
    parts: Mapping[str, float] = field(default_factory=dict)
    similarity: float | None = None
    word_score: float | None = None
    matched_skills: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolHit:
    id: int
    kind: ItemKind
    server: str
    name: str
    description: str
    score: float
    skill_ids: tuple[str, ...] = ()
    primary_skill_id: str | None = None
    schemas: Schemas = field(default_factory=Schemas)
    confidence: float | None = None
    explanation: Explanation | None = None


class AbsenceReason(StrEnum):
    """Why an item is not among those returned."""

    RETURNED = "returned"
    UNKNOWN = "unknown"
    OTHER_KIND = "other_kind"
    NO_SKILL = "no_skill"
    SKILLS_NOT_MATCHED = "skills_not_matched"
    NOT_A_CANDIDATE = "not_a_candidate"
    BELOW_THRESHOLD = "below_threshold"
    BEYOND_LIMIT = "beyond_limit"
    NOTHING_SEARCHED = "nothing_searched"


@dataclass(frozen=True)
class WhyNotAnswer:
    """What became of one item that the caller asked about, and in `message` what would bring it back.

    `others` are items that may have been meant.
    """

    about: str
    reason: AbsenceReason
    message: str
    id: int | None = None
    name: str = ""
    score: float | None = None
    explanation: Explanation | None = None
    skill_ids: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timings:
    """Milliseconds per stage; a stage that did not run took 0. `ranking` is part of `tool_search`."""

    query_embedding: float = 0.0
    skill_search: float = 0.0
    tool_search: float = 0.0
    ranking: float = 0.0
    schema_load: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class ToolAnswer:
    """`degraded` names every part that failed; it is empty when all was well.

    `near_misses` are the best below the threshold, when nothing reaches it. `good_match` is the verdict on the
    best, None where one arm alone was asked for; `unmatched` are the words that none of the candidates has.
    `strategy_used` is what really ran; `skill_ids_used` are the skills whose items were searched, None where all
    were. About `unskilled_count` items are in no skill, and only a search of all items can find them; None where
    the index did not answer.
    """

    query: str
    hits: tuple[ToolHit, ...]
    candidate_count: int
    search_type_used: str
    timings: Timings
    degraded: tuple[str, ...] = ()
    index: str = ""
    near_misses: tuple[ToolHit, ...] = ()
    good_match: bool | None = None
    unmatched: tuple[str, ...] = ()
    strategy_used: Strategy = Strategy.DIRECT
    skills: tuple[MatchedSkill, ...] = ()
    skill_ids_used: tuple[str, ...] | None = None
    unskilled_count: int | None = None
    absence: WhyNotAnswer | None = None


@dataclass(frozen=True)
class SkillAnswer:
    skills: tuple[MatchedSkill, ...]
    degraded: tuple[str, ...] = ()
