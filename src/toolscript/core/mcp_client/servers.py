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
from toolscript.core.mcp_client.supervision import Pace, Signals

if TYPE_CHECKING:
    from toolscript.core.mcp_client.connection import Connection, Habits
    from toolscript.core.mcp_client.failures import Failure
    from toolscript.core.mcp_client.listing import Found


log = logging.getLogger(__name__)

_CONNECTION = "toolscript.core.mcp_client.connection"


class Supervisor:
    """One task owns the connection from its beginning to its end, as the SDK demands; calls come from anywhere."""

    def __init__(self, spec: ServerSpec, groups: ProcessGroups, pace: Pace, on_change: Callable[[], None]) -> None:
        self.spec = spec
        self.state = ServerState(spec.name, spec.transport, ServerStatus.STARTING)
        self.offer: Offer | None = None
        self._groups = groups
        self._pace = pace
        self._on_change = on_change
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()
        self._signals = Signals()
        self._scope: anyio.CancelScope | None = None
        self._failures = 0
        self._ready_since = math.inf
        self._logged = ""
        self._breath = pace.gather_changes

    def start(self, predecessor: "asyncio.Task[None] | None") -> "asyncio.Task[None]":
        return asyncio.create_task(self._run(predecessor), name=f"mcp server {self.spec.name}")

    def stop(self) -> None:
        """A server that is ready is let go in order, for a short while; one that is not is cut off."""
        self._stopping.set()
        self._signals.stirred.set()
        if self._scope is not None and self._connection is None:
            self._scope.cancel()
        elif self._scope is not None:
            self._scope.deadline = anyio.current_time() + self._pace.goodbye
        self._show(ServerState(self.spec.name, self.spec.transport, ServerStatus.STOPPED), None)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        if not self.spec.offers(tool):
            raise NotFound(f"the config file leaves {tool} of {self.spec.name} out")
        connection = self._connection
        if connection is None:
            why = f": {self.state.error}" if self.state.error else ""
            raise ServerUnavailable(
                f"{self.spec.name} is {self.state.status}{why}",
                hint="it is tried again by itself" if self.state.status is ServerStatus.FAILED else "",
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
            # Importing the SDK takes two seconds, which the event loop spends better.
            await asyncio.to_thread(import_module, _CONNECTION)
        from toolscript.core.mcp_client.connection import Habits

        habits = Habits()
        while not self._stopping.is_set():
            failure = await self._attempt(habits)
            if failure is None or self._stopping.is_set():
                return
            settled = anyio.current_time() - self._ready_since > self._pace.settled_after
            self._failures = 1 if settled else self._failures + 1
            self._ready_since = math.inf
            self._fail(failure)
            with anyio.move_on_after(self._pace.retry_after(self._failures)):
                await self._stopping.wait()

    async def _attempt(self, habits: "Habits") -> "Failure | None":
        """One connection, from its first message to its last; answers why it ended, unless that was asked for."""
        from toolscript.core.mcp_client.connection import Trace, open_connection

        self._signals = Signals()
        trace = Trace(self._signals)
        self._scope = scope = anyio.CancelScope(deadline=anyio.current_time() + self.spec.start_seconds)
        fault: Exception = ServerUnavailable(f"it was not ready within {self.spec.start_seconds:g} seconds")
        with scope:
            try:
                async with open_connection(self.spec, trace, habits, self._groups, self._pace) as opened:
                    await self._serve(opened, scope)
                    return None
            except Exception as error:  # noqa: BLE001 - whatever a server does, it is tried again
                fault = fault if scope.cancel_called else error
        return trace.why(fault)

    async def _serve(self, connection: "Connection", scope: anyio.CancelScope) -> None:
        found = await connection.list_items()
        scope.deadline = math.inf
        self._connection, self._ready_since = connection, anyio.current_time()
        self._ready(connection, found)
        self._logged = ""
        log.info("MCP server is ready", extra={"part": self.spec.name, "total": len(found.items)})
        try:
            await self._keep(connection)
        finally:
            # Said before the connection is cleared away, which may take a while.
            self._connection = None
            self._say_failed("the connection was lost")

    async def _keep(self, connection: "Connection") -> None:
        signals, remote = self._signals, self.spec.transport is not Transport.STDIO
        while not self._stopping.is_set():
            with anyio.move_on_after(self._pace.look_after if remote else math.inf) as quiet:
                await signals.stirred.wait()
            signals.stirred.clear()
            if signals.lost:
                raise ServerUnavailable("the connection was lost")
            if signals.take_doubted() or quiet.cancelled_caught:
                await connection.look(self._pace.answer_look)
            if signals.take_changed():
                await self._list_again(connection)

    async def _list_again(self, connection: "Connection") -> None:
        """Changes come in swarms: they are waited for, and the longer a listing takes, the rarer it is."""
        await anyio.sleep(self._breath)
        self._signals.take_changed()
        began = anyio.current_time()
        try:
            with anyio.fail_after(self.spec.start_seconds):
                self._ready(connection, await connection.list_items())
        except (ServerRejected, TimeoutError) as error:
            reason = masked(str(error), self.spec)
            log.warning("MCP server cannot be listed again", extra={"part": self.spec.name, "reason": reason})
        self._breath = max(self._pace.gather_changes, 2 * (anyio.current_time() - began))

    def _ready(self, connection: "Connection", found: "Found") -> None:
        kinds = Counter(item.kind for item in found.items)
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
        self._show(state, Offer(self.spec.name, tuple(found.items), tuple(found.refused)))

    def _fail(self, failure: "Failure") -> None:
        # What the server itself said is for who asks about this server; it may hold anything and is not logged.
        reason = masked(failure.reason, self.spec)
        level = logging.DEBUG if reason == self._logged else logging.WARNING
        log.log(level, "MCP server is not ready", extra={"part": self.spec.name, "reason": reason})
        self._logged = reason
        self._say_failed(masked(f"{failure.reason}{failure.details}", self.spec))

    def _say_failed(self, error: str) -> None:
        self._show(ServerState(self.spec.name, self.spec.transport, ServerStatus.FAILED, error), None)

    def _show(self, state: ServerState, offer: Offer | None) -> None:
        """What a server that is let go still does is nobody's concern any more."""
        is_late = self._stopping.is_set() and state.status is not ServerStatus.STOPPED
        if not is_late and (state, offer) != (self.state, self.offer):
            self.state, self.offer = state, offer
            self._on_change()


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
        supervisor = self._servers.get(server)
        if supervisor is None:
            names = ", ".join(sorted(self._servers)) or "none"
            raise NotFound(f"there is no server {server}", hint=f"the servers are: {names}")
        return await supervisor.call(tool, arguments)

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
