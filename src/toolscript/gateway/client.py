"""HTTP client of a gateway in another process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPException
from time import sleep
from typing import Any, TypeVar
from urllib.parse import quote

from toolscript.client.exchange import Conversation, Peer, Request, Retries, address_of
from toolscript.client.http import Sender
from toolscript.client.resource import query_of, step_of
from toolscript.core.errors import NotFound, NotReady, OutcomeUnknown, Unavailable
from toolscript.core.items import Item, JsonObject, split_tool_id, tool_id
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.core.retrieval.query import SearchType
from toolscript.core.text import readable
from toolscript.gateway.approvals import Decision, Review, review_from_json
from toolscript.gateway.callers import CLIENT_HEADER, current_client, current_terms
from toolscript.gateway.json import (
    answer_from_json,
    call_from_json,
    health_from_json,
    item_of_json,
    states_from_json,
)
from toolscript.gateway.model import GatewayHealth, LocalAnswer, LocalQuery
from toolscript.gateway.workspace import PREFIX, UNKNOWN_WORKSPACE, WORKSPACES_PATH, Workspace

T = TypeVar("T")

GATEWAY = Peer("gateway", "http://127.0.0.1:7355", "`toolscript gateway status` shows its state", NotReady)
CONNECT_SECONDS = 5.0
HANDOVER_PATH, ALIVE_PATH = "/handover", "/livez"
# A gateway that ends has ended after this.
ENDING_SECONDS = 0.1
PAGE = 1_000
MAX_PAGES = 1_000
# How many gateways one request is sent to, where each ends before it answers.
MAX_GATEWAYS = 3


class Place:
    """Where requests go: an address with its token, and the workspace that the gateway there may not know yet.

    No dataclass: defining one takes longer than a command's request.
    """

    def __init__(self, url: str, token: str = "", workspace: Workspace | None = None) -> None:
        self.url = url
        self.token = token
        self.workspace = workspace

    @property
    def whole_url(self) -> str:
        return self.url if self.workspace is None else f"{self.url.rstrip('/')}{PREFIX}{self.workspace.id}"


class GatewayClient:
    """Implements the port `Gateway`. `seconds` bounds every request but a call, which has `call_seconds`.

    `find_again` returns the place of a gateway that was started after this one has ended, or starts one, for
    clients that outlive the first; `look_again` the place in the same gateway, as workspaces change. `note` is
    added to every answer; `search_type` to every query that has none. With `blocks`, nothing is ever waited for: a
    request blocks its thread, as a command that asks once may, which then needs no event loop.
    """

    def __init__(
        self,
        place: Place | str,
        *,
        token: str = "",
        seconds: float = 30.0,
        call_seconds: float = 600.0,
        find_again: Callable[[], Place | None] = lambda: None,
        look_again: Callable[[], Place] | None = None,
        note: Callable[[], str] = lambda: "",
        search_type: SearchType | None = None,
        blocks: bool = False,
    ) -> None:
        self._blocks = blocks
        self._seconds = seconds
        self._line = self._connect(Place(place, token) if isinstance(place, str) else place)
        self._call_seconds = call_seconds
        self._find_again = find_again
        self._look_again = look_again
        self._note = note
        self._search_type = search_type
        self._was_lost = False
        # Whether the gateway did not know this client's workspace before.
        self.opened_workspace = False

    def hand_over(self, address: str) -> None:
        """Ask the gateway to pass its place on, to the process that listens at this Unix socket. Blocks."""
        body = json.dumps({"socket": address}).encode()
        request = Request("POST", HANDOVER_PATH, body, idempotent=False, timeout=self._seconds)
        line = self._line
        line.sender.run(line.conversation.ask(request, bytes))

    @property
    def url(self) -> str:
        """The address of this client's workspace."""
        return self._line.place.whole_url

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

    async def search_shown(self, body: JsonObject) -> dict[str, Any]:
        """Search with the body, and return the answer, of the route under `/api/v1`."""
        from toolscript.gateway.openapi import TOOLS_PATH

        note = self._note()
        search_type = {"search_type": self._search_type.value} if self._search_type else {}
        sent = json.dumps({**search_type, **body}).encode()
        request = Request("POST", f"{TOOLS_PATH}/search", sent, timeout=self._seconds)
        answer: dict[str, Any] = await self._ask(json.loads, request)
        if note:
            about = answer["metadata"]
            about["hint"] = "; ".join(filter(None, (about.get("hint"), note)))
        return answer

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
        terms = current_terms()
        # A confirmation is of one tool. The gateway is asked about another one as if there were none.
        confirms = bool(terms.confirmed) and terms.confirmed in (tool, tool_id(*split_tool_id(tool)))
        body, seconds = json.dumps(arguments).encode(), self._call_seconds
        query = query_of({"confirm": "true" if confirms else None, "max_risk": terms.max_risk or None})
        request = Request("POST", f"/tools/{step_of(tool)}{query}", body, idempotent=False, timeout=seconds)
        return await self._ask(_called, request)

    async def reviews(self) -> Sequence[Review]:
        from toolscript.gateway.openapi import MAX_PAGE, REVIEWS_PATH

        reviews: list[Review] = []
        cursor = ""
        for _ in range(MAX_PAGES):
            path = f"{REVIEWS_PATH}{query_of({'limit': MAX_PAGE, 'cursor': cursor})}"
            page = await self._read(lambda data: data, "GET", path)
            reviews += map(review_from_json, page["results"])
            cursor = page["next_cursor"]
            if not cursor:
                break
        return reviews

    async def decide(self, decision: Decision, digests: Sequence[str]) -> Sequence[Review]:
        from toolscript.gateway.openapi import MAX_DECIDED, REVIEWS_PATH

        decided: list[Review] = []
        for begin in range(0, len(digests), MAX_DECIDED):
            body = json.dumps({"digests": [*digests[begin : begin + MAX_DECIDED]]}).encode()
            request = Request("POST", f"{REVIEWS_PATH}/{decision}", body, idempotent=False, timeout=self._seconds)
            decided += await self._ask(
                lambda answer: [*map(review_from_json, json.loads(answer)["results"])], request
            )
        return decided

    async def servers(self) -> Sequence[ServerState]:
        return await self._read(lambda data: states_from_json(data["servers"]), "GET", "/servers")

    async def health(self) -> GatewayHealth:
        return await self._read(health_from_json, "GET", "/health")

    async def _read(self, read: Callable[[Any], T], method: str, path: str) -> T:
        return await self._ask(
            lambda answer: read(json.loads(answer)), Request(method, path, timeout=self._seconds)
        )

    async def _ask(self, read: Callable[[bytes], T], request: Request) -> T:
        """Ask. Where a gateway has ended, ask the next, but repeat only what has no effect or was not received."""
        if self._look_again is not None and (place := self._look_again()).whole_url != self._line.place.whole_url:
            self._line = self._connect(place)
        if self._was_lost and not request.idempotent:
            # One that is being killed accepts connections until its last moment, and a call in one would be lost.
            await self._ask(bytes, Request("GET", ALIVE_PATH, timeout=self._seconds))
            self._was_lost = False
        for _ in range(MAX_GATEWAYS):
            try:
                return await self._ask_there(read, request)
            except Unavailable as error:
                if not is_lost(error):
                    raise
                self._was_lost = True
                if not (request.idempotent or was_not_received(error)):
                    raise _unknown_outcome(error) from error
                await self._off_loop(lambda: sleep(ENDING_SECONDS))
                found = await self._off_loop(self._find_again)
                if found is None:
                    raise
            self._line = self._connect(found)
        return await self._ask_there(read, request)

    async def _ask_there(self, read: Callable[[bytes], T], request: Request) -> T:
        """Ask. Tell a gateway that does not know the workspace what it is, and ask again: nothing has happened."""
        line = self._line
        try:
            return await self._run(line, read, request)
        except NotFound as error:
            workspace = line.place.workspace
            if workspace is None or error.details.get(UNKNOWN_WORKSPACE) != workspace.id:
                raise
        body = json.dumps(workspace.to_json()).encode()
        root = self._connect(Place(line.place.url, line.place.token))
        await self._run(root, bytes, Request("POST", WORKSPACES_PATH, body, timeout=self._seconds))
        self.opened_workspace = True
        return await self._run(line, read, request)

    async def _run(self, line: "_Line", read: Callable[[bytes], T], request: Request) -> T:
        request = replace(request, more={CLIENT_HEADER: quote(current_client())})
        return await self._off_loop(lambda: line.sender.run(line.conversation.ask(request, read)))

    async def _off_loop(self, action: Callable[[], T]) -> T:
        if self._blocks:
            return action()
        from toolscript.core.retrieval.deadline import run_on_daemon_thread

        # A daemon thread: a cancelled request need not wait for a running tool.
        return await run_on_daemon_thread(action)

    def _connect(self, place: Place) -> "_Line":
        """Return a line that never repeats a request: a person waits, and a gateway is near."""
        conversation = Conversation(GATEWAY, address_of(place.whole_url, GATEWAY), Retries(0))
        return _Line(
            place,
            conversation,
            Sender(
                conversation,
                token=place.token,
                timeout=self._seconds,
                connect_timeout=CONNECT_SECONDS,
                max_idle=0,
            ),
        )


def _called(answer: bytes) -> CallResult:
    return call_from_json(json.loads(answer))


class _Line:
    def __init__(self, place: Place, conversation: Conversation, sender: Sender) -> None:
        self.place = place
        self.conversation = conversation
        self.sender = sender


def is_lost(error: Unavailable) -> bool:
    """Return whether the gateway has ended: it refuses the connection, or closed it without an answer."""
    return isinstance(error.__cause__, ConnectionError | HTTPException)


def was_not_received(error: Unavailable) -> bool:
    return isinstance(error.__cause__, ConnectionRefusedError)


def _unknown_outcome(error: Unavailable) -> OutcomeUnknown:
    return OutcomeUnknown(
        "the gateway ended during this call: its outcome is unknown", details={"reason": error.message}
    )


def _filter(wanted: Sequence[str]) -> str:
    return readable(",".join(wanted))


def _page(data: Mapping[str, Any]) -> tuple[list[Item], int]:
    return [item_of_json(entry) for entry in data["tools"]], int(data["total"])
