"""Prompts, resources and completion of all servers at the joint endpoint, and the log level that a client sets."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    EmptyResult,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
)
from pydantic import BaseModel

from toolscript.core.errors import Forbidden, InvalidRequest, NotFound, ToolscriptError, envelope_of
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import Context, ToolServer
from toolscript.core.text import visible_json
from toolscript.gateway.approvals import HELD, for_agents
from toolscript.gateway.callers import client_is
from toolscript.gateway.mcp.parked import Relays
from toolscript.gateway.mcp.relaying import client_key, name_of
from toolscript.gateway.mcp.subscriptions import Subscriptions
from toolscript.gateway.mcp.valid_definitions import valid_definitions
from toolscript.gateway.model import (
    COMPLETE,
    GET_PROMPT,
    PROMPTS,
    READ_RESOURCE,
    RESOURCES,
    SUBSCRIBE,
    TEMPLATES,
    DirectGateway,
)

Result = dict[str, Any]

# The method of each list, and the field of its result.
LISTED = {
    PROMPTS: ("prompts/list", "prompts"),
    RESOURCES: ("resources/list", "resources"),
    TEMPLATES: ("resources/templates/list", "resourceTemplates"),
}
# Servers change what they offer, and clients hear of it; those that do not listen ask again soon.
LIST_MS = 10_000
_NOT_OF_SERVERS = ("_meta", "inputResponses", "requestState")
_REQUESTS: Mapping[str, type[BaseModel]] = {
    GET_PROMPT: GetPromptRequestParams,
    READ_RESOURCE: ReadResourceRequestParams,
    COMPLETE: CompleteRequestParams,
}


def add_entry_handlers(
    server: ToolServer, gateway: DirectGateway, relays: Relays, lists: Sequence[str] = (PROMPTS, RESOURCES)
) -> None:
    """Add the handlers. `lists` are those whose changes clients hear of."""

    async def require(context: Context, uri: str) -> None:
        """What is held is not watched; what nobody has never changes."""
        try:
            with client_is(name_of(context)):
                await gateway.request(SUBSCRIBE, {"uri": uri})
        except Forbidden as error:
            raise wire_error(error) from error
        except ToolscriptError:
            return

    Subscriptions(gateway, lists, require, relays.close).add_to(server)
    for kind, (method, field) in LISTED.items():
        server.add_request_handler(method, PaginatedRequestParams, _listing(gateway, kind, method, field))
    for method, params in _REQUESTS.items():
        server.add_request_handler(method, params, _passing(gateway, relays, method))

    hints = {method: CacheHint(LIST_MS, "private") for method, _ in LISTED.values()}
    server.cache_hints.update({**hints, READ_RESOURCE: CacheHint(0, "private")})

    async def set_level(context: Context, params: SetLevelRequestParams) -> EmptyResult:
        relays.levels.set(client_key(context), params.level)
        return EmptyResult()

    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


def _listing(
    gateway: DirectGateway, kind: str, method: str, field: str
) -> Callable[[Context, PaginatedRequestParams | None], Awaitable[Result]]:
    async def entries(context: Context, params: PaginatedRequestParams | None) -> Result:
        with _wire_errors():
            page = await gateway.entries(kind, (params and params.cursor) or "")
        more = {"nextCursor": page.next_cursor} if page.next_cursor else {}
        shown = valid_definitions(method, field, page.entries, context.protocol_version)
        return {field: shown, "resultType": "complete", **more}

    return entries


def _passing(gateway: DirectGateway, relays: Relays, method: str) -> Callable[[Context, Any], Awaitable[Result]]:
    async def send(context: Context, _params: Any) -> Result:
        given: JsonObject = context.params or {}
        params = {name: value for name, value in given.items() if name not in _NOT_OF_SERVERS}

        async def answer() -> Result:
            with _wire_errors():
                return {"resultType": "complete", **_visible(await gateway.request(method, params))}

        with client_is(name_of(context)):
            return await relays.answer(context, answer)

    return send


def _visible(answer: JsonObject) -> Result:
    """Return a prompt or a resource without invisible characters in what models read."""
    shown = dict(answer)
    if "messages" in shown:
        shown["messages"] = visible_json(shown["messages"])
    contents = shown.get("contents")
    if isinstance(contents, list):
        shown["contents"] = [
            {**part, "text": visible_json(part["text"])} if isinstance(part, dict) and "text" in part else part
            for part in contents
        ]
    return shown


@contextmanager
def _wire_errors() -> Iterator[None]:
    try:
        yield
    except ToolscriptError as error:
        raise wire_error(error) from error


def wire_error(error: ToolscriptError) -> MCPError:
    """Return the error as MCP has it: a server's with its own code and data."""
    code = error.details.get("code")
    if isinstance(error, Forbidden) and HELD in error.details:
        return MCPError(INVALID_PARAMS, for_agents(error.message))
    if not isinstance(code, int):
        code = INVALID_PARAMS if isinstance(error, InvalidRequest | NotFound | Forbidden) else INTERNAL_ERROR
    message = f"{error.message}. {error.hint}" if error.hint else error.message
    return MCPError(code, message, error.details.get("data", envelope_of(error)))
