"""Tells clients that a list has changed: in sessions, or on subscriptions of the current version."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import NotificationParams, SubscriptionsListenRequestParams

from toolscript.core.errors import ToolscriptError
from toolscript.core.mcp.endpoint import Context
from toolscript.gateway.mcp.relaying import client_key
from toolscript.gateway.model import Gateway
from toolscript.gateway.offered import OFFERED, PROMPTS, RESOURCES, TOOLS

MAX_SESSIONS = 1_000
# A client that does not read is not waited for.
SEND_SECONDS = 5.0
# Where the gateway does not answer, it is asked again after this.
PAUSE_SECONDS = 5.0
_EVENTS: Mapping[str, Callable[[], ServerEvent]] = {
    TOOLS: ToolsListChanged,
    PROMPTS: PromptsListChanged,
    RESOURCES: ResourcesListChanged,
}

logger = logging.getLogger("toolscript.mcp")


class ListChanges:
    """Follows what a gateway offers while the server runs. `lists` are those whose changes it tells."""

    def __init__(self, gateway: Gateway, lists: Collection[str] = OFFERED) -> None:
        self._gateway = gateway
        self._lists = lists
        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._users = 0
        self._task: asyncio.Task[None] | None = None

    def add_to(self, server: Server[Any]) -> None:
        server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(self._bus)
        )
        server.add_notification_handler("notifications/initialized", NotificationParams, self._begin)
        server.lifespan = self._while_running
        create_options = server.create_initialization_options

        def options(
            notification_options: NotificationOptions | None = None, *args: Any, **more: Any
        ) -> InitializationOptions:
            told = NotificationOptions(PROMPTS in self._lists, RESOURCES in self._lists, TOOLS in self._lists)
            return create_options(notification_options or told, *args, **more)

        server.create_initialization_options = options  # type: ignore[method-assign]

    async def _begin(self, context: Context, _params: NotificationParams) -> None:
        key = client_key(context)
        self._sessions[key] = context.session
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    @asynccontextmanager
    async def _while_running(self, _server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """Follow from the first to the last of the transports that share the server."""
        self._users += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            yield {}
        finally:
            self._users -= 1
            if not self._users:
                self._task.cancel()
                self._task = None

    async def _follow(self) -> None:
        seen: Mapping[str, str] = {}
        while True:
            try:
                now = await self._gateway.offered(seen)
            except ToolscriptError as error:
                logger.debug("the gateway does not say what it offers: %s", error.message)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except Exception:
                logger.exception("changes of lists cannot be followed")
                return
            changed = [name for name in self._lists if seen and now.get(name) != seen.get(name)]
            seen = now
            for name in changed:
                await self._tell(name)

    async def _tell(self, name: str) -> None:
        await self._bus.publish(_EVENTS[name]())
        async with anyio.create_task_group() as tasks:
            for session in [*self._sessions.values()]:
                tasks.start_soon(self._send, session, name)

    async def _send(self, session: ServerSession, name: str) -> None:
        send = {
            TOOLS: session.send_tool_list_changed,
            PROMPTS: session.send_prompt_list_changed,
            RESOURCES: session.send_resource_list_changed,
        }
        with anyio.move_on_after(SEND_SECONDS):
            await send[name]()
