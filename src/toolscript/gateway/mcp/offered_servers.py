"""The names of the servers behind the meta-tools."""

import asyncio

from toolscript.core.errors import ToolscriptError
from toolscript.gateway.model import McpGateway

# How long a client waits for the names.
NAMES_SECONDS = 5.0


class OfferedServers:
    """The names under which the tools were listed last."""

    def __init__(self, gateway: McpGateway) -> None:
        self._gateway = gateway
        self.names: tuple[str, ...] = ()

    async def refresh(self) -> None:
        """Ask for the names. Without an answer they stay as they are."""
        try:
            async with asyncio.timeout(NAMES_SECONDS):
                states = await self._gateway.servers()
        except (ToolscriptError, TimeoutError):
            return
        self.names = tuple(sorted({state.name for state in states}))
