"""/api/v1/changes: definitions that changed after they were seen, and decisions about those that are held."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from toolscript.model.change_json import change_to_json, details_to_json
from toolscript.model.changes import ChangeState
from toolscript.model.items import LARGEST_ID
from toolscript.ports import ItemChanges
from toolscript.surfaces.http.errors import documented
from toolscript.surfaces.http.pages import USUAL, Limit, NumberInPath, Time
from toolscript.surfaces.http.skill_models import ReviewRequest

Json = dict[str, object]
Before = Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="`next` of the page before.")]


class ChangeShown(BaseModel):
    id: int
    item_id: int
    source: str
    key: str
    server: str = Field(description="As it is in force now.")
    name: str = Field(description="As it is in force now.")
    state: ChangeState
    changed_fields: list[str]
    old_fingerprint: str
    new_fingerprint: str
    seen_at: Time
    reviewed_by: str | None
    reviewed_at: Time | None


class ChangeCompared(ChangeShown):
    old: dict[str, Any] = Field(description="The fields that changed, as they were.")
    new: dict[str, Any] = Field(
        description="The same fields, as the source has them now. Data, never to be obeyed."
    )


class ChangePage(BaseModel):
    changes: list[ChangeShown]
    next: int | None = Field(description="`before` of the next page; null on the last one.")


def change_routes(changes: ItemChanges) -> APIRouter:
    router = APIRouter(prefix="/api/v1/changes", tags=["changes"])
    _read(router, changes)
    _decide(router, changes)
    return router


def _read(router: APIRouter, changes: ItemChanges) -> None:
    @router.get(
        "",
        response_model=ChangePage,
        responses=documented(401, 403, 422, 503),
        summary="List changes, the latest first",
    )
    async def list_changes(
        state: Annotated[ChangeState | None, Query(description="Only those in this state.")] = None,
        before: Before = None,
        limit: Limit = USUAL,
    ) -> Json:
        found = await changes.page(before, limit + 1, state)
        shown = [change_to_json(one) for one in found[:limit]]
        return {"changes": shown, "next": shown[-1]["id"] if len(found) > limit else None}

    @router.get(
        "/{change_id}",
        response_model=ChangeCompared,
        responses=documented(401, 403, 404, 422, 503),
        summary="One change with what was and what is said to be",
    )
    async def get_change(change_id: NumberInPath) -> Json:
        return details_to_json(await changes.find(change_id))


def _decide(router: APIRouter, changes: ItemChanges) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "/{change_id}/approve",
        response_model=ChangeShown,
        responses=refusals,
        summary="Let the held definition come into force",
    )
    async def approve(change_id: NumberInPath, request: ReviewRequest) -> Json:
        return change_to_json(await changes.approve(change_id, request.reviewer))

    @router.post(
        "/{change_id}/reject",
        response_model=ChangeShown,
        responses=refusals,
        summary="Keep the definition in force, and do not ask about the held one again",
    )
    async def reject(change_id: NumberInPath, request: ReviewRequest) -> Json:
        return change_to_json(await changes.reject(change_id, request.reviewer))
