"""/api/v1/sync: import of catalogs sent over HTTP, and sync of MCP servers on request, as background jobs."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import catalog_item_from_json
from toolscript.core.items import MAX_ID, Item, RefusedItem
from toolscript.core.text import readable
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Limit, NumberInPath
from toolscript.tools.model.catalog import SyncJob
from toolscript.tools.ports import CatalogContents
from toolscript.tools.schemas.catalog import JobAccepted, JobPage, JobShown

SYNC_PATH = "/api/v1/sync"
MAX_ITEMS = 10_000
MAX_SYNC_BYTES = 16 * 1024 * 1024
MAX_SOURCE = 200

_LOCATION = {"description": "The job.", "required": True, "schema": {"type": "string"}}


class SyncRequests(Protocol):
    """The service that the routes call."""

    @property
    def contents(self) -> CatalogContents: ...
    def require_room(self) -> None: ...
    async def take_items(
        self, source: str, entries: Callable[[], Sequence[Item | RefusedItem]], *, prune: bool
    ) -> SyncJob: ...
    async def start_server_sync(self, names: Sequence[str]) -> SyncJob: ...
    async def remove_source(self, name: str) -> SyncJob: ...
    async def find(self, job_id: int) -> SyncJob: ...
    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]: ...


class ItemsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", title="Items of a catalog")

    source: str = Field(
        min_length=1, max_length=MAX_SOURCE, description="Name of the source that the items belong to."
    )
    items: list[Any] = Field(
        max_length=MAX_ITEMS,
        description="{id, server, name, description, input_schema, ...}, as in the lines of a file.",
    )
    prune: StrictBool = Field(False, description="Remove the items of this source that are not in the request.")


class ServersRequest(BaseModel):
    """A request names configured servers only: a client must not make the service run programs."""

    model_config = ConfigDict(extra="forbid", title="MCP servers of the service's own config file")

    servers: list[Annotated[str, Field(min_length=1, max_length=MAX_SOURCE)]] = Field(
        [], max_length=1_000, description="Names of servers; empty for all."
    )


_SCHEMAS = [ItemsRequest.model_json_schema(), ServersRequest.model_json_schema()]
_BODY = {"requestBody": {"content": {"application/json": {"schema": {"anyOf": _SCHEMAS}}}}}


def sync_routes(sync: SyncRequests) -> APIRouter:
    router = APIRouter(prefix=SYNC_PATH, tags=["sync"])

    @router.post(
        "",
        status_code=202,
        responses={202: {"headers": {"Location": _LOCATION}}, **documented(401, 403, 404, 422, 503)},
        openapi_extra=_BODY,
        summary="Import the items of a catalog, or sync MCP servers",
    )
    async def start_sync(request: Request, response: Response) -> JobAccepted:
        # The body is read here and not by the framework, which would read it before the client is authorized.
        sync.require_room()
        job = await _submit(sync, await request.body())
        url = response.headers["Location"] = f"{SYNC_PATH}/{job.id}"
        return JobAccepted(job_id=job.id, status_url=url)

    @router.get(
        "/{job_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="State and progress of a sync",
    )
    async def get_job(job_id: NumberInPath) -> JobShown:
        return JobShown.of(await sync.find(job_id))

    @router.get("", responses=documented(401, 403, 422, 503), summary="Syncs, the latest first")
    async def list_jobs(
        before: Annotated[int | None, Query(ge=1, le=MAX_ID, description="`next` of the page before.")] = None,
        limit: Limit = USUAL,
    ) -> JobPage:
        jobs = await sync.page(before, limit + 1)
        return JobPage.of(jobs, limit)

    return router


async def _submit(sync: SyncRequests, body: bytes) -> SyncJob:
    request = await asyncio.to_thread(_read, body)
    if isinstance(request, ServersRequest):
        return await sync.start_server_sync(request.servers)
    source = readable(request.source.strip())
    if not source:
        raise InvalidRequest("source is blank", details={"field": "source"})

    def entries() -> Sequence[Item | RefusedItem]:
        """Parse the body again: a waiting job holds only the text, a fraction of the parsed size."""
        parsed = _read(body)
        items = parsed.items if isinstance(parsed, ItemsRequest) else []
        return [_entry(number, item) for number, item in enumerate(items, 1)]

    return await sync.take_items(source, entries, prune=request.prune)


def _read(body: bytes) -> ItemsRequest | ServersRequest:
    try:
        data = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {str(error)[:80]}") from None
    of_items = isinstance(data, dict) and data.keys() & ItemsRequest.model_fields.keys()
    try:
        return (ItemsRequest if of_items else ServersRequest).model_validate(data)
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False, include_context=False)
        raise RequestValidationError(
            [{**problem, "loc": ("body", *problem["loc"])} for problem in problems]
        ) from None


def _entry(number: int, data: object) -> Item | RefusedItem:
    try:
        item = catalog_item_from_json(data)
    except InvalidRequest as error:
        return RefusedItem(f"item {number}", error.message)
    # Computed and cached here, on a worker thread.
    _ = item.fingerprint
    return item
