"""/api/v1/skills/suggestions: skills that classifiers missed, until a person decides."""

from typing import Annotated

from fastapi import APIRouter, Query

from toolscript.model.skill_json import evidence_to_json, suggestion_to_json
from toolscript.model.skills import SuggestionState
from toolscript.surfaces.http.errors import documented
from toolscript.surfaces.http.pages import USUAL, AfterNumber, Limit, NumberInPath
from toolscript.surfaces.http.skill_models import (
    ApproveRequest,
    MergeRequest,
    ReviewRequest,
    StatusAsked,
    SuggestionDecided,
    SuggestionEvidence,
    SuggestionPage,
    SuggestionShown,
)
from toolscript.sync.skill_management import SkillManagement

ITEMS_SHOWN = 20

Json = dict[str, object]


def suggestion_routes(skills: SkillManagement) -> APIRouter:
    """To be included before the routes of single skills: `suggestions` is no skill."""
    router = APIRouter(prefix="/api/v1/skills/suggestions", tags=["suggestions"])
    _read(router, skills)
    _decide(router, skills)
    return router


def _read(router: APIRouter, skills: SkillManagement) -> None:
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
