"""HTTP client of a gateway in another process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from toolscript.core import errors
from toolscript.core.errors import InvalidRequest, ServerUnavailable, ToolscriptError, Unavailable
from toolscript.core.http_client import REFUSALS, Answer, Peer, address_of, exchange, refusal_in, unexpected_peer
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.core.retrieval.deadline import run_on_daemon_thread
from toolscript.core.retrieval.query import SearchType
from toolscript.core.text import readable
from toolscript.gateway.json import (
    answer_from_json,
    call_from_json,
    health_from_json,
    item_of_json,
    states_from_json,
)
from toolscript.gateway.model import GatewayHealth, LocalAnswer, LocalQuery

T = TypeVar("T")

GATEWAY = Peer("gateway", "http://127.0.0.1:7355", "`toolscript gateway status` shows its state")
PAGE = 1_000
MAX_PAGES = 1_000

_BY_STATUS: Mapping[int, type[ToolscriptError]] = {
    **REFUSALS,
    502: errors.ServerRejected,
    503: errors.NotReady,
}


class GatewayClient:
    """Implements the port `Gateway`. `seconds` bounds every request but a call, which has `call_seconds`.

    `find_again` returns address and token of a restarted gateway, for clients that outlive the first. `note` is
    added to every answer; `search_type` to every query that has none.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        seconds: float = 30.0,
        call_seconds: float = 600.0,
        find_again: Callable[[], tuple[str, str] | None] = lambda: None,
        note: Callable[[], str] = lambda: "",
        search_type: SearchType | None = None,
    ) -> None:
        self._address = address_of(url, GATEWAY)
        self._token = token
        self._seconds = seconds
        self._call_seconds = call_seconds
        self._find_again = find_again
        self._note = note
        self._search_type = search_type

    async def search(self, query: LocalQuery) -> LocalAnswer:
        parameters = {"q": query.text, "limit": query.limit, "threshold": query.threshold}
        kind = {"kind": query.kind.value if query.kind else "any"}
        more = {"explain": "true", "schemas": "true"}
        search_type = query.search_type or self._search_type
        type_parameter = {"search_type": search_type.value} if search_type else {}
        path = f"/search?{urlencode({**parameters, **kind, **more, **type_parameter})}"
        answer = await self._read(answer_from_json, "GET", path)
        note = self._note()
        return replace(answer, hint="; ".join(filter(None, (answer.hint, note)))) if note else answer

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        items: list[Item] = []
        for _ in range(MAX_PAGES):
            parameters = {"filter": _filter(wanted), "schemas": "true", "offset": len(items), "limit": PAGE}
            page, total = await self._read(_page, "GET", f"/tools?{urlencode(parameters)}")
            items += page
            if not page or len(items) >= total:
                break
        return items

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        parameters = urlencode({"filter": _filter(wanted), "compact": str(compact).lower()})
        return (await self._ask("GET", f"/runtime/tools.ts?{parameters}")).decode()

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
            raise unexpected_peer(GATEWAY, self._address) from error

    async def _ask(self, method: str, path: str, body: object = None, *, seconds: float | None = None) -> bytes:
        # A daemon thread: a cancelled request need not wait for a running tool.
        request = partial(self._request, method, path, body, seconds or self._seconds)
        try:
            return await run_on_daemon_thread(request)
        except Unavailable as error:
            # Connection refused: no gateway received the request, so it is safe to repeat.
            if not isinstance(error.__cause__, ConnectionRefusedError) or not (restarted := self._find_again()):
                raise
        url, self._token = restarted
        self._address = address_of(url, GATEWAY)
        return await run_on_daemon_thread(request)

    def _request(self, method: str, path: str, body: object, seconds: float) -> bytes:
        answer = exchange(GATEWAY, self._address, method, path, body, token=self._token, seconds=seconds)
        if answer.status >= 400:
            raise _error(answer)
        return answer.body


def _filter(wanted: Sequence[str]) -> str:
    return readable(",".join(wanted))


def _page(data: Mapping[str, Any]) -> tuple[list[Item], int]:
    return [item_of_json(entry) for entry in data["tools"]], int(data["total"])


def _error(answer: Answer) -> ToolscriptError:
    refusal = refusal_in(answer)
    kind = _BY_STATUS.get(answer.status, Unavailable)
    if kind is errors.NotReady and "server" in refusal.details:
        kind = ServerUnavailable
    return kind(
        refusal.message or f"the gateway answered {answer.status}", hint=refusal.hint, details=refusal.details
    )
