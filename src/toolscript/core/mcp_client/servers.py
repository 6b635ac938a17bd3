"""All MCP servers of a gateway. Several sets of servers can share what they have in common."""

import asyncio
from collections.abc import Callable, Sequence

from toolscript.core.errors import NotFound
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import (
    CallResult,
    Check,
    Offer,
    ServerSpec,
    ServerState,
    ServerStatus,
)
from toolscript.core.mcp_client.oauth.tokens import SignIns
from toolscript.core.mcp_client.process_groups import ProcessGroups
from toolscript.core.mcp_client.supervision import Timing
from toolscript.core.mcp_client.supervisor import Supervisor
from toolscript.core.mcp_client.turns import Turns


class SharedServers:
    """Servers for several `McpServers`: equal specs are one server, which runs while one of them has it.

    Without `sign_ins` no server gets a token, and one that wants a sign-in fails.
    """

    def __init__(self, timing: Timing | None = None, sign_ins: SignIns | None = None) -> None:
        self.timing = timing or Timing()
        self._sign_ins = sign_ins
        self._groups = ProcessGroups()
        self._turns = Turns()
        self._users: dict[Supervisor, list[Callable[[], None]]] = {}
        self._tasks: dict[Supervisor, asyncio.Task[None]] = {}

    def join(self, spec: ServerSpec, on_change: Callable[[], None], cached: Offer | None) -> Supervisor:
        """Return the server of this spec; a new one starts after those of its name that are ending.

        With a cached offer a new server sleeps until it is called.
        """
        for server, users in self._users.items():
            if server.spec == spec and server.state.status is not ServerStatus.STOPPED:
                users.append(on_change)
                return server
        credentials = self._sign_ins.of(spec) if self._sign_ins is not None else None
        server = Supervisor(
            spec, self._groups, self.timing, self._turns, lambda: self._tell(server), cached, credentials
        )
        ending = [
            task
            for other, task in self._tasks.items()
            # They may share a file.
            if other.spec.name == spec.name and other.state.status is ServerStatus.STOPPED and not task.done()
        ]
        self._users[server] = [on_change]
        self._tasks[server] = task = server.start(ending)
        task.add_done_callback(lambda _: self._tasks.pop(server, None))
        return server

    def leave(self, server: Supervisor, on_change: Callable[[], None]) -> None:
        """Stop a server that nobody has any more."""
        users = self._users.get(server, [])
        if on_change in users:
            users.remove(on_change)
        if not users:
            self._users.pop(server, None)
            server.stop()

    async def close(self) -> None:
        """Stop all servers, gracefully if they are quick, and by force after a few seconds."""
        for server in self._users:
            server.stop()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self.timing.close)
            await _cancel(left)
        self._groups.kill_all()
        await self._groups.close()

    def _tell(self, server: Supervisor) -> None:
        for on_change in [*self._users.get(server, ())]:
            on_change()


class McpServers:
    """Implementation of `ToolServers`. All calls come from one event loop, which must run when `use` is called.

    `shared`: servers that it shares with others; without them, closing it ends all of its own.
    """

    def __init__(
        self,
        timing: Timing | None = None,
        *,
        shared: SharedServers | None = None,
        sign_ins: SignIns | None = None,
    ) -> None:
        self._shared = shared or SharedServers(timing, sign_ins)
        self._owns_all = shared is None
        self._servers: dict[str, Supervisor] = {}
        self._revision = 0
        self._changed = asyncio.Event()

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None:
        configured = {spec.name: spec for spec in specs}
        for name, server in [*self._servers.items()]:
            if configured.get(name) != server.spec or server.state.status is ServerStatus.STOPPED:
                del self._servers[name]
                self._shared.leave(server, self._bump)
                self._bump()
        offers = {offer.server: offer for offer in cached}
        for name, spec in configured.items():
            if name not in self._servers:
                self._servers[name] = self._shared.join(spec, self._bump, offers.get(name))
                self._bump()

    def states(self) -> Sequence[ServerState]:
        return [self._servers[name].state for name in sorted(self._servers)]

    def offers(self) -> Sequence[Offer]:
        offers = (self._servers[name].offer for name in sorted(self._servers))
        return [offer for offer in offers if offer is not None]

    async def changed(self, after: int) -> int:
        while self._revision <= after:
            await self._changed.wait()
        return self._revision

    async def call(self, server: str, tool: str, arguments: JsonObject, check: Check | None = None) -> CallResult:
        return await self._named(server).call(tool, arguments, check)

    async def request(
        self, server: str, method: str, params: JsonObject, check: Check | None = None
    ) -> JsonObject:
        return await self._named(server).request(method, params, check)

    async def watch(self, server: str, uri: str, tell: Callable[[], None]) -> None:
        await self._named(server).watch(uri, tell)

    def _named(self, server: str) -> Supervisor:
        supervisor = self._servers.get(server)
        if supervisor is None:
            names = ", ".join(sorted(self._servers)) or "none"
            raise NotFound(f"there is no server {server}", hint=f"the servers are: {names}")
        return supervisor

    async def close(self) -> None:
        """Leave the servers that are shared, and stop one's own."""
        if self._owns_all:
            await self._shared.close()
            return
        for name in [*self._servers]:
            self._shared.leave(self._servers.pop(name), self._bump)

    def _bump(self) -> None:
        self._revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=1.0)
