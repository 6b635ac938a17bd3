"""The JSON of skills, suggestions and assignments over HTTP, as OpenAPI describes it."""

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.model.assignments import MOST_BY_HAND, SKILL_ID, AssignedBy
from toolscript.model.decisions import MAX_ACTOR
from toolscript.model.items import ItemKind
from toolscript.model.skill_json import MAX_DESCRIPTION, MAX_NAME, MAX_WORD, MOST_WORDS
from toolscript.model.skills import SuggestionState
from toolscript.surfaces.http.pages import Time

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
    name: str = Field(min_length=1, max_length=MAX_NAME)
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

    name: str = _left_out(min_length=1, max_length=MAX_NAME)
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
    name: str = _left_out(min_length=1, max_length=MAX_NAME)
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
