"""HTTP client of a gateway in another process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from toolscript.client.exchange import Conversation, Peer, Request, Retries, address_of
from toolscript.client.http import Sender
from toolscript.client.resource import query_of, step_of
from toolscript.core.errors import NotReady, Unavailable
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.core.retrieval.query import SearchType
from toolscript.core.text import readable
from toolscript.gateway.callers import CLIENT_HEADER, current_client
from toolscript.gateway.json import (
    answer_from_json,
    call_from_json,
    health_from_json,
    item_of_json,
    states_from_json,
)
from toolscript.gateway.model import GatewayHealth, LocalAnswer, LocalQuery

T = TypeVar("T")

GATEWAY = Peer("gateway", "http://127.0.0.1:7355", "`toolscript gateway status` shows its state", NotReady)
CONNECT_SECONDS = 5.0
PAGE = 1_000
MAX_PAGES = 1_000


class GatewayClient:
    """Implements the port `Gateway`. `seconds` bounds every request but a call, which has `call_seconds`.

    `find_again` returns address and token of a restarted gateway, for clients that outlive the first. `note` is
    added to every answer; `search_type` to every query that has none. With `blocks`, nothing is ever waited for: a
    request blocks its thread, as a command that asks once may, which then needs no event loop.
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
        blocks: bool = False,
    ) -> None:
        self._blocks = blocks
        self._seconds = seconds
        self._sender = self._connect(url, token)
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
        path = f"/search{query_of({**parameters, **kind, **more, **type_parameter})}"
        answer = await self._read(answer_from_json, "GET", path)
        note = self._note()
        return replace(answer, hint="; ".join(filter(None, (answer.hint, note)))) if note else answer

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        items: list[Item] = []
        for _ in range(MAX_PAGES):
            parameters = {"filter": _filter(wanted), "schemas": "true", "offset": len(items), "limit": PAGE}
            page, total = await self._read(_page, "GET", f"/tools{query_of(parameters)}")
            items += page
            if not page or len(items) >= total:
                break
        return items

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        path = f"/runtime/tools.ts{query_of({'filter': _filter(wanted), 'compact': compact})}"
        return await self._ask(bytes.decode, Request("GET", path, timeout=self._seconds))

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        body, seconds = json.dumps(arguments).encode(), self._call_seconds
        request = Request("POST", f"/tools/{step_of(tool)}", body, idempotent=False, timeout=seconds)
        return await self._ask(lambda answer: call_from_json(json.loads(answer)), request)

    async def servers(self) -> Sequence[ServerState]:
        return await self._read(lambda data: states_from_json(data["servers"]), "GET", "/servers")

    async def health(self) -> GatewayHealth:
        return await self._read(health_from_json, "GET", "/health")

    async def _read(self, read: Callable[[Any], T], method: str, path: str) -> T:
        return await self._ask(
            lambda answer: read(json.loads(answer)), Request(method, path, timeout=self._seconds)
        )

    async def _ask(self, read: Callable[[bytes], T], request: Request) -> T:
        try:
            return await self._run(read, request)
        except Unavailable as error:
            # Connection refused: no gateway received the request, so it is safe to repeat.
            if not isinstance(error.__cause__, ConnectionRefusedError) or not (restarted := self._find_again()):
                raise
        self._sender = self._connect(*restarted)
        return await self._run(read, request)

    async def _run(self, read: Callable[[bytes], T], request: Request) -> T:
        request = replace(request, more={CLIENT_HEADER: quote(current_client())})
        sender, conversation = self._sender, self._conversation
        if self._blocks:
            return sender.run(conversation.ask(request, read))
        from toolscript.core.retrieval.deadline import run_on_daemon_thread

        # A daemon thread: a cancelled request need not wait for a running tool.
        return await run_on_daemon_thread(lambda: sender.run(conversation.ask(request, read)))

    def _connect(self, url: str, token: str) -> Sender:
        """Return a sender that never repeats a request: a person waits, and a gateway is near."""
        self._conversation = Conversation(GATEWAY, address_of(url, GATEWAY), Retries(0))
        return Sender(
            self._conversation,
            token=token,
            timeout=self._seconds,
            connect_timeout=CONNECT_SECONDS,
            max_idle=0,
        )


def _filter(wanted: Sequence[str]) -> str:
    return readable(",".join(wanted))


def _page(data: Mapping[str, Any]) -> tuple[list[Item], int]:
    return [item_of_json(entry) for entry in data["tools"]], int(data["total"])
