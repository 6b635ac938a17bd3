"""/api/v1/tools, /api/v1/sources and /api/v1/changes: the contents of the catalog and their changes."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.params import Depends

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import ItemKind
from toolscript.core.text import readable
from toolscript.core.web.cursors import decode_cursor
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit, NumberInPath
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.tools.http.access import Chosen, Decider, Narrowed, Seen
from toolscript.tools.http.jobs import JOB_STARTED, MAX_SOURCE, SyncRequests, job_started
from toolscript.tools.model.catalog import ChangeState, ItemFilter
from toolscript.tools.ports import ItemChanges
from toolscript.tools.schemas.catalog import (
    ChangeCompared,
    ChangePage,
    ChangeShown,
    JobShown,
    ToolPage,
    ToolShown,
    ToolSource,
    ToolSourcePage,
    source_after,
)
from toolscript.tools.schemas.skills import ReviewRequest

MAX_FILTER = 512

SourceName = Annotated[
    str, Path(min_length=1, max_length=MAX_SOURCE, description="Name of the source; a slash is part of it.")
]


def source_routes(sync: SyncRequests, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/sources", "sources", checks)
    _read_sources(router, sync)
    _delete_source(router, sync)
    return router


def _read_sources(router: APIRouter, sync: SyncRequests) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List sources of tools, in order of name")
    async def list_tool_sources(seen: Narrowed, cursor: Cursor = "", limit: Limit = USUAL) -> ToolSourcePage:
        """Lists sources that the client sees, with the number of their tools."""
        sources = await sync.contents.within(seen).sources(source_after(cursor), limit + 1)
        return ToolSourcePage.of_sources(sources, limit)

    @router.get("/{name:path}", responses=documented(401, 403, 404, 422, 503), summary="One source of tools")
    async def get_tool_source(name: SourceName, namespace: Chosen) -> ToolSource:
        """Returns a source with the number of its tools, and when it was last synced."""
        source = await sync.contents.source(readable(name), namespace)
        if source is None:
            raise NotFound(f"there is no source {name[:80]!r}", hint="GET /api/v1/sources lists them")
        return ToolSource.of(source)


def _delete_source(router: APIRouter, sync: SyncRequests) -> None:
    @router.delete(
        "/{name:path}",
        status_code=202,
        responses={**JOB_STARTED, **documented(401, 403, 404, 422, 429, 503)},
        summary="Delete a source with all of its tools",
    )
    async def delete_tool_source(
        name: SourceName, namespace: Chosen, response: Response, seen: Seen, decider: Decider
    ) -> JobShown:
        """Starts a job; its report has the number of `removed` tools, 0 if there is no such source.

        People's decisions about the tools are kept for a while, and apply again if the source comes back.
        """
        source = readable(name).strip()
        if not source:
            raise InvalidRequest("the name of the source is blank", details={"field": "name"})
        sync.require_room(seen)
        job = await sync.remove_source(source, namespace, decider.on_behalf_of(""), is_admin=seen is None)
        return job_started(job, response)


def tool_routes(sync: SyncRequests, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/tools", "tools", checks)
    _list_tools(router, sync)
    _one_tool(router, sync)
    return router


def _list_tools(router: APIRouter, sync: SyncRequests) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List tools of the catalog, in order of id")
    async def list_tools(
        seen: Narrowed,
        cursor: Cursor = "",
        limit: Limit = USUAL,
        source: Annotated[
            str | None, Query(max_length=MAX_FILTER, description="Only tools of this source.")
        ] = None,
        server: Annotated[
            str | None, Query(max_length=MAX_FILTER, description="Only tools of this MCP server.")
        ] = None,
        kind: Annotated[ItemKind | None, Query(description="Only tools, prompts or resources.")] = None,
    ) -> ToolPage:
        """Lists tools, prompts and resources without their schemas."""
        item_filter = ItemFilter(source and readable(source), server and readable(server), kind)
        items = await sync.contents.within(seen).page(decode_cursor(cursor, 0), limit + 1, item_filter)
        return ToolPage.of_items(items, limit)


def _one_tool(router: APIRouter, sync: SyncRequests) -> None:
    @router.get(
        "/{tool_id:number}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One tool with its schemas",
    )
    async def get_tool(tool_id: NumberInPath, seen: Seen) -> ToolShown:
        """Returns a tool, prompt or resource with its schemas and annotations."""
        return ToolShown.of(await sync.contents.within(seen).find(tool_id))

    @router.delete(
        "/{tool_id:number}",
        status_code=204,
        responses=documented(401, 403, 404, 422, 503),
        summary="Delete one tool from the catalog",
    )
    async def delete_tool(tool_id: NumberInPath, seen: Seen, decider: Decider) -> None:
        """Idempotent. The tool comes back when its source is synced again and still has it."""
        await sync.contents.within(seen).remove(tool_id, decider.on_behalf_of(""))


def change_routes(changes: ItemChanges, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/changes", "changes", checks)
    _read_changes(router, changes)
    _decide(router, changes)
    return router


def _read_changes(router: APIRouter, changes: ItemChanges) -> None:
    @router.get("", responses=documented(401, 403, 422, 503), summary="List changes, the latest first")
    async def list_changes(
        seen: Narrowed,
        state: Annotated[ChangeState | None, Query(description="Only changes in this state.")] = None,
        cursor: Cursor = "",
        limit: Limit = USUAL,
    ) -> ChangePage:
        """Lists definitions that changed after a tool was first seen, applied at once or held for review."""
        item_changes = await changes.within(seen).page(decode_cursor(cursor, 0) or None, limit + 1, state)
        return ChangePage.of_changes(item_changes, limit)

    @router.get(
        "/{change_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One change with the old and new values",
    )
    async def get_change(change_id: NumberInPath, seen: Seen) -> ChangeCompared:
        """Returns a change with the values of the changed fields before and after."""
        return ChangeCompared.of_details(await changes.within(seen).find(change_id))


def _decide(router: APIRouter, changes: ItemChanges) -> None:
    refusals = documented(401, 403, 404, 409, 422, 503)

    @router.post("/{change_id}/approve", responses=refusals, summary="Apply the held definition")
    async def approve_change(
        change_id: NumberInPath, request: ReviewRequest, seen: Seen, decider: Decider
    ) -> ChangeShown:
        """The tool gets the held definition. A change that is not held, or that is outdated, is 409."""
        by = decider.on_behalf_of(request.person)
        return ChangeShown.of(await changes.within(seen).approve(change_id, by))

    @router.post(
        "/{change_id}/reject",
        responses=refusals,
        summary="Keep the current definition, and do not hold the rejected one again",
    )
    async def reject_change(
        change_id: NumberInPath, request: ReviewRequest, seen: Seen, decider: Decider
    ) -> ChangeShown:
        """The tool keeps its definition. A change that is not held is 409."""
        by = decider.on_behalf_of(request.person)
        return ChangeShown.of(await changes.within(seen).reject(change_id, by))
