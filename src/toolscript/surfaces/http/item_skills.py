"""/api/v1/tools/{id}/skills: the skills of one item, and a person's word about them."""

from fastapi import APIRouter

from toolscript.model.skill_json import assigned_to_json
from toolscript.surfaces.http.errors import documented
from toolscript.surfaces.http.pages import NumberInPath
from toolscript.surfaces.http.skill_models import AssignRequest, ItemSkills, ReviewRequest
from toolscript.sync.skill_management import SkillManagement

Json = dict[str, object]


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
