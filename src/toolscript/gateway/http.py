"""Each route parses, asks the gateway, and shows what came back."""

import json
import math
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from toolscript.errors import InvalidRequest
from toolscript.model.gateway import LocalAnswer, LocalQuery
from toolscript.model.gateway_json import (
    answer_to_json,
    call_to_json,
    health_to_json,
    item_to_json,
    states_to_json,
)
from toolscript.model.items import ItemKind
from toolscript.model.queries import SearchType
from toolscript.ports import Gateway

MOST_TOOLS = 1_000


class _Anything(Convertor[str]):
    """All that is left of a path, whatever is in it; `path` stops at the end of a line."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def gateway_routes(gateway: Gateway, *, limit: int, threshold: float) -> list[Route]:
    """`limit` and `threshold` hold where a request names none."""

    async def search(request: Request) -> Response:
        query = LocalQuery(
            text=request.query_params.get("q", ""),
            limit=_whole(request, "limit", limit),
            threshold=_number(request, "threshold", threshold),
            kind=_kind(request),
            search_type=_search_type(request),
        )
        answer = await gateway.search(query)
        data = answer_to_json(answer, explain=_flag(request, "explain"))
        return JSONResponse(_with_schemas(data, answer) if _flag(request, "schemas") else data)

    async def health(_: Request) -> Response:
        return JSONResponse(health_to_json(await gateway.health()))

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def servers(_: Request) -> Response:
        return JSONResponse({"servers": states_to_json(await gateway.servers())})

    async def tools(request: Request) -> Response:
        """All that can be found, a page at a time."""
        items = await gateway.items(_filter(request))
        offset, most = _whole(request, "offset", 0), min(MOST_TOOLS, _whole(request, "limit", MOST_TOOLS))
        page = [item_to_json(item, schemas=_flag(request, "schemas")) for item in items[offset : offset + most]]
        return JSONResponse({"tools": page, "total": len(items), "offset": offset})

    async def types(request: Request) -> Response:
        module = await gateway.typescript(_filter(request), compact=_flag(request, "compact"))
        return PlainTextResponse(module, media_type="application/typescript; charset=utf-8")

    async def call(request: Request) -> Response:
        arguments = _object(await request.body())
        return JSONResponse(call_to_json(await gateway.call(request.path_params["tool"], arguments)))

    return [
        Route("/search", search),
        Route("/health", health),
        Route("/livez", alive),
        Route("/servers", servers),
        Route("/tools", tools),
        Route("/runtime/tools.ts", types),
        Route("/tools/{tool:anything}", call, methods=["POST"]),
    ]


def _with_schemas(data: dict[str, Any], answer: LocalAnswer) -> dict[str, Any]:
    shown = [*data["results"], *data.get("nearMisses", ())]
    for one, hit in zip(shown, (*answer.hits, *answer.near_misses), strict=True):
        one.update(item_to_json(hit.item, schemas=True))
    return data


def _filter(request: Request) -> tuple[str, ...]:
    names = tuple(part.strip() for part in request.query_params.get("filter", "").split(",") if part.strip())
    if len(names) > MOST_TOOLS:
        raise InvalidRequest(f"a filter names at most {MOST_TOOLS}", details={"field": "filter"})
    return names


def _kind(request: Request) -> ItemKind | None:
    text = request.query_params.get("kind", ItemKind.TOOL.value)
    if text == "any":
        return None
    try:
        return ItemKind(text)
    except ValueError:
        raise InvalidRequest("kind must be tool, prompt, resource or any", details={"field": "kind"}) from None


def _search_type(request: Request) -> SearchType | None:
    text = request.query_params.get("search_type")
    try:
        return None if text is None else SearchType(text)
    except ValueError:
        known = ", ".join(SearchType)
        raise InvalidRequest(f"search_type must be one of {known}", details={"field": "search_type"}) from None


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidRequest(f"{name} must be a whole number", details={"field": name})
    return int(text)


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidRequest(f"{name} must be a number", details={"field": name})
    return number


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")


def _object(body: bytes) -> dict[str, object]:
    """The arguments of a call; none at all are no arguments."""
    try:
        arguments = json.loads(body) if body.strip() else {}
        # NaN and half a surrogate pair pass Python's reader and are no JSON: nobody could be sent them.
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON", hint="send the arguments as a JSON object") from None
    if not isinstance(arguments, dict):
        raise InvalidRequest("the body must be a JSON object", hint="send the arguments as a JSON object")
    return arguments
