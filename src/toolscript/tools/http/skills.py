"""/api/v1/skills: skills, what is in them, suggestions, and the skills of an item."""

from typing import Annotated

from fastapi import APIRouter, Query

from toolscript.core.items import LARGEST_ID
from toolscript.core.taxonomy import SuggestionState
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, AfterNumber, Limit, NumberInPath
from toolscript.tools.model.skill_json import (
    assigned_to_json,
    audit_to_json,
    entry_to_json,
    evidence_to_json,
    member_to_json,
    skill_from_json,
    suggestion_to_json,
)
from toolscript.tools.schemas import (
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
    SkillIdInPath,
    SkillPage,
    SkillShown,
    SkillWritten,
    StatusAsked,
    SuggestionDecided,
    SuggestionEvidence,
    SuggestionPage,
    SuggestionShown,
)
from toolscript.tools.skills.management import SkillManagement, Written

Json = dict[str, object]
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
    """To be included before the routes of single skills: `audit` is no skill."""
    router = APIRouter(prefix="/api/v1/skills", tags=["skills"])

    @router.get(
        "/audit", response_model=AuditPage, responses=documented(401, 403, 422, 503), summary="What people decided"
    )
    async def audit(
        before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="`next` of the page before.")] = None,
        limit: Limit = USUAL,
    ) -> Json:
        found = await skills.taxonomy.audit(before, limit + 1)
        entries = [audit_to_json(number, entry) for number, entry in found[:limit]]
        return {"entries": entries, "next": entries[-1]["id"] if len(found) > limit else None}

    return router


def _read_skills(router: APIRouter, skills: SkillManagement) -> None:
    @router.get("", response_model=SkillPage, responses=documented(422, 503), summary="List skills")
    async def list_skills(
        after: Annotated[str, Query(pattern=_AFTER_ID, description="`next` of the page before.")] = "",
        limit: Limit = USUAL,
        active: Annotated[bool, Query(description="Only those that are active.")] = False,
    ) -> Json:
        found = await skills.taxonomy.page(after, limit + 1, active_only=active)
        shown = [entry_to_json(entry) for entry in found[:limit]]
        return {"skills": shown, "next": shown[-1]["id"] if len(found) > limit else None}

    @router.get("/{skill_id}", response_model=SkillShown, responses=documented(404, 422, 503), summary="One skill")
    async def get_skill(skill_id: SkillIdInPath) -> Json:
        return entry_to_json(await skills.taxonomy.find(skill_id))

    @router.get(
        "/{skill_id}/tools",
        response_model=MemberPage,
        responses=documented(404, 422, 503),
        summary="Items of a skill",
    )
    async def tools_of(skill_id: SkillIdInPath, after: AfterNumber = 0, limit: Limit = USUAL) -> Json:
        found = await skills.taxonomy.members(skill_id, after, limit + 1)
        tools = [member_to_json(member) for member in found[:limit]]
        return {"tools": tools, "next": tools[-1]["db_id"] if len(found) > limit else None}


def _write(router: APIRouter, skills: SkillManagement) -> None:
    @router.post(
        "",
        status_code=201,
        response_model=SkillWritten,
        responses=documented(401, 403, 409, 422, 503),
        summary="Add a skill",
    )
    async def add_skill(request: NewSkill) -> Json:
        return _written(await skills.add(skill_from_json(request.model_dump(exclude={"by"})), request.by))

    @router.put(
        "/{skill_id}",
        response_model=SkillWritten,
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Replace a skill",
    )
    async def replace_skill(skill_id: SkillIdInPath, request: SkillFields) -> Json:
        wanted = skill_from_json({"id": skill_id, **request.model_dump(exclude={"by"})})
        return _written(await skills.replace(wanted, request.by))

    @router.patch(
        "/{skill_id}",
        response_model=SkillWritten,
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Change some of a skill",
    )
    async def change_skill(skill_id: SkillIdInPath, request: SkillChanges) -> Json:
        changes = request.model_dump(exclude={"by"}, exclude_unset=True)
        return _written(await skills.edit(skill_id, changes, request.by))


def _switch(router: APIRouter, skills: SkillManagement) -> None:
    @router.delete(
        "/{skill_id}",
        response_model=SkillWritten,
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Deactivate a skill: searches are no longer routed by it, and nothing is lost",
    )
    async def deactivate_skill(skill_id: SkillIdInPath, by: By = "api") -> Json:
        return _written(await skills.set_active(skill_id, False, by))

    @router.post(
        "/{skill_id}/activate",
        response_model=SkillWritten,
        responses=documented(401, 403, 404, 409, 422, 503),
        summary="Activate a skill",
    )
    async def activate_skill(skill_id: SkillIdInPath, by: By = "api") -> Json:
        return _written(await skills.set_active(skill_id, True, by))


