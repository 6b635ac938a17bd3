"""Requests and responses about skills: one model each for HTTP, MCP and `--json`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.core.items import MAX_MANUAL_ASSIGNMENTS, SKILL_ID, AssignedBy, Assignment, ItemKind, StoredItem
from toolscript.core.taxonomy import AuditEntry, Member, SkillEntry, Suggestion, SuggestionState
from toolscript.core.web.fields import Time, model_of
from toolscript.tools.model.skill_json import (
    MAX_DESCRIPTION,
    MAX_EVIDENCE,
    MAX_NAME,
    MAX_WORD,
    MAX_WORDS,
    skill_to_json,
)
from toolscript.tools.model.skills import MAX_ACTOR, Evidence
from toolscript.tools.model.skills import NearSkill as Near

ID_PATTERN = f"^{SKILL_ID.pattern}$"

StatusFilter = Literal["pending", "approved", "rejected", "merged", "all"]
Person = Annotated[
    str, Field(min_length=1, max_length=MAX_ACTOR, description="Name of the reviewer, for the audit.")
]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=MAX_WORD)]], Field(max_length=MAX_WORDS)]
SkillId = Annotated[str, Field(pattern=ID_PATTERN)]
Routing = Annotated[
    Literal["done", "pending"],
    Field(description="`done`: searches use the change already. `pending`: they will once a worker has run."),
]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _optional(**limits: Any) -> Any:
    """Return an optional field whose default is not a valid value and not part of the schema."""
    return Field("", json_schema_extra=_without_default, **limits)


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SkillFields(Body):
    name: str = Field(min_length=1, max_length=MAX_NAME)
    description: str = Field("", max_length=MAX_DESCRIPTION, description="What the skill covers.")
    parent_domain: SkillId | None = Field(None, description="A group of skills, named like an id.")
    keywords: Words = Field([], description="Words that indicate that an item belongs here.")
    examples: Words = Field([], description="Names of items that belong here.")
    is_active: StrictBool = Field(True, description="Whether searches are routed to it.")
    by: Person = "api"


class NewSkill(SkillFields):
    id: SkillId


class SkillChanges(Body):
    """Changes of a skill. Omitted fields stay unchanged."""

    name: str = _optional(min_length=1, max_length=MAX_NAME)
    description: str = _optional(max_length=MAX_DESCRIPTION)
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
    tool_count: int = Field(description="Number of its items in the index.")
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, entry: SkillEntry, **more: Any) -> Self:
        return model_of(cls, entry, **skill_to_json(entry.skill), **more)


class SkillWritten(SkillShown):
    routing: Routing


class SkillPage(BaseModel):
    skills: list[SkillShown]
    next: str | None = Field(description="`after` of the next page; null at the end.")

    @classmethod
    def of(cls, entries: Sequence[SkillEntry], limit: int) -> Self:
        """Build a page. `entries` has one more than `limit` if there is a next page; the same for all pages."""
        skills = [SkillShown.of(entry) for entry in entries[:limit]]
        return cls.model_construct(skills=skills, next=skills[-1].id if len(entries) > limit else None)


class Assigned(BaseModel):
    skill_id: str
    confidence: float
    source: AssignedBy
    reason: str
    is_primary: bool

    @classmethod
    def of(cls, assignment: Assignment, *, is_primary: bool) -> Self:
        return model_of(cls, assignment, is_primary=is_primary)


class ItemShown(BaseModel):
    id: str
    db_id: int
    type: ItemKind
    server: str
    name: str
    description: str


class MemberShown(ItemShown, Assigned):
    @classmethod
    def of_member(cls, member: Member) -> Self:
        assigned = dict(Assigned.of(member.assignment, is_primary=member.is_primary))
        return model_of(cls, member, id=str(member.item_id), db_id=member.item_id, type=member.kind, **assigned)


class MemberPage(BaseModel):
    tools: list[MemberShown]
    next: int | None

    @classmethod
    def of(cls, members: Sequence[Member], limit: int) -> Self:
        tools = [MemberShown.of_member(member) for member in members[:limit]]
        return cls.model_construct(tools=tools, next=tools[-1].db_id if len(members) > limit else None)


class ItemSkills(BaseModel):
    tool_id: int
    skills: list[Assigned] = Field(description="The primary one first.")

    @classmethod
    def of(cls, item_id: int, assignments: Sequence[Assignment]) -> Self:
        assigned_skills = [
            Assigned.of(assignment, is_primary=place == 0) for place, assignment in enumerate(assignments)
        ]
        return cls.model_construct(tool_id=item_id, skills=assigned_skills)


class AssignRequest(Body):
    skill_ids: list[SkillId] = Field(
        max_length=MAX_MANUAL_ASSIGNMENTS,
        description="The primary one first; with an empty list the item is in no skill.",
    )
    reviewer: Person


class ReviewRequest(Body):
    reviewer: Person


class ApprovedSkill(Body):
    """The reviewer's changes to the suggested skill."""

    id: SkillId = _optional(description="By default derived from the name.")
    name: str = _optional(min_length=1, max_length=MAX_NAME)
    description: str = _optional(max_length=MAX_DESCRIPTION)
    parent_domain: SkillId | None = None
    keywords: Words = []
    examples: Words = []


