"""Approvals at `/mcp/{server}`: what is held is neither listed nor called there.

Only for servers of which something can be held; all others pass unchanged. A list is compared with what is
approved entry by entry, because a server may list to one client what it does not list to another.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse

from toolscript.core.errors import InvalidRequest, NotReady, ServerRejected
from toolscript.core.item_json import natural_key
from toolscript.core.items import ItemKind
from toolscript.core.mcp_client.failures import CALL
from toolscript.core.mcp_client.listing import PROMPTS, RESOURCES, TEMPLATES, TOOLS, listed_item
from toolscript.core.mcp_client.model import Offer
from toolscript.gateway.approvals import for_agents, held_message
from toolscript.gateway.mcp.passthrough_messages import GET_PROMPT, NAMED, READ_RESOURCE, Message, Requested
from toolscript.gateway.store.approvals import ApprovalStore

INVALID_PARAMS = -32602
MAX_BUFFERED = 64 * 1024 * 1024
EVENTS = "text/event-stream"
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LISTINGS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)
_METHODS = frozenset(listing.method for listing in _LISTINGS)
_KINDS = {CALL: ItemKind.TOOL, GET_PROMPT: ItemKind.PROMPT}


class PassthroughApprovals:
    """`offers` are what the servers of this gateway or workspace offer now, held or not."""

    def __init__(self, store: ApprovalStore, offers: Callable[[], Sequence[Offer]]) -> None:
        self._store = store
        self._offers = offers

    def of(self, server: str) -> "ServerFilter | None":
        """Return the filter of a server; None if nothing of it can be held."""
        if not self._store.may_hold(server):
            return None
        if not self._store.is_listed(server):
            raise NotReady(f"{server} has not been listed yet", hint="try again in a moment")
        return ServerFilter(self._store, server, self._offers)


class ServerFilter:
    def __init__(self, store: ApprovalStore, server: str, offers: Callable[[], Sequence[Offer]]) -> None:
        self._store = store
        self._server = server
        self._offers = offers

    def refusal(self, requested: Requested) -> JSONResponse | None:
        """Return the answer to a request that names something held."""
        why = {id(message): self._why_held(message) for message in requested.messages}
        if not any(why.values()):
            return None
        errors = [
            {
                "jsonrpc": "2.0",
                "id": message.get("id"),
                "error": {
                    "code": INVALID_PARAMS,
                    "message": why[id(message)] or "not sent: another request beside it names a tool that is held",
                },
            }
            for message in requested.messages
            if "id" in message
        ]
        return requested.answer(errors)

    async def filtered(
        self, requested: Requested, headers: Mapping[str, str], chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Yield the answer to what was requested, without what is held."""
        if headers.get("content-encoding", "identity") != "identity":
            raise ServerRejected(f"{self._server} answers in an encoding that was not requested")
        if headers.get("content-type", "").startswith(EVENTS):
            async for event in _events(chunks):
                yield self._event(event)
        elif any(message.get("method") in _METHODS for message in requested.messages):
            whole = b"".join([chunk async for chunk in _bounded(chunks)])
            yield self._json(whole)
        else:
            async for chunk in chunks:
                yield chunk

    def _why_held(self, message: Message) -> str:
        method = str(message.get("method"))
        if method not in NAMED:
            return ""
        named = message["params"][NAMED[method]]
        if method == READ_RESOURCE:
            return self._why_resource_held(named)
        key = natural_key(self._server, _KINDS[method], named)
        review = self._store.held_by_key(self._server, key, self._offers())
        if review is not None:
            return for_agents(held_message(review))
        is_approved = self._store.approves_name(self._server, key, named)
        return "" if is_approved else for_agents(f"{self._server}__{named[:200]} is held: it was never approved")

    def _why_resource_held(self, uri: str) -> str:
        try:
            key = listed_item(RESOURCES.name, {"uri": uri, "name": "resource"}, self._server).key
        except InvalidRequest:
            return ""
        review = self._store.held_by_key(self._server, key, self._offers())
        return for_agents(held_message(review)) if review else ""

    def _event(self, event: bytes) -> bytes:
        lines = event.splitlines()
        data = b"\n".join(line.removeprefix(b"data:").removeprefix(b" ") for line in lines if line[:5] == b"data:")
        kept = self._json(data) if data else data
        if kept == data:
            return event + b"\n\n"
        return b"\n".join([*(line for line in lines if line[:5] != b"data:"), b"data: " + kept]) + b"\n\n"

    def _json(self, text: bytes) -> bytes:
        """Return JSON-RPC messages without the entries that are held; anything else as it is."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return text
        messages = data if isinstance(data, list) else [data]
        kept = [self._message(message) for message in messages]
        return text if kept == messages else json.dumps(kept if isinstance(data, list) else kept[0]).encode()

    def _message(self, message: Any) -> Any:
        result = message.get("result") if isinstance(message, Mapping) else None
        if not isinstance(result, Mapping):
            return message
        lists = {
            listing.field: [entry for entry in result[listing.field] if self._admits(listing.name, entry)]
            for listing in _LISTINGS
            if isinstance(result.get(listing.field), list)
        }
        return {**message, "result": {**result, **lists}} if lists else message

    def _admits(self, listing: str, entry: object) -> bool:
        if not isinstance(entry, Mapping):
            return False
        try:
            return self._store.admits(listed_item(listing, entry, self._server))
        except InvalidRequest:
            return False


async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_BUFFERED:
            raise ServerRejected(f"a list of more than {MAX_BUFFERED >> 20} MiB")
        yield chunk


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield each event of a stream once it is complete, without its end."""
    rest, looked_at = bytearray(), 0
    async for chunk in chunks:
        rest += chunk
        begin = 0
        for end in _EVENT_END.finditer(rest, max(0, looked_at - 3)):
            yield bytes(rest[begin : end.start()])
            begin = end.end()
        del rest[:begin]
        looked_at = len(rest)
        if looked_at > MAX_BUFFERED:
            raise ServerRejected(f"an event of more than {MAX_BUFFERED >> 20} MiB")
    if rest:
        yield bytes(rest)