def _written(written: Written) -> Json:
    return {**entry_to_json(written.entry), "routing": str(written.routing)}


def suggestion_routes(skills: SkillManagement) -> APIRouter:
    """To be included before the routes of single skills: `suggestions` is no skill."""
    router = APIRouter(prefix="/api/v1/skills/suggestions", tags=["suggestions"])
    _read_suggestions(router, skills)
    _decide(router, skills)
    return router


def _read_suggestions(router: APIRouter, skills: SkillManagement) -> None:
    @router.get(
        "", response_model=SuggestionPage, responses=documented(401, 403, 422, 503), summary="List suggestions"
    )
    async def list_suggestions(
        status: Annotated[StatusAsked, Query(description="Only those in this state.")] = "pending",
        after: AfterNumber = 0,
        limit: Limit = USUAL,
    ) -> Json:
        state = None if status == "all" else SuggestionState(status)
        found = await skills.suggestions.page(after, limit + 1, state)
        shown = [suggestion_to_json(one) for one in found[:limit]]
        return {"suggestions": shown, "next": shown[-1]["id"] if len(found) > limit else None}

    @router.get(
        "/{suggestion_id}",
        response_model=SuggestionEvidence,
        responses=documented(401, 403, 404, 422, 503),
        summary="One suggestion with the evidence: who asks for it, and which skills are nearest",
    )
    async def get_suggestion(
        suggestion_id: NumberInPath, after: AfterNumber = 0, limit: Limit = ITEMS_SHOWN
    ) -> Json:
        return evidence_to_json(await skills.evidence(suggestion_id, after, limit))


def _decide(router: APIRouter, skills: SkillManagement) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "/{suggestion_id}/approve",
        response_model=SuggestionDecided,
        responses=refusals,
        summary="Make it a skill, and have the items that ask for it classified anew",
    )
    async def approve(suggestion_id: NumberInPath, request: ApproveRequest) -> Json:
        changes = request.skill.model_dump(exclude_unset=True)
        decided = await skills.approve(suggestion_id, changes, request.reviewer)
        return {**suggestion_to_json(decided.suggestion), "routing": str(decided.routing)}

    @router.post(
        "/{suggestion_id}/reject", response_model=SuggestionShown, responses=refusals, summary="Turn it down"
    )
    async def reject(suggestion_id: NumberInPath, request: ReviewRequest) -> Json:
        return suggestion_to_json(await skills.suggestions.reject(suggestion_id, request.reviewer))

    @router.post(
        "/{suggestion_id}/merge",
        response_model=SuggestionShown,
        responses=refusals,
        summary="Give those who ask for it a skill there is already",
    )
    async def merge(suggestion_id: NumberInPath, request: MergeRequest) -> Json:
        merged = await skills.suggestions.merge(suggestion_id, request.into, request.reviewer)
        return suggestion_to_json(merged)


def item_skill_routes(skills: SkillManagement) -> APIRouter:
    router = APIRouter(prefix="/api/v1/tools/{tool_id}/skills", tags=["skills"])
    refusals = documented(401, 403, 404, 422, 503)

    @router.get("", response_model=ItemSkills, responses=documented(404, 422, 503), summary="Skills of an item")
    async def skills_of(tool_id: NumberInPath) -> Json:
        return assigned_to_json(tool_id, await skills.assignments.of(tool_id))

    @router.put(
        "",
        response_model=ItemSkills,
        responses=refusals,
        summary="Say which skills an item is in: no classifier changes it",
    )
    async def assign(tool_id: NumberInPath, request: AssignRequest) -> Json:
        given = await skills.assignments.set_by_hand(tool_id, request.skill_ids, request.reviewer)
        return assigned_to_json(tool_id, given)

    @router.delete(
        "",
        response_model=ItemSkills,
        responses=refusals,
        summary="Give an item back to the classifier; its skills stay until that has looked at it",
    )
    async def release(tool_id: NumberInPath, request: ReviewRequest) -> Json:
        await skills.assignments.release(tool_id, request.reviewer)
        return assigned_to_json(tool_id, await skills.assignments.of(tool_id))

    return router
