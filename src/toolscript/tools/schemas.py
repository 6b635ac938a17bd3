"""Requests and answers of tool search and skills: one schema each for HTTP and for what a client reads."""

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, RootModel, StrictBool

from toolscript.core.items import MOST_BY_HAND, SKILL_ID, AssignedBy, ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.taxonomy import SuggestionState
from toolscript.core.web.fields import QUERY_TEXT, Count
from toolscript.core.web.paging import Time
from toolscript.tools.model.answer import AbsenceReason, MatchedBy
from toolscript.tools.model.query import MAX_NAME, MAX_SKILLS, PRESETS, Preset, Strategy, ToolQuery
from toolscript.tools.model.skill_json import MAX_DESCRIPTION, MAX_WORD, MOST_WORDS
from toolscript.tools.model.skill_json import MAX_NAME as MAX_NAME_OF_SKILL_MODELS
from toolscript.tools.model.skills import MAX_ACTOR

Similarity = Annotated[float, Field(ge=0, le=1, strict=True)]


SEARCH_TYPE = (
    "`hybrid` ranks by meaning and words, `keyword` by words alone; `semantic` is literal mode: skills and items "
    "by the cosine of the query as it is, and nothing else. Null: what the installation has set, else `hybrid`."
)
Confidence = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="How likely this is the right item; null where one arm alone was asked for.",
    ),
]


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(
        description="What the tool should do, in plain words; 1 to 1,000 characters.",
        json_schema_extra=dict[str, Any](QUERY_TEXT),
    )
    item_type: ItemKind | None = Field(None, description="Only items of this kind.")
    limit: Count = Field(5, ge=1, le=MAX_LIMIT, description="Most items returned.")
    preset: Preset = Field(
        Preset.BALANCED,
        description="Both thresholds, of skill and of tool: `precision` 0.7 and 0.6, `balanced` 0.4 and 0.3, "
        "`recall` 0.2 and 0.1.",
    )
    tool_threshold: Similarity | None = Field(
        None, description="Least similarity of an item; the preset's if null."
    )
    skill_limit: Count = Field(
        3, ge=1, le=MAX_SKILLS, description="Most skills matched by vector; those matched by words come on top."
    )
    skill_threshold: Similarity | None = Field(
        None, description="Least similarity of a skill matched by vector; the preset's if null."
    )
    include_schemas: StrictBool = Field(True, description="Load the schemas of the items returned.")
    strategy: Strategy = Field(
        Strategy.HIERARCHICAL,
        description="`hierarchical` searches the items of the skills that match, `direct` all items, "
        "`hybrid` both ways at once.",
    )
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE)
    explain: StrictBool = Field(False, description="Have every item say how it came to its place.")
    why_not: str = Field(
        "",
        max_length=MAX_NAME,
        description="An item, by id or as `server__name`: `absence` says why it was not returned.",
    )

    def as_query(self, default: SearchType) -> ToolQuery:
        usual = PRESETS[self.preset]
        return ToolQuery(
            text=self.query,
            kind=self.item_type,
            limit=self.limit,
            threshold=usual.tool if self.tool_threshold is None else self.tool_threshold,
            search_type=resolve_search_type(self.search_type, default),
            strategy=self.strategy,
            include_schemas=self.include_schemas,
            skill_limit=self.skill_limit,
            skill_threshold=usual.skill if self.skill_threshold is None else self.skill_threshold,
            explain=self.explain,
            about=self.why_not,
        )


class SkillMatch(BaseModel):
    id: str
    name: str
    description: str
    score: float | None = Field(
        ge=0, le=1, description="Similarity to the query; null where there was no vector to compare."
    )
    tool_count: int = Field(description="How many items are in it.")
    matched_by: MatchedBy = Field(
        description="`vector`: its items are near the query; `words`: some of its items share the query's words."
    )


