"""The names of the servers behind the meta-tools, and what is to be said to clients when they change."""

import asyncio
from collections.abc import Awaitable, Callable

from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from toolscript.core.errors import ToolscriptError
from toolscript.core.mcp.endpoint import Context
from toolscript.gateway.model import Gateway

# How long a client waits for the names, and how often they are looked at.
NAMES_SECONDS = 5.0
WATCH_SECONDS = 10.0


class OfferedServers:
    """The names by which the tools were listed last. `bus` says to clients that subscribe that they have changed."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._last: Context | None = None
        self.names: tuple[str, ...] = ()
        self.bus = InMemorySubscriptionBus()

    async def refresh(self) -> bool:
        """Ask for the names; return whether they have changed. Without an answer they stay as they are."""
        try:
            async with asyncio.timeout(NAMES_SECONDS):
                states = await self._gateway.servers()
        except (ToolscriptError, TimeoutError):
            return False
        before, self.names = self.names, tuple(sorted({state.name for state in states}))
        return before != self.names

    def listed_by(self, context: Context) -> None:
        """Note a client of an older protocol that is connected: it is told by its connection."""
        self._last = context

    async def watch(
        self, on_change: Callable[[], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Tell the client when the servers change, until cancelled."""
        while True:
            await sleep(WATCH_SECONDS)
            if not await self.refresh():
                continue
            on_change()
            await self.bus.publish(ToolsListChanged())
            if self._last is not None:
                await self._tell(self._last)

    async def _tell(self, context: Context) -> None:
        try:
            await context.session.send_tool_list_changed()
        except MCPError:
            self._last = None