class ApproveRequest(ReviewRequest):
    skill: ApprovedSkill = Field(default_factory=ApprovedSkill.model_construct)


class MergeRequest(ReviewRequest):
    into: SkillId = Field(description="The active skill assigned to the items that request it, now and later.")


class SuggestionShown(BaseModel):
    id: int
    name: str
    description: str
    status: SuggestionState
    asked_by: int = Field(description="Number of items that request it.")
    created_at: Time
    reviewed_by: str | None
    reviewed_at: Time | None
    skill_id: str | None = Field(description="The skill assigned to the items that request it.")

    @classmethod
    def of(cls, suggestion: Suggestion, **more: Any) -> Self:
        skill = suggestion.suggested
        return model_of(
            cls, suggestion, name=skill.name, description=skill.description, status=suggestion.state, **more
        )


class SuggestionDecided(SuggestionShown):
    routing: Routing


class SuggestionPage(BaseModel):
    suggestions: list[SuggestionShown]
    next: int | None

    @classmethod
    def of(cls, suggestions: Sequence[Suggestion], limit: int) -> Self:
        page = [SuggestionShown.of(suggestion) for suggestion in suggestions[:limit]]
        return cls.model_construct(suggestions=page, next=page[-1].id if len(suggestions) > limit else None)


class NearSkill(BaseModel):
    id: str
    name: str
    score: float = Field(description="Cosine of the two texts.")

    @classmethod
    def of(cls, near: Near) -> Self:
        return cls.model_construct(id=near.skill.id, name=near.skill.name, score=near.score)


class SuggestionEvidence(SuggestionShown):
    items: list[ItemShown] = Field(description="Items that request it; descriptions are truncated.")
    next: int | None = Field(description="`after` of the next items; null at the end.")
    nearest: list[NearSkill] | None = Field(description="The most similar active skills; null without a model.")

    @classmethod
    def of_evidence(cls, evidence: Evidence) -> Self:
        near = evidence.nearest
        return cls.of(
            evidence.suggestion,
            items=[_evidence_item(stored) for stored in evidence.items],
            next=evidence.more_after,
            nearest=None if near is None else [NearSkill.of(skill) for skill in near],
        )


class AuditShown(BaseModel):
    id: int
    at: Time
    actor: str
    action: str
    subject: str
    details: dict[str, object]

    @classmethod
    def of(cls, number: int, entry: AuditEntry) -> Self:
        return model_of(cls, entry, id=number)


class AuditPage(BaseModel):
    entries: list[AuditShown] = Field(description="Latest first.")
    next: int | None = Field(description="`before` of the next page; null at the end.")

    @classmethod
    def of(cls, numbered: Sequence[tuple[int, AuditEntry]], limit: int) -> Self:
        entries = [AuditShown.of(number, entry) for number, entry in numbered[:limit]]
        return cls.model_construct(entries=entries, next=entries[-1].id if len(numbered) > limit else None)


def _evidence_item(stored: StoredItem) -> ItemShown:
    """Return an item as evidence, with a truncated description."""
    item = stored.item
    description = item.description[:MAX_EVIDENCE]
    return model_of(ItemShown, item, id=str(stored.id), db_id=stored.id, type=item.kind, description=description)
