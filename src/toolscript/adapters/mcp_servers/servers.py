"""All MCP servers of a gateway, each under its own supervisor."""

import asyncio
from collections.abc import Sequence

from toolscript.adapters.mcp_servers.pace import Pace
from toolscript.adapters.mcp_servers.process_groups import ProcessGroups
from toolscript.adapters.mcp_servers.supervisor import Supervisor
from toolscript.errors import NotFound
from toolscript.model.items import JsonObject
from toolscript.model.servers import CallResult, Offer, ServerSpec, ServerState, ServerStatus


class McpServers:
    """Used from one event loop, which `use` finds running."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._groups = ProcessGroups()
        self._servers: dict[str, Supervisor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._revision = 0
        self._news = asyncio.Event()

    def use(self, specs: Sequence[ServerSpec]) -> None:
        wanted = {spec.name: spec for spec in specs}
        for name, server in [*self._servers.items()]:
            if wanted.get(name) != server.spec or server.state.status is ServerStatus.STOPPED:
                del self._servers[name]
                server.stop()
                self._bump()
        for name, spec in wanted.items():
            if name not in self._servers:
                self._take_on(spec)

    def states(self) -> Sequence[ServerState]:
        return [self._servers[name].state for name in sorted(self._servers)]

    def offers(self) -> Sequence[Offer]:
        offers = (self._servers[name].offer for name in sorted(self._servers))
        return [offer for offer in offers if offer is not None]

    async def changed(self, after: int) -> int:
        while self._revision <= after:
            await self._news.wait()
        return self._revision

    async def call(self, server: str, tool: str, arguments: JsonObject) -> CallResult:
        found = self._servers.get(server)
        if found is None:
            names = ", ".join(sorted(self._servers)) or "none"
            raise NotFound(f"there is no server {server}", hint=f"the servers are: {names}")
        return await found.call(tool, arguments)

    async def close(self) -> None:
        """Ends everything, in order where that is quick; in any case after a few seconds."""
        for server in self._servers.values():
            server.stop()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._pace.close)
            await _cut_off(left)
        self._groups.kill_all()
        await self._groups.close()

    def _take_on(self, spec: ServerSpec) -> None:
        """A server that comes back under its name waits until the one before is gone: they may share a file."""
        server = Supervisor(spec, self._groups, self._pace, self._bump)
        self._servers[spec.name] = server
        self._tasks[spec.name] = server.start(self._tasks.get(spec.name))
        self._bump()

    def _bump(self) -> None:
        self._revision += 1
        news, self._news = self._news, asyncio.Event()
        news.set()


async def _cut_off(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=1.0)
