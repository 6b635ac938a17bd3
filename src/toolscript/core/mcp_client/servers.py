"""All MCP servers of a gateway, and the supervisor that keeps each of them connected."""

import asyncio
import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import anyio

from toolscript.core.errors import NotFound, ServerRejected, ServerUnavailable
from toolscript.core.items import ItemKind, JsonObject
from toolscript.core.mcp_client.model import (
    CallResult,
    Offer,
    ServerSpec,
    ServerState,
    ServerStatus,
    Transport,
    masked,
)
from toolscript.core.mcp_client.process_groups import ProcessGroups
from toolscript.core.mcp_client.supervision import Signals, Timing

if TYPE_CHECKING:
    from toolscript.core.mcp_client.connection import Connection, ProtocolHints
    from toolscript.core.mcp_client.failures import Failure
    from toolscript.core.mcp_client.listing import ListedItems


log = logging.getLogger(__name__)

_CONNECTION = "toolscript.core.mcp_client.connection"


class Supervisor:
    """Keeps one server connected. One task owns the connection, as the SDK requires; any task may call."""

    def __init__(
        self, spec: ServerSpec, groups: ProcessGroups, timing: Timing, on_change: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.state = ServerState(spec.name, spec.transport, ServerStatus.STARTING)
        self.offer: Offer | None = None
        self._groups = groups
        self._timing = timing
        self._on_change = on_change
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()
        self._signals = Signals()
        self._scope: anyio.CancelScope | None = None
        self._failures = 0
        self._ready_since = math.inf
        self._logged = ""
        self._debounce = timing.debounce

    def start(self, predecessor: "asyncio.Task[None] | None") -> "asyncio.Task[None]":
        return asyncio.create_task(self._run(predecessor), name=f"mcp server {self.spec.name}")

    def stop(self) -> None:
        """Stop a ready server gracefully, within a short limit; cancel one that is not ready."""
        self._stopping.set()
        self._signals.wakeup.set()
        if self._scope is not None and self._connection is None:
            self._scope.cancel()
        elif self._scope is not None:
            self._scope.deadline = anyio.current_time() + self._timing.shutdown
        self._publish(ServerState(self.spec.name, self.spec.transport, ServerStatus.STOPPED), None)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        if not self.spec.offers(tool):
            raise NotFound(f"the config file leaves {tool} of {self.spec.name} out")
        connection = self._connection
        if connection is None:
            why = f": {self.state.error}" if self.state.error else ""
            failed = self.state.status is ServerStatus.FAILED
            raise ServerUnavailable(
                f"{self.spec.name} {'has failed' if failed else f'is {self.state.status}'}{why}",
                hint="it is retried automatically" if failed else "",
            )
        try:
            return await connection.call(tool, arguments)
        except (ServerRejected, ServerUnavailable) as error:
            text = masked(f"{self.spec.name}: {error.message}", self.spec)
            raise type(error)(text, hint=error.hint, details=error.details) from error

    async def _run(self, predecessor: "asyncio.Task[None] | None") -> None:
        if predecessor is not None:
            await asyncio.wait([predecessor])
        if _CONNECTION not in sys.modules:
            # Importing the SDK takes two seconds, which would block the event loop.
            await asyncio.to_thread(import_module, _CONNECTION)
        from toolscript.core.mcp_client.connection import ProtocolHints

        hints = ProtocolHints()
        while not self._stopping.is_set():
            failure = await self._attempt(hints)
            if failure is None or self._stopping.is_set():
                return
            settled = anyio.current_time() - self._ready_since > self._timing.settled_after
            self._failures = 1 if settled else self._failures + 1
            self._ready_since = math.inf
            self._fail(failure)
            with anyio.move_on_after(self._timing.retry_after(self._failures)):
                await self._stopping.wait()

    async def _attempt(self, hints: "ProtocolHints") -> "Failure | None":
        """Run one connection until it ends; return why it failed, or None after a requested stop."""
        from toolscript.core.mcp_client.connection import Trace, open_connection

        self._signals = Signals()
        trace = Trace(self._signals)
        self._scope = scope = anyio.CancelScope(deadline=anyio.current_time() + self.spec.start_seconds)
        fault: Exception = ServerUnavailable(f"it was not ready within {self.spec.start_seconds:g} seconds")
        with scope:
            try:
                async with open_connection(self.spec, trace, hints, self._groups, self._timing) as opened:
                    await self._serve(opened, scope)
                    return None
            except Exception as error:  # noqa: BLE001 - any failure of a server leads to a retry
                fault = fault if scope.cancel_called else error
        return trace.why(fault)

    async def _serve(self, connection: "Connection", scope: anyio.CancelScope) -> None:
        listed = await connection.list_items()
        scope.deadline = math.inf
        self._connection, self._ready_since = connection, anyio.current_time()
        self._publish_ready(connection, listed)
        self._logged = ""
        log.info("MCP server is ready", extra={"part": self.spec.name, "total": len(listed.items)})
        try:
            await self._watch(connection)
        finally:
            # Published before the connection closes, which may take a while.
            self._connection = None
            self._publish_failure("the connection was lost")

    async def _watch(self, connection: "Connection") -> None:
        signals, remote = self._signals, self.spec.transport is not Transport.STDIO
        while not self._stopping.is_set():
            with anyio.move_on_after(self._timing.ping_after if remote else math.inf) as quiet:
                await signals.wakeup.wait()
            signals.wakeup.clear()
            if signals.lost:
                raise ServerUnavailable("the connection was lost")
            if signals.take_ping_requested() or quiet.cancelled_caught:
                await connection.ping(self._timing.ping_timeout)
            if signals.take_changed():
                await self._list_again(connection)

    async def _list_again(self, connection: "Connection") -> None:
        """List again after a debounce: changes come in bursts, and the delay grows with the listing time."""
        await anyio.sleep(self._debounce)
        self._signals.take_changed()
        began = anyio.current_time()
        try:
            with anyio.fail_after(self.spec.start_seconds):
                self._publish_ready(connection, await connection.list_items())
        except (ServerRejected, TimeoutError) as error:
            reason = masked(str(error), self.spec)
            log.warning("MCP server cannot be listed again", extra={"part": self.spec.name, "reason": reason})
        self._debounce = max(self._timing.debounce, 2 * (anyio.current_time() - began))

    def _publish_ready(self, connection: "Connection", listed: "ListedItems") -> None:
        kinds = Counter(item.kind for item in listed.items)
        state = ServerState(
            self.spec.name,
            self.spec.transport,
            ServerStatus.READY,
            protocol=connection.protocol,
            version=connection.version,
            tools=kinds[ItemKind.TOOL],
            prompts=kinds[ItemKind.PROMPT],
            resources=kinds[ItemKind.RESOURCE],
        )
        self._publish(state, Offer(self.spec.name, tuple(listed.items), tuple(listed.refused)))

    def _fail(self, failure: "Failure") -> None:
        # The server's own output may contain anything: it is part of the server's state and is not logged.
        reason = masked(failure.reason, self.spec)
        level = logging.DEBUG if reason == self._logged else logging.WARNING
        log.log(level, "MCP server is not ready", extra={"part": self.spec.name, "reason": reason})
        self._logged = reason
        self._publish_failure(masked(f"{failure.reason}{failure.details}", self.spec))

    def _publish_failure(self, error: str) -> None:
        self._publish(ServerState(self.spec.name, self.spec.transport, ServerStatus.FAILED, error), None)

    def _publish(self, state: ServerState, offer: Offer | None) -> None:
        """Publish a state and an offer; states of a server that is being stopped are ignored."""
        is_late = self._stopping.is_set() and state.status is not ServerStatus.STOPPED
        if not is_late and (state, offer) != (self.state, self.offer):
            self.state, self.offer = state, offer
            self._on_change()


class McpServers:
    """Implementation of `ToolServers`. All calls come from one event loop, which must run when `use` is called."""

    def __init__(self, timing: Timing | None = None) -> None:
        self._timing = timing or Timing()
        self._groups = ProcessGroups()
        self._servers: dict[str, Supervisor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._revision = 0
        self._changed = asyncio.Event()

    def use(self, specs: Sequence[ServerSpec]) -> None:
        configured = {spec.name: spec for spec in specs}
        for name, server in [*self._servers.items()]:
            if configured.get(name) != server.spec or server.state.status is ServerStatus.STOPPED:
                del self._servers[name]
                server.stop()
                self._bump()
        for name, spec in configured.items():
            if name not in self._servers:
                self._add(spec)

    def states(self) -> Sequence[ServerState]:
        return [self._servers[name].state for name in sorted(self._servers)]

    def offers(self) -> Sequence[Offer]:
        offers = (self._servers[name].offer for name in sorted(self._servers))
        return [offer for offer in offers if offer is not None]

    async def changed(self, after: int) -> int:
        while self._revision <= after:
            await self._changed.wait()
        return self._revision

    async def call(self, server: str, tool: str, arguments: JsonObject) -> CallResult:
        supervisor = self._servers.get(server)
        if supervisor is None:
            names = ", ".join(sorted(self._servers)) or "none"
            raise NotFound(f"there is no server {server}", hint=f"the servers are: {names}")
        return await supervisor.call(tool, arguments)

    async def close(self) -> None:
        """Stop all servers, gracefully if they are quick, and by force after a few seconds."""
        for server in self._servers.values():
            server.stop()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._timing.close)
            await _cancel(left)
        self._groups.kill_all()
        await self._groups.close()

    def _add(self, spec: ServerSpec) -> None:
        """Start a server after its predecessor of the same name has ended: they may share a file."""
        server = Supervisor(spec, self._groups, self._timing, self._bump)
        self._servers[spec.name] = server
        self._tasks[spec.name] = server.start(self._tasks.get(spec.name))
        self._bump()

    def _bump(self) -> None:
        self._revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=1.0)
