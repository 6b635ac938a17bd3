"""/api/v1/jobs: import of catalogs sent over HTTP, and sync of MCP servers on request, in the background."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from toolscript.core.errors import Forbidden, InvalidRequest
from toolscript.core.item_json import MAX_NAME, MAX_TEXT, catalog_item_from_json
from toolscript.core.items import Item, ItemKind, RefusedItem
from toolscript.core.namespaces import Namespaces, chosen_namespace
from toolscript.core.taxonomy import Actor
from toolscript.core.text import readable
from toolscript.core.web.cursors import decode_cursor
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit, NumberInPath
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.tools.http.access import Decider, Narrowed, Seen
from toolscript.tools.model.catalog import SyncJob
from toolscript.tools.ports import CatalogContents, SyncJobs
from toolscript.tools.schemas.catalog import JobPage, JobShown
from toolscript.tools.schemas.skills import IntoNamespace

JOBS_PATH = f"{API_PREFIX}/jobs"
MAX_ITEMS = 10_000
MAX_JOB_BYTES = 16 * 1024 * 1024
MAX_SOURCE = 200

_LOCATION = {"description": "The job.", "required": True, "schema": {"type": "string"}}
# The responses of an operation that starts a job.
JOB_STARTED: dict[int | str, dict[str, Any]] = {202: {"headers": {"Location": _LOCATION}}}

_COMPONENTS = "#/components/schemas/"
REFUSED = "Anything else may be refused, alone."
_ITEMS_EXAMPLE = {
    "source": "billing",
    "items": [{"server": "billing", "name": "create_invoice", "description": "Create an invoice for a customer"}],
    "prune": False,
}
_SERVERS_EXAMPLE = {"servers": ["github"]}


class SyncRequests(Protocol):
    """The service that the routes call."""

    @property
    def contents(self) -> CatalogContents: ...
    @property
    def jobs(self) -> SyncJobs: ...
    def require_room(self, seen: Namespaces, /) -> None: ...
    async def take_items(
        self,
        source: str,
        entries: Callable[[], Sequence[Item | RefusedItem]],
        *,
        prune: bool,
        namespace: str,
        by: Actor,
        is_admin: bool,
    ) -> SyncJob: ...
    async def start_server_sync(self, names: Sequence[str], namespace: str, by: Actor) -> SyncJob: ...
    async def remove_source(self, name: str, namespace: str, by: Actor, *, is_admin: bool) -> SyncJob: ...


class ItemsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", title="Items of a catalog")

    source: str = Field(
        min_length=1, max_length=MAX_SOURCE, description="Name of the source that the items belong to."
    )
    items: list[Any] = Field(
        max_length=MAX_ITEMS,
        description="As in the lines of a file. What is not valid is refused alone, and named in the report.",
    )
    prune: StrictBool = Field(False, description="Remove the items of this source that are not in the request.")
    namespace: IntoNamespace = None


class ServersRequest(BaseModel):
    """A request names configured servers only: a client must not make the service run programs.

    For administrators alone: the config file is no part of any namespace.
    """

    model_config = ConfigDict(extra="forbid", title="MCP servers of the service's own config file")

    servers: list[Annotated[str, Field(min_length=1, max_length=MAX_SOURCE)]] = Field(
        [], max_length=1_000, description="Names of servers; empty for all."
    )
    namespace: IntoNamespace = None


class ItemToImport(BaseModel):
    """A tool, prompt or resource of a catalog. Further fields are ignored."""

    id: str = Field("", max_length=MAX_NAME, description="Its key in the source. Empty: of server, kind and name.")
    kind: ItemKind = Field(ItemKind.TOOL, description="Tool, prompt or resource.")
    server: str = Field(min_length=1, max_length=MAX_NAME, description="Its MCP server.")
    name: str = Field(min_length=1, max_length=MAX_NAME, description="Its name on the server.")
    description: str = Field("", description=f"What it does; cut at {MAX_TEXT:,} characters.")
    server_description: str = Field("", description=f"What its server is for; cut at {MAX_TEXT:,}.")
    input_schema: dict[str, Any] | None = Field(None, description="JSON Schema of its arguments.")
    output_schema: dict[str, Any] | None = Field(None, description="JSON Schema of its results.")
    annotations: dict[str, Any] | None = Field(None, description="Hints of its server, such as `readOnlyHint`.")


_BODIES = (ItemsRequest, ServersRequest, ItemToImport)
_SCHEMAS = [{"$ref": f"{_COMPONENTS}{model.__name__}"} for model in (ItemsRequest, ServersRequest)]
_EXAMPLES = {
    "items": {"summary": "Import the items of a catalog", "value": _ITEMS_EXAMPLE},
    "servers": {"summary": "Sync MCP servers", "value": _SERVERS_EXAMPLE},
}
_BODY = {"requestBody": {"content": {"application/json": {"schema": {"anyOf": _SCHEMAS}, "examples": _EXAMPLES}}}}


def job_schemas() -> dict[str, Any]:
    """Return the schemas of the bodies that start a job, for the components of an OpenAPI document."""
    schemas: dict[str, Any] = {}
    for model in _BODIES:
        schema = model.model_json_schema(ref_template=f"{_COMPONENTS}{{model}}")
        schemas |= {**schema.pop("$defs", {}), model.__name__: schema}
    item = {"anyOf": [{"$ref": f"{_COMPONENTS}ItemToImport"}, {"description": REFUSED}]}
    schemas["ItemsRequest"]["properties"]["items"]["items"] = item
    return schemas


def job_routes(sync: SyncRequests, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(JOBS_PATH, "jobs", checks)

    @router.post(
        "",
        status_code=202,
        responses={**JOB_STARTED, **documented(401, 403, 404, 422, 429, 503)},
        openapi_extra=_BODY,
        summary="Start a job: import the items of a catalog, or sync MCP servers",
    )
    async def start_job(request: Request, response: Response, seen: Seen, decider: Decider) -> JobShown:
        """A body with `source` and `items` imports these; one with `servers` syncs these MCP servers.

        Only administrators may sync MCP servers: the service's config file is no part of any namespace.
        """
        # The body is read here and not by the framework, which would read it before the client is authorized.
        sync.require_room(seen)
        return job_started(await _submit(sync, await request.body(), seen, decider.on_behalf_of("")), response)

    @router.get(
        "/{job_id}",
        responses=documented(401, 403, 404, 422, 503),
        summary="One job: its state, progress and report",
    )
    async def get_job(job_id: NumberInPath, seen: Seen) -> JobShown:
        """Returns a job. Poll it until its state is neither `queued` nor `running`."""
        return JobShown.of(await sync.jobs.within(seen).find(job_id))

    @router.get("", responses=documented(401, 403, 422, 503), summary="List jobs, the latest first")
    async def list_jobs(seen: Narrowed, cursor: Cursor = "", limit: Limit = USUAL) -> JobPage:
        """Lists jobs of the namespaces that the client sees."""
        jobs = await sync.jobs.within(seen).page(decode_cursor(cursor, 0) or None, limit + 1)
        return JobPage.of_jobs(jobs, limit)

    return router


def job_started(job: SyncJob, response: Response) -> JobShown:
    """Return the job, and its address in a header."""
    response.headers["Location"] = f"{JOBS_PATH}/{job.id}"
    return JobShown.of(job)


async def _submit(sync: SyncRequests, body: bytes, seen: Namespaces, by: Actor) -> SyncJob:
    request = await asyncio.to_thread(_read, body)
    if isinstance(request, ServersRequest):
        if seen is not None:
            raise Forbidden(
                "only an administrator may sync the service's MCP servers", hint="send `source` and `items`"
            )
        return await sync.start_server_sync(request.servers, chosen_namespace(seen, request.namespace), by)
    namespace = chosen_namespace(seen, request.namespace)
    source = readable(request.source.strip())
    if not source:
        raise InvalidRequest("source is blank", details={"field": "source"})

    def entries() -> Sequence[Item | RefusedItem]:
        """Parse the body again: a waiting job holds only the text, a fraction of the parsed size."""
        parsed = _read(body)
        items = parsed.items if isinstance(parsed, ItemsRequest) else []
        return [_entry(number, item) for number, item in enumerate(items, 1)]

    return await sync.take_items(
        source, entries, prune=request.prune, namespace=namespace, by=by, is_admin=seen is None
    )


def _read(body: bytes) -> ItemsRequest | ServersRequest:
    try:
        data = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {str(error)[:80]}") from None
    of_items = isinstance(data, dict) and data.keys() & ItemsRequest.model_fields.keys() - {"namespace"}
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