class ExplanationModel(BaseModel):
    place: int = Field(description="Place among all candidates, from 1; 0 for an item that no arm named.")
    parts: dict[str, float] = Field(description="What gave the item its standing; relative, no similarities.")
    similarity: float | None = Field(description="Cosine to the query; null where the dense arm did not name it.")
    word_score: float | None = Field(description="What its words gave; null where the word arm did not name it.")
    matched_skills: list[str] = Field(description="Those of its skills that the search was routed by.")


class ToolFound(BaseModel):
    id: str
    db_id: int
    type: ItemKind
    server: str
    name: str
    description: str
    score: float = Field(description="How similar it is to the query, 0 to 1; what thresholds are about.")
    confidence: Confidence
    skill_ids: list[str]
    primary_skill_id: str | None


class EnrichedTool(ToolFound):
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    explanation: ExplanationModel | None = Field(description="Null unless `explain` was asked for.")


class NearMiss(BaseModel):
    id: str
    type: ItemKind
    server: str
    name: str
    description: str
    score: float
    confidence: Confidence


class AbsenceModel(BaseModel):
    about: str
    reason: AbsenceReason
    message: str = Field(description="Why, and what would bring it back.")
    id: str | None
    name: str = Field(description="The item that was meant, as `server__name`; empty when there is none.")
    others: list[str] = Field(description="Items that may have been meant instead.")
    score: float | None = Field(description="Its score, where it is a candidate.")
    skill_ids: list[str]
    explanation: ExplanationModel | None


class Metadata(BaseModel):
    strategy_used: Strategy = Field(description="What really ran: without a matching skill a search is direct.")
    search_type_used: Literal["semantic", "keyword", "hybrid", "none"]
    skill_ids_used: list[str] | None = Field(description="The skills whose items were searched; null: all items.")
    stage1_skill_count: int
    stage2_candidate_count: int = Field(description="Items that reach the threshold, before the limit.")
    final_count: int
    unskilled_count: int | None = Field(
        description="About how many items are in no skill: `direct` and `hybrid` alone can find those. "
        "Null where the index did not answer."
    )
    query_embedding_time_ms: float
    skill_search_time_ms: float
    tool_search_time_ms: float
    ranking_time_ms: float = Field(description="The ranking's part of `tool_search_time_ms`.")
    schema_load_time_ms: float
    total_time_ms: float
    degraded: list[str]
    index: str = Field(description="Fingerprint of the one index, and so of the one model, behind this answer.")
    good_match: bool | None = Field(
        description="The verdict on the best item, whatever the threshold: false, it is a guess. "
        "Null where one arm alone was asked for."
    )
    unmatched_words: list[str] = Field(description="Words of the query that none of the best candidates has.")
    near_misses: list[NearMiss] = Field(description="The best below the threshold, when nothing reaches it.")


class SearchResponse(BaseModel):
    query: str
    tools: list[EnrichedTool]
    matched_skills: list[SkillMatch]
    metadata: Metadata
    absence: AbsenceModel | None = Field(description="What became of `why_not`; null when nobody asked.")


class ToolsFound(RootModel[list[ToolFound]]): ...


class SkillsFound(RootModel[list[SkillMatch]]): ...


ID_PATTERN = f"^{SKILL_ID.pattern}$"

StatusAsked = Literal["pending", "approved", "rejected", "merged", "all"]
Person = Annotated[str, Field(min_length=1, max_length=MAX_ACTOR, description="Who decides; it is recorded.")]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=MAX_WORD)]], Field(max_length=MOST_WORDS)]
SkillId = Annotated[str, Field(pattern=ID_PATTERN)]
SkillIdInPath = Annotated[str, Path(pattern=ID_PATTERN, description="Id of a skill.")]
Routing = Annotated[
    Literal["done", "pending"],
    Field(description="`done`: searches follow this already. `pending`: they will once a worker has run."),
]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _left_out(**limits: Any) -> Any:
    """A field that may be left out; what it is then is no value that could be sent."""
    return Field("", json_schema_extra=_without_default, **limits)


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SkillFields(Body):
    name: str = Field(min_length=1, max_length=MAX_NAME_OF_SKILL_MODELS)
    description: str = Field("", max_length=MAX_DESCRIPTION, description="What the skill covers.")
    parent_domain: SkillId | None = Field(None, description="A group of skills, named like an id.")
    keywords: Words = Field([], description="Words that tell that an item belongs here.")
    examples: Words = Field([], description="Names of items that belong here.")
    is_active: StrictBool = Field(True, description="Whether searches are routed by it.")
    by: Person = "api"


