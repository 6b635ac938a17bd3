"""/api/v1/tools, /api/v1/catalog/sources and /api/v1/changes: the contents of the catalog and their changes."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import MAX_ID, ItemKind
from toolscript.core.text import readable
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Limit, NumberInPath
from toolscript.tools.http.sync import MAX_SOURCE, SYNC_PATH, SyncRequests
from toolscript.tools.model.catalog import ChangeState, ItemFilter
from toolscript.tools.ports import ItemChanges
from toolscript.tools.schemas.catalog import (
    ChangeCompared,
    ChangePage,
    ChangeShown,
    ItemSourcePage,
    ItemSourceShown,
    JobAccepted,
    ToolPage,
    ToolShown,
)
from toolscript.tools.schemas.skills import ReviewRequest

SourceName = Annotated[
    str, Path(min_length=1, max_length=MAX_SOURCE, description="Name of the source; a slash is part of it.")
]
Text = Annotated[str | None, Query(max_length=512, description="Only items with this value.")]


def catalog_routes(sync: SyncRequests) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["catalog"])
    _sources(router, sync)
    _remove_source(router, sync)
    _tools(router, sync)
    _one_tool(router, sync)
    return router


def _sources(router: APIRouter, sync: SyncRequests) -> None:
    @router.get(
        "/catalog/sources",
        responses=documented(401, 403, 422, 503),
        summary="Sources of tools, in order of name",
    )
    async def list_item_sources(
        cursor: Annotated[str, Query(max_length=MAX_SOURCE, description="`next_cursor` of the page before.")] = "",
        limit: Limit = USUAL,
    ) -> ItemSourcePage:
        sources = await sync.contents.sources(readable(cursor), limit + 1)
        return ItemSourcePage.of(sources, limit)

    @router.get(
        "/catalog/sources/{name:path}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One source of tools",
    )
    async def get_item_source(name: SourceName) -> ItemSourceShown:
        source = await sync.contents.source(readable(name))
        if source is None:
            raise NotFound(f"there is no source {name[:80]!r}", hint="GET /api/v1/catalog/sources lists them")
        return ItemSourceShown.of(source)


def _remove_source(router: APIRouter, sync: SyncRequests) -> None:
    @router.delete(
        "/catalog/sources/{name:path}",
        status_code=202,
        responses=documented(400, 401, 403, 404, 422, 503),
        summary="Remove a source with all of its tools",
    )
    async def remove_item_source(name: SourceName, response: Response) -> JobAccepted:
        """Starts a job; its report has the number of `removed` tools, 0 if there is no such source.

        People's decisions about the tools are kept for a while, and apply again if the source comes back.
        """
        source = readable(name).strip()
        if not source:
            raise InvalidRequest("the name of the source is blank", details={"field": "name"})
        sync.require_room()
        job = await sync.remove_source(source)
        url = response.headers["Location"] = f"{SYNC_PATH}/{job.id}"
        return JobAccepted(job_id=job.id, status_url=url)


def _tools(router: APIRouter, sync: SyncRequests) -> None:
    @router.get(
        "/tools",
        responses=documented(401, 403, 422, 503),
        summary="Tools of the catalog, in order of id",
    )
    async def list_tools(
        cursor: Annotated[int, Query(ge=0, le=MAX_ID, description="`next_cursor` of the page before.")] = 0,
        limit: Limit = USUAL,
        source: Text = None,
        server: Text = None,
        item_type: Annotated[ItemKind | None, Query(description="Only items of this kind.")] = None,
    ) -> ToolPage:
        item_filter = ItemFilter(source and readable(source), server and readable(server), item_type)
        items = await sync.contents.page(cursor, limit + 1, item_filter)
        return ToolPage.of(items, limit)


def _one_tool(router: APIRouter, sync: SyncRequests) -> None:
    @router.get(
        "/tools/{tool_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One tool with its schemas",
    )
    async def get_tool(tool_id: NumberInPath) -> ToolShown:
        return ToolShown.of(await sync.contents.find(tool_id))

    @router.delete(
        "/tools/{tool_id}",
        status_code=204,
        responses=documented(401, 403, 404, 422, 503),
        summary="Remove one tool from the catalog",
    )
    async def remove_tool(tool_id: NumberInPath) -> None:
        """Idempotent. The tool comes back when its source is synced again and still has it."""
        await sync.contents.remove(tool_id)


Before = Annotated[int | None, Query(ge=1, le=MAX_ID, description="`next` of the page before.")]


def change_routes(changes: ItemChanges) -> APIRouter:
    router = APIRouter(prefix="/api/v1/changes", tags=["changes"])
    _read(router, changes)
    _decide(router, changes)
    return router


def _read(router: APIRouter, changes: ItemChanges) -> None:
    @router.get(
        "",
        responses=documented(401, 403, 422, 503),
        summary="List changes, the latest first",
    )
    async def list_changes(
        state: Annotated[ChangeState | None, Query(description="Only changes in this state.")] = None,
        before: Before = None,
        limit: Limit = USUAL,
    ) -> ChangePage:
        item_changes = await changes.page(before, limit + 1, state)
        return ChangePage.of(item_changes, limit)

    @router.get(
        "/{change_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One change with the old and new values",
    )
    async def get_change(change_id: NumberInPath) -> ChangeCompared:
        return ChangeCompared.of_details(await changes.find(change_id))


def _decide(router: APIRouter, changes: ItemChanges) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post(
        "/{change_id}/approve",
        responses=refusals,
        summary="Apply the held definition",
    )
    async def approve(change_id: NumberInPath, request: ReviewRequest) -> ChangeShown:
        return ChangeShown.of(await changes.approve(change_id, request.reviewer))

    @router.post(
        "/{change_id}/reject",
        responses=refusals,
        summary="Keep the current definition, and do not hold the rejected one again",
    )
    async def reject(change_id: NumberInPath, request: ReviewRequest) -> ChangeShown:
        return ChangeShown.of(await changes.reject(change_id, request.reviewer))
