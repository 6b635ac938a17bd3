"""The gateway's routes under `/api/v1`, in the words of the service's API, and their description.

Without FastAPI and Pydantic, because a gateway must start at once.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, TypeVar

from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscript.core.errors import Forbidden, InvalidRequest, NotFound, OutcomeUnknown, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject, split_tool_id, tool_id
from toolscript.core.mcp.arguments import one_of, require_known, text, truth, wrong
from toolscript.core.mcp_client.model import ServerState
from toolscript.core.retrieval.query import MAX_QUERY, SearchType
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.core.web.request_context import new_query_id
from toolscript.gateway.approvals import HELD, held_message
from toolscript.gateway.callers import CallTerms, on_terms
from toolscript.gateway.json import Json, answer_shown, call_shown, server_shown, tool_shown, without_words
from toolscript.gateway.model import Gateway, LocalQuery
from toolscript.gateway.openapi import (
    ANY_KIND,
    DEFAULT_PAGE,
    MAX_PAGE,
    REVIEWS_PATH,
    SEARCH_FIELDS,
    SERVERS_PATH,
    TOOLS_PATH,
    openapi_document,
)
from toolscript.gateway.rules import Risk

T = TypeVar("T")

# In the scope of a request that carries the gateway's own token, which is the person's. A connection of the user's
# own is not enough, as the programs of an agent have one, too; nor is the token of a client.
HAS_CREDENTIAL = "toolscript.has_credential"
KINDS = (*ItemKind, ANY_KIND)
RISKS = tuple(Risk)
MAX_NEAREST = 3
# Their paths look like those of a tool, which always has `__` in its id.
_ACTIONS = ("search", "call")
_AS_OBJECT = "send a JSON object"
_STATES = f"`GET {SERVERS_PATH}` shows the state of every server"


class _Anything(Convertor[str]):
    """The rest of a path, with any characters; `path` stops at the end of a line."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def api_routes(gateway: Gateway, *, limit: int, threshold: float) -> list[Route]:
    """Return the routes. `limit` and `threshold` are the defaults of a search."""

    async def search_tools(request: Request) -> Response:
        query_id, body = new_query_id(request), json_object(await request.body(), _AS_OBJECT)
        return JSONResponse(await search_with(gateway, body, query_id, limit=limit, threshold=threshold))

    async def list_tools(request: Request) -> Response:
        """List items in order of server, name and kind."""
        kind, schemas = request.query_params.get("kind", ANY_KIND), _flag(request, "include_schemas")
        items = await items_of_kind(gateway, kind, tuple(request.query_params.getlist("server")))
        return _page(request, items, position_of, lambda item: tool_shown(item, schemas=schemas))

    async def get_tool(request: Request) -> Response:
        kind = request.query_params.get("kind", ItemKind.TOOL)
        item = await find_item(gateway, _id_in_path(request), kind)
        return JSONResponse(tool_shown(item, schemas=True))

    async def call_tool(request: Request) -> Response:
        body = json_object(await request.body(), _AS_OBJECT)
        require_known("a call", body, ("id", "arguments", "confirm", "max_risk"), word="field")
        arguments = body.get("arguments", {})
        if not isinstance(arguments, dict):
            raise wrong("arguments", "must be a JSON object")
        tool = _tool_id(text(body, "id"), "id")
        with on_terms(terms_of(request, tool, confirms=truth(body, "confirm"), given=body)):
            return JSONResponse(call_shown(await _for_http(gateway.call(tool, arguments))))

    async def list_servers(request: Request) -> Response:
        servers = seen_by(request, await gateway.servers())
        return _page(request, servers, lambda server: server.name, server_shown)

    async def openapi(_: Request) -> Response:
        return JSONResponse(openapi_document(limit, threshold))

    return [
        Route(f"{TOOLS_PATH}/search", search_tools, methods=["POST"]),
        Route(f"{TOOLS_PATH}/call", call_tool, methods=["POST"]),
        Route(TOOLS_PATH, list_tools, methods=["GET"]),
        Route(f"{TOOLS_PATH}/{{tool_id:anything}}", get_tool, methods=["GET"]),
        Route(SERVERS_PATH, list_servers, methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
    ]


def _id_in_path(request: Request) -> str:
    value = request.path_params["tool_id"]
    if value in _ACTIONS:
        raise HTTPException(405, headers={"Allow": "POST"})
    return _tool_id(value, "tool_id")


def _tool_id(value: str, field: str) -> str:
    """Return the id of a tool without the prefix of clients; `field` is what the request calls it."""
    try:
        return tool_id(*split_tool_id(value))
    except InvalidRequest as error:
        error.details["field"] = field
        raise


async def search_with(gateway: Gateway, body: JsonObject, query_id: str, *, limit: int, threshold: float) -> Json:
    """Return the answer to the body of a search."""
    began = time.perf_counter()
    query = _query(body, limit, threshold)
    explain, schemas = truth(body, "explain"), truth(body, "include_schemas")
    shown = answer_shown(await gateway.search(query), explain=explain, schemas=schemas)
    took_ms = round((time.perf_counter() - began) * 1000, 3)
    about = {"kind": _kind_name(query.kind), "limit": query.limit, "took_ms": took_ms}
    return {"query_id": query_id, **shown, "metadata": {**shown["metadata"], **about}}


async def items_of_kind(gateway: Gateway, kind: str, servers: tuple[str, ...]) -> Sequence[Item]:
    wanted = _kind(one_of({"kind": kind}, "kind", KINDS))
    return [item for item in await gateway.items(servers) if wanted in (None, item.kind)]


async def find_item(gateway: Gateway, full_name: str, kind_name: str) -> Item:
    kind = ItemKind(one_of({"kind": kind_name}, "kind", tuple(ItemKind)))
    name = _tool_id(full_name, "tool_id")
    for item in await gateway.items((name,)):
        if tool_id(item.server, item.name) == name and item.kind is kind:
            return item
    for review in await gateway.reviews():
        if (review.tool, review.kind) == (name, kind) and review.held:
            raise held_over_http(held_message(review), {HELD: review.status.value, "tool": review.tool})
    from rapidfuzz import process

    names = [tool_id(item.server, item.name) for item in await gateway.items() if item.kind is kind]
    nearest = [match[0] for match in process.extract(name, names, limit=MAX_NEAREST)]
    raise NotFound(
        f"there is no {kind} {name[:200]}",
        hint=f"`GET {TOOLS_PATH}` lists what there is, `POST {TOOLS_PATH}/search` finds it",
        details={"nearest": nearest},
    )


def seen_by(request: Request, states: Sequence[ServerState]) -> tuple[ServerState, ...]:
    """Return the states, with what servers said for the person alone."""
    return tuple(states if request.scope.get(HAS_CREDENTIAL) else without_words(states))


def terms_of(request: Request, tool: str, *, confirms: bool, given: Mapping[str, object]) -> CallTerms:
    """Return the terms of a call: what a person confirms, by their own credential, and the highest risk."""
    limit = one_of(given, "max_risk", RISKS) if "max_risk" in given else ""
    return CallTerms(tool if confirms and request.scope.get(HAS_CREDENTIAL) else "", limit)


def held_over_http(message: str, details: Mapping[str, object]) -> Forbidden:
    return Forbidden(message, hint=f"`GET {REVIEWS_PATH}` shows how it differs; its user decides", details=details)


async def _for_http(request: Awaitable[T]) -> T:
    """Point to a route instead of a command where a server is down or a tool is held."""
    try:
        return await request
    except OutcomeUnknown:
        raise
    except Forbidden as error:
        raise (held_over_http(error.message, error.details) if HELD in error.details else error) from error
    except ServerUnavailable as error:
        raise ServerUnavailable(error.message, hint=_STATES, details=error.details) from error


def _page(
    request: Request, entries: Sequence[T], position: Callable[[T], str], show: Callable[[T], Json]
) -> Response:
    entries, next_cursor = page_of(request, entries, position)
    return JSONResponse({"results": list(map(show, entries)), "next_cursor": next_cursor})


def page_of(request: Request, entries: Iterable[T], position: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Return the entries after the cursor; entries that vanish between two pages hide no other."""
    limit = count_in(request, "limit", DEFAULT_PAGE, MAX_PAGE)
    after = decode_cursor(request.query_params.get("cursor", ""), "")
    following = nsmallest(limit + 1, (entry for entry in entries if position(entry) > after), key=position)
    next_cursor = encode_cursor(position(following[limit - 1])) if len(following) > limit else None
    return following[:limit], next_cursor


def position_of(item: Item) -> str:
    """Return the place of an item in a list. Resources of one name differ by their key."""
    return "\0".join((item.server, item.name, item.kind, item.key))


def _query(body: JsonObject, limit: int, threshold: float) -> LocalQuery:
    require_known("a search", body, SEARCH_FIELDS, word="field")
    query = text(body, "query")
    if len(query) > MAX_QUERY:
        raise wrong("query", f"is longer than {MAX_QUERY} characters")
    return LocalQuery(
        text=query,
        limit=_whole(body, "limit", limit),
        threshold=_number(body, "threshold", threshold),
        kind=_kind(one_of(body, "kind", KINDS)),
        search_type=SearchType(one_of(body, "search_type", [*SearchType])) if "search_type" in body else None,
    )


def _kind(name: str) -> ItemKind | None:
    return None if name == ANY_KIND else ItemKind(name)


def _kind_name(kind: ItemKind | None) -> str:
    return ANY_KIND if kind is None else kind.value


def _whole(body: JsonObject, name: str, default: int) -> int:
    """Return a whole number, written as 5 or 5.0; LocalQuery checks its range."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise wrong(name, "must be a whole number")
    return int(value)


def _number(body: JsonObject, name: str, default: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(name, "must be a number")
    return value


def parameter_of(request: Request, name: str, default: str, allowed: Sequence[str]) -> str:
    return one_of({name: request.query_params.get(name, default)}, name, allowed)


def _flag(request: Request, name: str) -> bool:
    return parameter_of(request, name, "false", ("true", "false")) == "true"


def count_in(request: Request, name: str, default: int, maximum: int) -> int:
    value = request.query_params.get(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= maximum):
        raise wrong(name, f"must be a whole number from 1 to {maximum}")
    return int(value)


def json_object(body: bytes, hint: str) -> dict[str, Any]:
    """Parse a body; an empty one is an empty object."""
    try:
        value = json.loads(body) if body.strip() else {}
        # Python accepts NaN and lone surrogates, which are not JSON: no server could receive them.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON", hint=hint) from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object", hint=hint)
    return value