class NewSkill(SkillFields):
    id: SkillId


class SkillChanges(Body):
    """What is left out stays as it is."""

    name: str = _left_out(min_length=1, max_length=MAX_NAME_OF_SKILL_MODELS)
    description: str = _left_out(max_length=MAX_DESCRIPTION)
    parent_domain: SkillId | None = None
    keywords: Words = []
    examples: Words = []
    is_active: StrictBool = True
    by: Person = "api"


class SkillShown(BaseModel):
    id: str
    name: str
    description: str
    parent_domain: str | None
    keywords: list[str]
    examples: list[str]
    is_active: bool
    tool_count: int = Field(description="How many items the index counts in it.")
    created_at: Time
    updated_at: Time


class SkillWritten(SkillShown):
    routing: Routing


class SkillPage(BaseModel):
    skills: list[SkillShown]
    next: str | None = Field(description="`after` of the next page; null at the end.")


class Assigned(BaseModel):
    skill_id: str
    confidence: float
    source: AssignedBy
    reason: str
    is_primary: bool


class ItemShown(BaseModel):
    id: str
    db_id: int
    type: ItemKind
    server: str
    name: str
    description: str


class MemberShown(ItemShown, Assigned): ...


class MemberPage(BaseModel):
    tools: list[MemberShown]
    next: int | None


class ItemSkills(BaseModel):
    tool_id: int
    skills: list[Assigned] = Field(description="The primary one first.")


class AssignRequest(Body):
    skill_ids: list[SkillId] = Field(
        max_length=MOST_BY_HAND, description="The primary one first; an empty list keeps the item out of all."
    )
    reviewer: Person


class ReviewRequest(Body):
    reviewer: Person


class ApprovedSkill(Body):
    """What is to differ from what was suggested."""

    id: SkillId = _left_out(description="Otherwise made from the name.")
    name: str = _left_out(min_length=1, max_length=MAX_NAME_OF_SKILL_MODELS)
    description: str = _left_out(max_length=MAX_DESCRIPTION)
    parent_domain: SkillId | None = None
    keywords: Words = []
    examples: Words = []


class ApproveRequest(ReviewRequest):
    skill: ApprovedSkill = Field(default_factory=ApprovedSkill.model_construct)


class MergeRequest(ReviewRequest):
    into: SkillId = Field(description="The active skill that those who ask for it get, now and later.")


class SuggestionShown(BaseModel):
    id: int
    name: str
    description: str
    status: SuggestionState
    asked_by: int = Field(description="How many items ask for it.")
    created_at: Time
    reviewed_by: str | None
    reviewed_at: Time | None
    skill_id: str | None = Field(description="What those who ask for it get.")


class SuggestionDecided(SuggestionShown):
    routing: Routing


class SuggestionPage(BaseModel):
    suggestions: list[SuggestionShown]
    next: int | None


class NearSkill(BaseModel):
    id: str
    name: str
    score: float = Field(description="Cosine of the two texts.")


class SuggestionEvidence(SuggestionShown):
    items: list[ItemShown] = Field(description="Items that ask for it; descriptions are cut.")
    next: int | None = Field(description="`after` of the next items; null at the end.")
    nearest: list[NearSkill] | None = Field(description="Active skills that mean the most alike; null: no model.")


class AuditShown(BaseModel):
    id: int
    at: Time
    actor: str
    action: str
    subject: str
    details: dict[str, object]


class AuditPage(BaseModel):
    entries: list[AuditShown] = Field(description="Latest first.")
    next: int | None = Field(description="`before` of the next page; null at the end.")
