"""A gateway in another process, over HTTP, with the standard library's client: others take longer to import."""

import asyncio
import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from toolscript import errors
from toolscript.errors import InvalidRequest, ServerUnavailable, ToolscriptError, Unavailable
from toolscript.model.gateway import GatewayHealth, LocalAnswer, LocalQuery
from toolscript.model.gateway_json import (
    answer_from_json,
    call_from_json,
    health_from_json,
    item_of_json,
    states_from_json,
)
from toolscript.model.items import Item, JsonObject
from toolscript.model.servers import CallResult, ServerState

PAGE = 1_000
MOST_PAGES = 1_000

_BY_STATUS: Mapping[int, type[ToolscriptError]] = {
    400: errors.InvalidRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    413: errors.InvalidRequest,
    422: errors.InvalidRequest,
    502: errors.ServerRejected,
    503: errors.NotReady,
}


class GatewayClient:
    """Implements the port `Gateway`. `seconds` bounds every request but a call, which has its server's time."""

    def __init__(self, url: str, *, token: str = "", seconds: float = 30.0, call_seconds: float = 600.0) -> None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InvalidRequest(f"{url!r} is not the address of a gateway", hint="write http://127.0.0.1:7355")
        self._address = address
        self._token = token
        self._seconds = seconds
        self._call_seconds = call_seconds

    async def search(self, query: LocalQuery) -> LocalAnswer:
        asked = {"q": query.text, "limit": query.limit, "threshold": query.threshold}
        kind = {"kind": query.kind.value if query.kind else "any"}
        more = {"explain": "true", "schemas": "true"}
        return answer_from_json(await self._json("GET", f"/search?{urlencode({**asked, **kind, **more})}"))

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        items: list[Item] = []
        for _ in range(MOST_PAGES):
            asked = {"filter": ",".join(wanted), "schemas": "true", "offset": len(items), "limit": PAGE}
            page = await self._json("GET", f"/tools?{urlencode(asked)}")
            items += [item_of_json(one) for one in page["tools"]]
            if not page["tools"] or len(items) >= page["total"]:
                break
        return items

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        asked = urlencode({"filter": ",".join(wanted), "compact": str(compact).lower()})
        return (await self._ask("GET", f"/runtime/tools.ts?{asked}")).decode()

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        path = f"/tools/{quote(tool, safe='')}"
        return call_from_json(await self._json("POST", path, arguments, seconds=self._call_seconds))

    async def servers(self) -> Sequence[ServerState]:
        return states_from_json((await self._json("GET", "/servers"))["servers"])

    async def health(self) -> GatewayHealth:
        return health_from_json(await self._json("GET", "/health"))

    async def _json(self, method: str, path: str, body: object = None, *, seconds: float | None = None) -> Any:
        return json.loads(await self._ask(method, path, body, seconds=seconds))

    async def _ask(self, method: str, path: str, body: object = None, *, seconds: float | None = None) -> bytes:
        return await asyncio.to_thread(self._request, method, path, body, seconds or self._seconds)

    def _request(self, method: str, path: str, body: object, seconds: float) -> bytes:
        connection = self._connection(seconds)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, self._address.path.rstrip("/") + path, sent, headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"the gateway at {self._address.netloc} does not answer: {error}",
                hint="`toolscript gateway status` shows what is known of it",
            ) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise _error(response.status, answer)
        return answer

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        assert self._address.hostname is not None  # noqa: S101
        return kind(self._address.hostname, self._address.port, timeout=seconds)


def _error(status: int, answer: bytes) -> ToolscriptError:
    try:
        body = json.loads(answer)["error"]
        details = dict(body["details"])
        message, hint = str(body["message"]), str(details.pop("hint", ""))
    except (ValueError, KeyError, TypeError):
        details, message, hint = {}, f"the gateway answered {status}", ""
    kind = _BY_STATUS.get(status, Unavailable)
    if kind is errors.NotReady and "server" in details:
        kind = ServerUnavailable
    return kind(message, hint=hint, details=details)
