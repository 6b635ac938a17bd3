"""The names of the servers behind the meta-tools, and how clients are told that they have changed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from toolscript.core.errors import ToolscriptError
from toolscript.core.mcp.endpoint import Context
from toolscript.gateway.model import Gateway

# How long a client waits for the names, and how often they are looked at.
NAMES_SECONDS = 5.0
WATCH_SECONDS = 5.0


class OfferedServers:
    """The names under which the tools were listed last. Clients that subscribe hear of changes by `bus`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._connected: Context | None = None
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
        """Note a client: one of an older protocol is told by its connection."""
        self._connected = context

    async def watch(self, seconds: float) -> None:
        """Tell the client when the servers change, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if await self.refresh():
                await self._tell()

    async def _tell(self) -> None:
        await self.bus.publish(ToolsListChanged())
        if self._connected is None:
            return
        try:
            await self._connected.session.send_tool_list_changed()
        except MCPError:
            self._connected = None


@asynccontextmanager
async def watched(servers: OfferedServers, seconds: float = WATCH_SECONDS) -> AsyncIterator[None]:
    watching = asyncio.create_task(servers.watch(seconds))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
