"""/api/v1/sync: catalogs that arrive over HTTP, and MCP servers to be asked now. A job does it; nobody waits."""

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

_WHERE_IT_IS = {"description": "The job.", "required": True, "schema": {"type": "string"}}


class SyncRequests(Protocol):
    """What the routes ask of the service."""

    @property
    def contents(self) -> CatalogContents: ...
    def require_room(self) -> None: ...
    async def take_items(
        self, source: str, entries: Callable[[], Sequence[Item | RefusedItem]], *, prune: bool
    ) -> SyncJob: ...
    async def ask_servers(self, names: Sequence[str]) -> SyncJob: ...
    async def remove_source(self, name: str) -> SyncJob: ...
    async def find(self, job_id: int) -> SyncJob: ...
    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]: ...


class ItemsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", title="Items of a catalog")

    source: str = Field(min_length=1, max_length=MAX_SOURCE, description="Name under which the items are kept.")
    items: list[Any] = Field(
        max_length=MAX_ITEMS,
        description="{id, server, name, description, input_schema, ...}, as in the lines of a file.",
    )
    prune: StrictBool = Field(False, description="Remove items of this source that are not among these.")


class ServersRequest(BaseModel):
    """Nothing here says what is started: a request must not run a stranger's programs."""

    model_config = ConfigDict(extra="forbid", title="MCP servers of the service's own config file")

    servers: list[Annotated[str, Field(min_length=1, max_length=MAX_SOURCE)]] = Field(
        [], max_length=1_000, description="Their names; none: all of them."
    )


_SCHEMAS = [ItemsRequest.model_json_schema(), ServersRequest.model_json_schema()]
_BODY = {"requestBody": {"content": {"application/json": {"schema": {"anyOf": _SCHEMAS}}}}}


def sync_routes(sync: SyncRequests) -> APIRouter:
    router = APIRouter(prefix=SYNC_PATH, tags=["sync"])

    @router.post(
        "",
        status_code=202,
        responses={202: {"headers": {"Location": _WHERE_IT_IS}}, **documented(401, 403, 404, 422, 503)},
        openapi_extra=_BODY,
        summary="Take the items of a catalog, or ask MCP servers for theirs",
    )
    async def start_sync(request: Request, response: Response) -> JobAccepted:
        # The body is read here and not by the framework: not before it is known that the caller may write.
        sync.require_room()
        job = await _submit(sync, await request.body())
        url = response.headers["Location"] = f"{SYNC_PATH}/{job.id}"
        return JobAccepted(job_id=job.id, status_url=url)

    @router.get(
        "/{job_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="How far a sync is",
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
    wanted = await asyncio.to_thread(_read, body)
    if isinstance(wanted, ServersRequest):
        return await sync.ask_servers(wanted.servers)
    source = readable(wanted.source.strip())
    if not source:
        raise InvalidRequest("source is blank", details={"field": "source"})

    def entries() -> Sequence[Item | RefusedItem]:
        """From the text once more: jobs that wait hold texts, which are a fraction of what is in them."""
        again = _read(body)
        given = again.items if isinstance(again, ItemsRequest) else []
        return [_entry(number, one) for number, one in enumerate(given, 1)]

    return await sync.take_items(source, entries, prune=wanted.prune)


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
    # Worked out here, on a thread.
    _ = item.fingerprint
    return item
