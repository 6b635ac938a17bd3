"""/api/v1/skills, /api/v1/suggestions and /api/v1/audit; and the skills of a tool."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.params import Depends

from toolscript.core.taxonomy import SuggestionState
from toolscript.core.web.cursors import decode_cursor
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit, NumberInPath
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.tools.http.access import Decider, DeciderInQuery, Narrowed, Seen
from toolscript.tools.model.skill_json import skill_from_json
from toolscript.tools.schemas.skills import (
    ID_PATTERN,
    ApproveRequest,
    AssignRequest,
    AuditPage,
    ItemSkills,
    MergeRequest,
    NewSkill,
    ReviewRequest,
    SkillChanges,
    SkillFields,
    SkillPage,
    SkillShown,
    SkillWritten,
    StateFilter,
    SuggestionDecided,
    SuggestionEvidence,
    SuggestionPage,
    SuggestionShown,
    ToolOfSkillPage,
)
from toolscript.tools.skills.management import SkillManagement, Written

SkillIdInPath = Annotated[str, Path(pattern=ID_PATTERN, description="Id of a skill.")]
ITEMS_SHOWN = 20
SKILLS_PATH = f"{API_PREFIX}/skills"
_LOCATION = {"description": "The skill.", "required": True, "schema": {"type": "string"}}


def skill_routes(skills: SkillManagement, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(SKILLS_PATH, "skills", checks)
    _read_skills(router, skills)
    _write(router, skills)
    return router


def audit_routes(skills: SkillManagement, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/audit", "audit", checks)

    @router.get("", responses=documented(401, 403, 422, 503), summary="List people's decisions, the latest first")
    async def list_audit(seen: Narrowed, cursor: Cursor = "", limit: Limit = USUAL) -> AuditPage:
        """Lists decisions about skills, suggestions, tools, changes and rules, each with its actor."""
        entries = await skills.taxonomy.within(seen).audit(decode_cursor(cursor, 0) or None, limit + 1)
        return AuditPage.of_entries(entries, limit)

    return router


def _read_skills(router: APIRouter, skills: SkillManagement) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List skills, in order of id")
    async def list_skills(
        seen: Narrowed,
        cursor: Cursor = "",
        limit: Limit = USUAL,
        active: Annotated[bool, Query(description="Only active skills.")] = False,
    ) -> SkillPage:
        """Lists skills with the number of their tools in the namespaces that the client sees."""
        entries = await skills.taxonomy.within(seen).page(decode_cursor(cursor, ""), limit + 1, active_only=active)
        return SkillPage.of_entries(entries, limit)

    @router.get("/{skill_id}", responses=documented(401, 403, 404, 422, 503), summary="One skill")
    async def get_skill(skill_id: SkillIdInPath, seen: Narrowed) -> SkillShown:
        """Returns a skill with the number of its tools in the namespaces that the client sees."""
        return SkillShown.of(await skills.taxonomy.within(seen).find(skill_id))

    @router.get(
        "/{skill_id}/tools",
        responses=documented(401, 403, 404, 422, 503),
        summary="List the tools of a skill, in order of id",
    )
    async def list_tools_of_skill(
        skill_id: SkillIdInPath, seen: Narrowed, cursor: Cursor = "", limit: Limit = USUAL
    ) -> ToolOfSkillPage:
        """Lists tools of a skill, each with who assigned it, why, and how confidently."""
        members = await skills.taxonomy.within(seen).members(skill_id, decode_cursor(cursor, 0), limit + 1)
        return ToolOfSkillPage.of_members(members, limit)


def _write(router: APIRouter, skills: SkillManagement) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "",
        status_code=201,
        responses={201: {"headers": {"Location": _LOCATION}}, **documented(401, 403, 409, 422, 503)},
        summary="Add a skill",
    )
    async def add_skill(request: NewSkill, decider: Decider, response: Response) -> SkillWritten:
        """Adds a skill. `routing` says whether searches use it already. An id that is taken is 409."""
        skill = skill_from_json(request.written())
        response.headers["Location"] = f"{SKILLS_PATH}/{skill.id}"
        return _written(await skills.add(skill, decider.on_behalf_of(request.person)))

    @router.put("/{skill_id}", responses=refusals, summary="Replace a skill")
    async def replace_skill(skill_id: SkillIdInPath, request: SkillFields, decider: Decider) -> SkillWritten:
        """Sets all fields of a skill; those that are left out get their defaults."""
        skill = skill_from_json({"id": skill_id, **request.written()})
        return _written(await skills.replace(skill, decider.on_behalf_of(request.person)))

    @router.patch("/{skill_id}", responses=refusals, summary="Change some fields of a skill, or deactivate it")
    async def change_skill(skill_id: SkillIdInPath, request: SkillChanges, decider: Decider) -> SkillWritten:
        """With `{"is_active": false}`, searches are no longer routed to the skill; true brings it back.

        No skill is ever deleted: assignments, decisions and the audit name it.
        """
        by = decider.on_behalf_of(request.person)
        return _written(await skills.edit(skill_id, request.written(only_set=True), by))


def _written(written: Written) -> SkillWritten:
    return SkillWritten.of(written.entry, routing=str(written.routing))


def suggestion_routes(skills: SkillManagement, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/suggestions", "suggestions", checks)
    _read_suggestions(router, skills)
    _decide(router, skills)
    return router


def _read_suggestions(router: APIRouter, skills: SkillManagement) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List suggestions, in order of id")
    async def list_suggestions(
        seen: Narrowed,
        state: Annotated[StateFilter, Query(description="Only suggestions in this state.")] = "pending",
        cursor: Cursor = "",
        limit: Limit = USUAL,
    ) -> SuggestionPage:
        """Lists skills that the classifier found missing, by default those that wait for a decision."""
        only = None if state == "all" else SuggestionState(state)
        suggestions = await skills.suggestions.within(seen).page(decode_cursor(cursor, 0), limit + 1, only)
        return SuggestionPage.of_suggestions(suggestions, limit)

    @router.get(
        "/{suggestion_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One suggestion with the tools that request it and the nearest skills",
    )
    async def get_suggestion(
        suggestion_id: NumberInPath, seen: Seen, cursor: Cursor = "", limit: Limit = ITEMS_SHOWN
    ) -> SuggestionEvidence:
        """`cursor` and `limit` page through the tools."""
        evidence = await skills.within(seen).evidence(suggestion_id, decode_cursor(cursor, 0), limit)
        return SuggestionEvidence.of_evidence(evidence)


def _decide(router: APIRouter, skills: SkillManagement) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "/{suggestion_id}/approve",
        responses=refusals,
        summary="Add the suggested skill, and reclassify the tools that request it",
    )
    async def approve_suggestion(
        suggestion_id: NumberInPath, request: ApproveRequest, decider: Decider
    ) -> SuggestionDecided:
        """Adds the skill, with the changes in `skill`; its tools are classified again in the background."""
        changes = request.skill.model_dump(exclude_unset=True)
        decided = await skills.approve(suggestion_id, changes, decider.on_behalf_of(request.person))
        return SuggestionDecided.of(decided.suggestion, routing=str(decided.routing))

    @router.post("/{suggestion_id}/reject", responses=refusals, summary="Reject a suggestion")
    async def reject_suggestion(
        suggestion_id: NumberInPath, request: ReviewRequest, decider: Decider
    ) -> SuggestionShown:
        """The tools keep their skills, and the same suggestion does not come back."""
        by = decider.on_behalf_of(request.person)
        return SuggestionShown.of(await skills.suggestions.reject(suggestion_id, by))

    @router.post(
        "/{suggestion_id}/merge",
        responses=refusals,
        summary="Assign an existing skill to the tools that request it",
    )
    async def merge_suggestion(
        suggestion_id: NumberInPath, request: MergeRequest, decider: Decider
    ) -> SuggestionShown:
        """For a suggestion that is an existing skill under another name."""
        by = decider.on_behalf_of(request.person)
        merged = await skills.suggestions.merge(suggestion_id, request.into, by)
        return SuggestionShown.of(merged)

    @router.post(
        "/{suggestion_id}/undo",
        responses=refusals,
        summary="Undo an approved proposal: its skill is deactivated",
    )
    async def undo_suggestion(
        suggestion_id: NumberInPath, request: ReviewRequest, decider: Decider
    ) -> SuggestionDecided:
        """Its items are classified again in the background, without the skill."""
        undone = await skills.undo(suggestion_id, decider.on_behalf_of(request.person))
        return SuggestionDecided.of(undone.suggestion, routing=str(undone.routing))


def tool_skill_routes(skills: SkillManagement, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/tools/{{tool_id}}/skills", "tools", checks)
    refusals = documented(401, 403, 404, 422, 503)

    @router.get("", responses=refusals, summary="The skills of a tool")
    async def get_skills_of_tool(tool_id: NumberInPath, seen: Seen) -> ItemSkills:
        """Returns the skills of a tool, the primary one first, each with who assigned it and why."""
        return ItemSkills.of(tool_id, await skills.assignments.within(seen).of(tool_id))

    @router.put("", responses=refusals, summary="Set the skills of a tool by hand: no classifier changes them")
    async def set_skills_of_tool(
        tool_id: NumberInPath, request: AssignRequest, seen: Seen, decider: Decider
    ) -> ItemSkills:
        """Replaces all skills of a tool; the decision stays when the tool changes."""
        assignments = skills.assignments.within(seen)
        assigned = await assignments.set_by_hand(tool_id, request.skill_ids, decider.on_behalf_of(request.person))
        return ItemSkills.of(tool_id, assigned)

    @router.delete(
        "",
        responses=refusals,
        summary="Return a tool to the classifier; its skills stay until then",
    )
    async def release_skills_of_tool(tool_id: NumberInPath, seen: Seen, by: DeciderInQuery) -> ItemSkills:
        """Answers with the skills, which stay until the classifier has run. Idempotent."""
        assignments = skills.assignments.within(seen)
        await assignments.release(tool_id, by)
        return ItemSkills.of(tool_id, await assignments.of(tool_id))

    return router
