"""Approvals at `/mcp/{server}`: what is held is neither listed nor called there.

Only for servers of which something can be held; all others pass unchanged. A list is compared with what is
approved entry by entry, because a server may list to one client what it does not list to another.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import anyio
from starlette.responses import JSONResponse

from toolscript.core.errors import InvalidRequest, NotReady, ServerRejected
from toolscript.core.item_json import natural_key
from toolscript.core.items import Item, ItemKind
from toolscript.core.mcp_client.failures import CALL
from toolscript.core.mcp_client.listing import PROMPTS, RESOURCES, TEMPLATES, TOOLS, listed_item
from toolscript.core.mcp_client.model import Offer
from toolscript.core.text import visible
from toolscript.gateway.approvals import for_agents, held_message
from toolscript.gateway.mcp.passthrough_events import EVENTS, JSON, Event, EventReader, media_type
from toolscript.gateway.mcp.passthrough_messages import (
    GET_PROMPT,
    NAMED,
    READ_RESOURCE,
    Message,
    Requested,
    read_json,
)
from toolscript.gateway.store.approvals import ApprovalStore

INVALID_PARAMS = -32602
MAX_BUFFERED = 64 * 1024 * 1024
MAX_LOGGED = 1_000
# How long a request waits for the first listing of a server, and how often it looks.
LISTED_SECONDS, LOOK_SECONDS = 10.0, 0.05
_BY_FIELD = {listing.field.casefold(): listing for listing in (TOOLS, PROMPTS, RESOURCES, TEMPLATES)}
_KINDS = {CALL: ItemKind.TOOL, GET_PROMPT: ItemKind.PROMPT}

logger = logging.getLogger("toolscript.mcp")


class PassthroughApprovals:
    """`offers` are what the servers of this gateway or workspace offer now, held or not."""

    def __init__(self, store: ApprovalStore, offers: Callable[[], Sequence[Offer]]) -> None:
        self._store = store
        self._offers = offers
        self._logged: set[str] = set()

    async def of(self, server: str) -> "ServerFilter | None":
        """Return the filter of a server; None if nothing of it can be held. Wait a while for its first listing."""
        if not self._store.may_hold(server):
            return None
        with anyio.move_on_after(LISTED_SECONDS):
            while not self._store.is_listed(server):  # noqa: ASYNC110 - another process may list it
                await anyio.sleep(LOOK_SECONDS)
        if not self._store.is_listed(server):
            raise NotReady(f"{server} has not been listed yet", hint="try again in a moment")
        return ServerFilter(self._store, server, self._offers, self._log)

    def _log(self, item: Item) -> None:
        """Name what a server lists here and not to the gateway: a person cannot see it among what is held."""
        fingerprint = item.fingerprint
        if fingerprint not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(fingerprint)
            logger.warning("left out of a passthrough, as not approved: %s__%s", item.server, visible(item.name))


class ServerFilter:
    def __init__(
        self,
        store: ApprovalStore,
        server: str,
        offers: Callable[[], Sequence[Offer]],
        on_left_out: Callable[[Item], None],
    ) -> None:
        self._store = store
        self._server = server
        self._offers = offers
        self._on_left_out = on_left_out

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
        self, requested: Requested, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Return the answer to what was requested, without what is held. Raise for one that cannot be read."""
        if headers.get("content-encoding", "identity") != "identity":
            raise ServerRejected(f"{self._server} answers in an encoding that was not requested")
        if media_type(headers) == EVENTS:
            return self._events(chunks)
        whole = b"".join([chunk async for chunk in _bounded(chunks)])
        kept = b"" if not whole else self._kept(whole) if media_type(headers) == JSON else None
        if kept is None and status < HTTPStatus.BAD_REQUEST and requested.awaits_answer:
            raise ServerRejected(f"{self._server} gave an answer that cannot be read")
        return _only(kept or b"")

    async def _events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        reader = EventReader(MAX_BUFFERED)
        async for chunk in chunks:
            for event in reader.read(chunk):
                yield self._event(event)
        yield self._event(reader.left())

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
        review = review or self._store.held_template(self._server, uri, self._offers())
        return for_agents(held_message(review)) if review else ""

    def _event(self, event: Event) -> bytes:
        if event.size > MAX_BUFFERED:
            raise ServerRejected(f"an event of more than {MAX_BUFFERED >> 20} MiB")
        data = event.data
        kept = self._kept(data) if data.strip() else data
        if kept is None:
            raise ServerRejected(f"{self._server} sent an event that cannot be read")
        return event.raw if kept == data else event.with_data(kept)

    def _kept(self, text: bytes) -> bytes | None:
        """Return JSON-RPC messages without the entries that are held; None for what is not JSON.

        What has a key twice is written anew: another reader might see the other one.
        """
        try:
            data, is_clear = read_json(text)
        except (ValueError, RecursionError):
            return None
        messages = data if isinstance(data, list) else [data]
        kept = [self._message(message) for message in messages]
        if is_clear and kept == messages:
            return text
        return json.dumps(kept if isinstance(data, list) else kept[0]).encode()

    def _message(self, message: Any) -> Any:
        if not isinstance(message, Mapping):
            return message
        return {
            key: self._result(value) if key.casefold() == "result" and isinstance(value, Mapping) else value
            for key, value in message.items()
        }

    def _result(self, result: Message) -> Message:
        """Some readers take `Tools` for `tools`."""
        kept = dict(result)
        for key, entries in result.items():
            listing = _BY_FIELD.get(key.casefold())
            if listing is not None and entries is not None:
                listed = entries if isinstance(entries, list) else []
                kept[key] = [entry for entry in listed if self._admits(listing.name, entry)]
        return kept

    def _admits(self, listing: str, entry: object) -> bool:
        if not isinstance(entry, Mapping):
            return False
        try:
            item = listed_item(listing, entry, self._server)
            is_admitted = self._store.admits(item)
            if not is_admitted:
                self._on_left_out(item)
            return is_admitted
        except InvalidRequest:
            return False


async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_BUFFERED:
            raise ServerRejected(f"an answer of more than {MAX_BUFFERED >> 20} MiB")
        yield chunk


async def _only(text: bytes) -> AsyncIterator[bytes]:
    if text:
        yield text
