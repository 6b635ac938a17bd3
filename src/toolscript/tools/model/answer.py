"""Answers of tool search."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from toolscript.core.items import ItemKind, Schemas
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.tools.model.query import Strategy

# Hints where nothing fits, and where something fits that does not reach the threshold.
OTHER_WORDS = "try other words"
LOWER_THRESHOLD = "a lower threshold shows the nearest"


class MatchedBy(StrEnum):
    """How a skill matched the query: by its centroid, or by words of some of its items."""

    VECTOR = "vector"
    WORDS = "words"


@dataclass(frozen=True)
class MatchedSkill:
    """`score` is the similarity to the query, None when there was no vector to compare."""

    id: str
    name: str
    description: str
    score: float | None
    tool_count: int
    matched_by: MatchedBy


@dataclass(frozen=True)
class Explanation:
    """How an item got its place. `parts` are the contributions to its score; they are no similarities.

    `similarity` is the cosine and `word_score` the BM25 score; None if that retriever did not return the item.
    `matched_skills` are those of its skills that the query was routed to. `promoted_for` are the words of the rule
    that promotes it, None without one.
    """

    place: int
    parts: Mapping[str, float] = field(default_factory=dict)
    similarity: float | None = None
    word_score: float | None = None
    matched_skills: tuple[str, ...] = ()
    promoted_for: str | None = None


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
    namespace: str = DEFAULT_NAMESPACE


class AbsenceReason(StrEnum):
    """Why an item was not returned."""

    RETURNED = "returned"
    UNKNOWN = "unknown"
    OTHER_KIND = "other_kind"
    OTHER_SERVER = "other_server"
    EXCLUDED = "excluded"
    NO_SKILL = "no_skill"
    SKILLS_NOT_MATCHED = "skills_not_matched"
    NOT_A_CANDIDATE = "not_a_candidate"
    BELOW_THRESHOLD = "below_threshold"
    BEYOND_LIMIT = "beyond_limit"
    NOTHING_SEARCHED = "nothing_searched"


@dataclass(frozen=True)
class WhyNotAnswer:
    """Why the item in the request was not returned; `message` also says how to get it returned.

    `others` are other items that the request may refer to.
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
class ToolStep:
    """One step of a request for several things, the hits for it alone, and whether something fits it.

    `near_misses` are the nearest items where it has no hits.
    """

    query: str
    hits: tuple[ToolHit, ...]
    good_match: bool
    near_misses: tuple[ToolHit, ...] = ()


@dataclass(frozen=True)
class ToolAnswer:
    """`degraded` names every part that failed; it is empty when none did.

    `near_misses` are the best items below the threshold, when none reaches it. `good_match` says whether
    something fits, and is among the hits, None when vectors alone were requested; `fit` is the logit of that.
    `unmatched` are the words that no candidate has. `steps` has an answer for each step of a request for several
    things, and is empty for a single one.
    `strategy_used` is the strategy that actually ran; `skill_ids_used` are the skills whose items were searched,
    None for all items. About `unskilled_count` items are in no skill, and only a search of all items can find
    them; None when the index did not answer. `index` is the fingerprint of the index version that answered, and
    `weights_version` that of the ranking weights, None when a single retriever was requested. `rules` say what the
    rules of people did to the results, None unless an explanation was requested. `hint` says what to do where
    nothing fits, where what fits does not reach the threshold, and where the model does not know the language of
    the query. `corrected` has the words that were read as others, and `read_as` the query as it was read, if that
    is not how it was typed.
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
    fit: float | None = None
    unmatched: tuple[str, ...] = ()
    steps: tuple[ToolStep, ...] = ()
    strategy_used: Strategy = Strategy.DIRECT
    skills: tuple[MatchedSkill, ...] = ()
    skill_ids_used: tuple[str, ...] | None = None
    unskilled_count: int | None = None
    absence: WhyNotAnswer | None = None
    weights_version: str | None = None
    rules: tuple[str, ...] | None = None
    hint: str | None = None
    corrected: Mapping[str, str] = field(default_factory=dict)
    read_as: str | None = None

    @property
    def all_hits(self) -> tuple[ToolHit, ...]:
        """The hits of the steps in their order, then all others; each item once."""
        hits: dict[int, ToolHit] = {}
        for hit in (*(hit for step in self.steps for hit in step.hits), *self.hits):
            hits.setdefault(hit.id, hit)
        return tuple(hits.values())


@dataclass(frozen=True)
class SkillAnswer:
    """`index` is the fingerprint of the index version that answered."""

    skills: tuple[MatchedSkill, ...]
    degraded: tuple[str, ...] = ()
    search_type_used: str = "hybrid"
    # It differs between two equal searches.
    took_ms: float = field(default=0.0, compare=False)
    index: str = ""
