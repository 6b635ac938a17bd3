"""/api/v1/skills: skills, their items, suggestions, and the skills of an item."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from toolscript.core.items import MAX_ID
from toolscript.core.taxonomy import SuggestionState
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, AfterNumber, Limit, NumberInPath
from toolscript.tools.model.skill_json import skill_from_json
from toolscript.tools.schemas.skills import (
    ID_PATTERN,
    ApproveRequest,
    AssignRequest,
    AuditPage,
    ItemSkills,
    MemberPage,
    MergeRequest,
    NewSkill,
    Person,
    ReviewRequest,
    SkillChanges,
    SkillFields,
    SkillPage,
    SkillShown,
    SkillWritten,
    StatusFilter,
    SuggestionDecided,
    SuggestionEvidence,
    SuggestionPage,
    SuggestionShown,
)
from toolscript.tools.skills.management import SkillManagement, Written

SkillIdInPath = Annotated[str, Path(pattern=ID_PATTERN, description="Id of a skill.")]
By = Annotated[Person, Query()]
_AFTER_ID = r"^([a-z][a-z0-9_]{0,63})?$"
ITEMS_SHOWN = 20


def skill_routes(skills: SkillManagement) -> APIRouter:
    router = APIRouter(prefix="/api/v1/skills", tags=["skills"])
    _read_skills(router, skills)
    _write(router, skills)
    _switch(router, skills)
    return router


def audit_routes(skills: SkillManagement) -> APIRouter:
    """Return the audit routes. Include them before the routes of single skills: `audit` is no skill."""
    router = APIRouter(prefix="/api/v1/skills", tags=["skills"])

    @router.get("/audit", responses=documented(401, 403, 422, 503), summary="List people's decisions")
    async def audit(
        before: Annotated[int | None, Query(ge=1, le=MAX_ID, description="`next` of the page before.")] = None,
        limit: Limit = USUAL,
    ) -> AuditPage:
        entries = await skills.taxonomy.audit(before, limit + 1)
        return AuditPage.of(entries, limit)

    return router


def _read_skills(router: APIRouter, skills: SkillManagement) -> None:
    @router.get("", responses=documented(422, 503), summary="List skills")
    async def list_skills(
        after: Annotated[str, Query(pattern=_AFTER_ID, description="`next` of the page before.")] = "",
        limit: Limit = USUAL,
        active: Annotated[bool, Query(description="Only active skills.")] = False,
    ) -> SkillPage:
        entries = await skills.taxonomy.page(after, limit + 1, active_only=active)
        return SkillPage.of(entries, limit)

    @router.get("/{skill_id}", responses=documented(404, 422, 503), summary="One skill")
    async def get_skill(skill_id: SkillIdInPath) -> SkillShown:
        return SkillShown.of(await skills.taxonomy.find(skill_id))

    @router.get(
        "/{skill_id}/tools",
        responses=documented(404, 422, 503),
        summary="Items of a skill",
    )
    async def tools_of(skill_id: SkillIdInPath, after: AfterNumber = 0, limit: Limit = USUAL) -> MemberPage:
        members = await skills.taxonomy.members(skill_id, after, limit + 1)
        return MemberPage.of(members, limit)


def _write(router: APIRouter, skills: SkillManagement) -> None:
    @router.post(
        "",
        status_code=201,
        responses=documented(401, 403, 409, 422, 503),
        summary="Add a skill",
    )
    async def add_skill(request: NewSkill) -> SkillWritten:
        return _written(await skills.add(skill_from_json(request.model_dump(exclude={"by"})), request.by))

    @router.put(
        "/{skill_id}",
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Replace a skill",
    )
    async def replace_skill(skill_id: SkillIdInPath, request: SkillFields) -> SkillWritten:
        skill = skill_from_json({"id": skill_id, **request.model_dump(exclude={"by"})})
        return _written(await skills.replace(skill, request.by))

    @router.patch(
        "/{skill_id}",
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Change some fields of a skill",
    )
    async def change_skill(skill_id: SkillIdInPath, request: SkillChanges) -> SkillWritten:
        changes = request.model_dump(exclude={"by"}, exclude_unset=True)
        return _written(await skills.edit(skill_id, changes, request.by))


def _switch(router: APIRouter, skills: SkillManagement) -> None:
    @router.delete(
        "/{skill_id}",
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Deactivate a skill: searches are no longer routed to it, and nothing is deleted",
    )
    async def deactivate_skill(skill_id: SkillIdInPath, by: By = "api") -> SkillWritten:
        return _written(await skills.set_active(skill_id, False, by))

    @router.post(
        "/{skill_id}/activate",
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Activate a skill",
    )
    async def activate_skill(skill_id: SkillIdInPath, by: By = "api") -> SkillWritten:
        return _written(await skills.set_active(skill_id, True, by))


def _written(written: Written) -> SkillWritten:
    return SkillWritten.of(written.entry, routing=str(written.routing))


def suggestion_routes(skills: SkillManagement) -> APIRouter:
    """Return the routes of suggestions. Include them before those of single skills: `suggestions` is no skill."""
    router = APIRouter(prefix="/api/v1/skills/suggestions", tags=["suggestions"])
    _read_suggestions(router, skills)
    _decide(router, skills)
    return router


def _read_suggestions(router: APIRouter, skills: SkillManagement) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List suggestions")
    async def list_suggestions(
        status: Annotated[StatusFilter, Query(description="Only suggestions in this state.")] = "pending",
        after: AfterNumber = 0,
        limit: Limit = USUAL,
    ) -> SuggestionPage:
        state = None if status == "all" else SuggestionState(status)
        suggestions = await skills.suggestions.page(after, limit + 1, state)
        return SuggestionPage.of(suggestions, limit)

    @router.get(
        "/{suggestion_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One suggestion with its evidence: the items that request it, and the nearest skills",
    )
    async def get_suggestion(
        suggestion_id: NumberInPath, after: AfterNumber = 0, limit: Limit = ITEMS_SHOWN
    ) -> SuggestionEvidence:
        return SuggestionEvidence.of_evidence(await skills.evidence(suggestion_id, after, limit))


def _decide(router: APIRouter, skills: SkillManagement) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "/{suggestion_id}/approve",
        responses=refusals,
        summary="Add the suggested skill, and reclassify the items that request it",
    )
    async def approve(suggestion_id: NumberInPath, request: ApproveRequest) -> SuggestionDecided:
        changes = request.skill.model_dump(exclude_unset=True)
        decided = await skills.approve(suggestion_id, changes, request.reviewer)
        return SuggestionDecided.of(decided.suggestion, routing=str(decided.routing))

    @router.post("/{suggestion_id}/reject", responses=refusals, summary="Reject a suggestion")
    async def reject(suggestion_id: NumberInPath, request: ReviewRequest) -> SuggestionShown:
        return SuggestionShown.of(await skills.suggestions.reject(suggestion_id, request.reviewer))

    @router.post(
        "/{suggestion_id}/merge",
        responses=refusals,
        summary="Assign an existing skill to the items that request it",
    )
    async def merge(suggestion_id: NumberInPath, request: MergeRequest) -> SuggestionShown:
        merged = await skills.suggestions.merge(suggestion_id, request.into, request.reviewer)
        return SuggestionShown.of(merged)


def item_skill_routes(skills: SkillManagement) -> APIRouter:
    router = APIRouter(prefix="/api/v1/tools/{tool_id}/skills", tags=["skills"])
    refusals = documented(401, 403, 404, 422, 503)

    @router.get("", responses=documented(404, 422, 503), summary="Skills of an item")
    async def skills_of(tool_id: NumberInPath) -> ItemSkills:
        return ItemSkills.of(tool_id, await skills.assignments.of(tool_id))

    @router.put(
        "",
        responses=refusals,
        summary="Set the skills of an item by hand: no classifier changes them",
    )
    async def assign(tool_id: NumberInPath, request: AssignRequest) -> ItemSkills:
        assignments = await skills.assignments.set_by_hand(tool_id, request.skill_ids, request.reviewer)
        return ItemSkills.of(tool_id, assignments)

    @router.delete(
        "",
        responses=refusals,
        summary="Return an item to the classifier; it keeps its skills until it has been classified",
    )
    async def release(tool_id: NumberInPath, request: ReviewRequest) -> ItemSkills:
        await skills.assignments.release(tool_id, request.reviewer)
        return ItemSkills.of(tool_id, await skills.assignments.of(tool_id))

    return router
