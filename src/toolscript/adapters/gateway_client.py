"""A gateway in another process, over HTTP, with the standard library's client: others take longer to import."""

import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

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
from toolscript.model.text import readable
from toolscript.search.abandonable import abandonable

T = TypeVar("T")

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
    """Implements the port `Gateway`. `seconds` bounds every request but a call, which has its server's time.

    `find_again` gives the address of a gateway that was started anew, for whoever outlives the first.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        seconds: float = 30.0,
        call_seconds: float = 600.0,
        find_again: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._use(url)
        self._token = token
        self._seconds = seconds
        self._call_seconds = call_seconds
        self._find_again = find_again

    def _use(self, url: str) -> None:
        self._address, self._host, self._port = _address(url)
        self._place = self._address.netloc.rpartition("@")[2]

    async def search(self, query: LocalQuery) -> LocalAnswer:
        asked = {"q": query.text, "limit": query.limit, "threshold": query.threshold}
        kind = {"kind": query.kind.value if query.kind else "any"}
        more = {"explain": "true", "schemas": "true"}
        return await self._read(answer_from_json, "GET", f"/search?{urlencode({**asked, **kind, **more})}")

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        items: list[Item] = []
        for _ in range(MOST_PAGES):
            asked = {"filter": _filter(wanted), "schemas": "true", "offset": len(items), "limit": PAGE}
            page, total = await self._read(_page, "GET", f"/tools?{urlencode(asked)}")
            items += page
            if not page or len(items) >= total:
                break
        return items

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        asked = urlencode({"filter": _filter(wanted), "compact": str(compact).lower()})
        return (await self._ask("GET", f"/runtime/tools.ts?{asked}")).decode()

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        path = f"/tools/{quote(readable(tool), safe='')}"
        return await self._read(call_from_json, "POST", path, arguments, seconds=self._call_seconds)

    async def servers(self) -> Sequence[ServerState]:
        return await self._read(lambda data: states_from_json(data["servers"]), "GET", "/servers")

    async def health(self) -> GatewayHealth:
        return await self._read(health_from_json, "GET", "/health")

    async def _read(
        self,
        read: Callable[[Any], T],
        method: str,
        path: str,
        body: object = None,
        *,
        seconds: float | None = None,
    ) -> T:
        answer = await self._ask(method, path, body, seconds=seconds)
        try:
            return read(json.loads(answer))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidRequest) as error:
            raise Unavailable(
                f"what answers at {self._place} is no gateway, or one of another version",
                hint="`toolscript gateway status` shows what is known of it",
            ) from error

    async def _ask(self, method: str, path: str, body: object = None, *, seconds: float | None = None) -> bytes:
        # Whoever gives up while a tool is at work need not wait for it.
        request = partial(self._request, method, path, body, seconds or self._seconds)
        try:
            return await abandonable(request)
        except Unavailable as error:
            # Nobody was there to hear it: it can be said again.
            if not isinstance(error.__cause__, ConnectionRefusedError) or not (url := self._find_again()):
                raise
        self._use(url)
        return await abandonable(request)

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
                f"the gateway at {self._place} does not answer: {error}",
                hint="`toolscript gateway status` shows what is known of it",
            ) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise _error(response.status, answer)
        return answer

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=seconds)


def _address(url: str) -> tuple[SplitResult, str, int | None]:
    """The address, its host and its port. It stays out of the message: a password may stand in it."""
    try:
        address = urlsplit(url)
        host, port = address.hostname, address.port
    except ValueError:
        address, host, port = urlsplit(""), None, None
    if not host or address.scheme not in ("http", "https"):
        raise InvalidRequest("this is not the address of a gateway", hint="write http://127.0.0.1:7355")
    return address, host, port


def _filter(wanted: Sequence[str]) -> str:
    return readable(",".join(wanted))


def _page(data: Mapping[str, Any]) -> tuple[list[Item], int]:
    return [item_of_json(one) for one in data["tools"]], int(data["total"])


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
