"""/api/v1/skills: what skills there are, what is in them, and who decided what."""

from typing import Annotated

from fastapi import APIRouter, Query

from toolscript.model.items import LARGEST_ID
from toolscript.model.skill_json import audit_to_json, entry_to_json, member_to_json, skill_from_json
from toolscript.surfaces.http.errors import documented
from toolscript.surfaces.http.pages import USUAL, AfterNumber, Limit
from toolscript.surfaces.http.skill_models import (
    AuditPage,
    MemberPage,
    NewSkill,
    Person,
    SkillChanges,
    SkillFields,
    SkillIdInPath,
    SkillPage,
    SkillShown,
    SkillWritten,
)
from toolscript.sync.skill_management import SkillManagement, Written

Json = dict[str, object]
By = Annotated[Person, Query()]
_AFTER_ID = r"^([a-z][a-z0-9_]{0,63})?$"


def skill_routes(skills: SkillManagement) -> APIRouter:
    router = APIRouter(prefix="/api/v1/skills", tags=["skills"])
    _read(router, skills)
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


def _read(router: APIRouter, skills: SkillManagement) -> None:
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
