"""Tells clients what changed: which lists, and which of the resources that they subscribed to.

Clients of the version 2026-07-28 listen on a stream. Older ones are told on their session: it begins with
`notifications/initialized`, and ends when nothing can be sent to it any more.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    NotificationParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from toolscript.core.mcp.endpoint import Context, ToolServer
from toolscript.gateway.mcp.relaying import client_key
from toolscript.gateway.model import PROMPTS, RESOURCES, SERVERS, TOOLS, Change, DirectGateway

MAX_SESSIONS, MAX_URIS = 1_000, 1_000
# A watch that takes another's place begins before that one ends, so that nothing is missed between them.
OVERLAP_SECONDS = 1.0
EVENTS: dict[str, ServerEvent] = {
    TOOLS: ToolsListChanged(),
    SERVERS: ToolsListChanged(),
    PROMPTS: PromptsListChanged(),
    RESOURCES: ResourcesListChanged(),
}


class _Session:
    def __init__(self, session: ServerSession) -> None:
        self.session = session
        self.uris: set[str] = set()


class Subscriptions:
    """`lists` are those that change at this endpoint; `at_end` is called when its server ends.

    `require` raises for a resource that is held.
    """

    def __init__(
        self,
        gateway: DirectGateway,
        lists: Iterable[str],
        require: Callable[[Context, str], Awaitable[None]],
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._require = require
        self._at_end = at_end
        self._gateway = gateway
        self._lists = frozenset(lists)
        self._server: ToolServer | None = None
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: dict[str, _Session] = {}
        self._uris = Counter[str]()
        self._watching: tuple[frozenset[str], asyncio.Task[None]] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def add_to(self, server: ToolServer) -> None:
        # Its sessions are known later.
        self._server = server
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._on_listen)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._on_subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe)
        server.add_notification_handler("notifications/initialized", NotificationParams, self._on_initialized)
        server.lifespan = self._lifespan
        server.changing = NotificationOptions(
            prompts_changed=PROMPTS in self._lists,
            resources_changed=RESOURCES in self._lists,
            tools_changed=not self._lists.isdisjoint((TOOLS, SERVERS)),
        )

    @asynccontextmanager
    async def _lifespan(self, _server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {}
        finally:
            self._at_end()
            self._listen.close()
            for task in (*self._sending, *([self._watching[1]] if self._watching else ())):
                task.cancel()

    async def _on_listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        uris = params.notifications.resource_subscriptions or ()
        for uri in uris:
            await self._require(context, uri)
        with self._wanted(uris):
            return await self._listen(context, params)

    async def _on_initialized(self, context: Context, _params: NotificationParams | None) -> None:
        self._session_of(context)
        self._watch()

    async def _on_subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        await self._require(context, params.uri)
        known = self._session_of(context)
        if known is not None and params.uri not in known.uris:
            self._add((params.uri,))
            known.uris.add(params.uri)
        return EmptyResult()

    async def _on_unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        known = self._session_of(context)
        if known is not None and params.uri in known.uris:
            known.uris.remove(params.uri)
            self._remove((params.uri,))
        return EmptyResult()

    def _session_of(self, context: Context) -> _Session | None:
        """Return the session of a client; None for one without, which nothing can be told."""
        if not context.session.can_send_request:
            return None
        key = client_key(context)
        if key not in self._sessions and len(self._sessions) >= MAX_SESSIONS:
            self._forget_ended()
        known = self._sessions.setdefault(key, _Session(context.session))
        known.session = context.session
        return known

    def _forget_ended(self) -> None:
        assert self._server is not None  # noqa: S101
        for key in [key for key in self._sessions if not self._server.has_session(key)]:
            self._remove(self._sessions.pop(key).uris)

    @contextmanager
    def _wanted(self, uris: Iterable[str]) -> Iterator[None]:
        wanted = {*uris}
        self._add(wanted)
        try:
            yield
        finally:
            self._remove(wanted)

    def _add(self, uris: Iterable[str]) -> None:
        wanted = [*uris]
        if len(self._uris | Counter(wanted)) > MAX_URIS:
            raise MCPError(INVALID_PARAMS, f"more than {MAX_URIS} resources are subscribed to")
        self._uris.update(wanted)
        self._watch()

    def _remove(self, uris: Iterable[str]) -> None:
        self._uris.subtract(uris)
        self._uris = +self._uris
        self._watch()

    def _watch(self) -> None:
        """Watch what is wanted now; the watch before ends a little later."""
        wanted = frozenset(self._uris)
        if self._watching is not None:
            uris, task = self._watching
            if uris == wanted and not task.done():
                return
            asyncio.get_running_loop().call_later(OVERLAP_SECONDS, task.cancel)
        self._watching = (wanted, asyncio.create_task(self._gateway.watch(wanted, self._tell)))

    def _tell(self, change: Change) -> None:
        if change.list and change.list not in self._lists:
            return
        event = ResourceUpdated(uri=change.uri) if change.uri else EVENTS[change.list]
        task = asyncio.create_task(self._send(event, change))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, event: ServerEvent, change: Change) -> None:
        await self._bus.publish(event)
        self._forget_ended()
        for known in [*self._sessions.values()]:
            if change.list or change.uri in known.uris:
                with suppress(Exception):
                    await _notify(known.session, change)


async def _notify(session: ServerSession, change: Change) -> None:
    if change.uri:
        await session.send_resource_updated(change.uri)
    elif change.list in (TOOLS, SERVERS):
        await session.send_tool_list_changed()
    elif change.list == PROMPTS:
        await session.send_prompt_list_changed()
    else:
        await session.send_resource_list_changed()
