"""The supervisor of one MCP server: it keeps the server connected, and lets it sleep while it is not needed."""

import asyncio
import logging
import math
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from toolscript.core.errors import NotFound, OutcomeUnknown, ServerRejected, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.mcp_client.model import (
    CallResult,
    Check,
    Offer,
    ServerSpec,
    ServerState,
    ServerStatus,
    Transport,
    how_to_sign_in,
    masked,
    masked_values,
    shown,
    sign_in_needed,
    without_server_output,
)
from toolscript.core.mcp_client.oauth.tokens import Credentials
from toolscript.core.mcp_client.process_groups import ProcessGroups
from toolscript.core.mcp_client.supervision import Signals, Timing
from toolscript.core.mcp_client.turns import Turn, Turns

if TYPE_CHECKING:
    from toolscript.core.mcp_client.connection import Connection
    from toolscript.core.mcp_client.failures import Failure
    from toolscript.core.mcp_client.listing import ListedItems
    from toolscript.core.mcp_client.oauth.challenge import Challenge
    from toolscript.core.mcp_client.protocol import ProtocolHints


log = logging.getLogger(__name__)
T = TypeVar("T")

_CONNECTION = "toolscript.core.mcp_client.connection"


class Supervisor:
    """Keeps one server connected. One task owns the connection, as the SDK requires; any task may call.

    A server with a process sleeps, where `timing.idle` lets it: until its first call if its offer is cached, and
    again when it was idle for a while. Its offer stays, and a call wakes it. Others keep their connection, which
    costs nothing here and tells of changes.
    """

    def __init__(
        self,
        spec: ServerSpec,
        groups: ProcessGroups,
        timing: Timing,
        turns: Turns,
        on_change: Callable[[], None],
        cached: Offer | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.spec = spec
        self._credentials = credentials
        self.state = ServerState(spec.name, spec.transport, ServerStatus.STARTING)
        self.offer: Offer | None = None
        self._groups = groups
        self._timing = timing
        self._turns = turns
        self._on_change = on_change
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()
        self._signals = Signals()
        self._scope: anyio.CancelScope | None = None
        self._failures = 0
        self._is_given_up = False
        self._ready_since = math.inf
        self._logged = ""
        self._debounce = timing.debounce
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._sign_in = ""
        self._challenge: Challenge | None = None
        self._calls = 0
        self._in_flight = 0
        self._called_at = -math.inf
        if cached is not None and self._may_sleep:
            self.offer = cached
            self.state = replace(self.state, status=ServerStatus.ASLEEP, **_counts(cached.items))

    @property
    def _may_sleep(self) -> bool:
        return self.spec.transport is Transport.STDIO and not math.isinf(self._timing.idle)

    def start(self, predecessors: "Collection[asyncio.Task[None]]") -> "asyncio.Task[None]":
        return asyncio.create_task(self._run(predecessors), name=f"mcp server {self.spec.name}")

    def stop(self) -> None:
        """Stop a ready server gracefully, within a short limit; cancel one that is not ready."""
        self._stopping.set()
        self._wake.set()
        self._signals.wakeup.set()
        if self._scope is not None and self._connection is None:
            self._scope.cancel()
        elif self._scope is not None:
            self._scope.deadline = anyio.current_time() + self._timing.shutdown
        self._publish(ServerState(self.spec.name, self.spec.transport, ServerStatus.STOPPED), None)

    async def call(self, tool: str, arguments: JsonObject, check: Check | None = None) -> CallResult:
        """Call a tool; a sleeping server is woken first, within its start timeout. Then `check` may refuse."""
        if not self.spec.offers(tool):
            raise NotFound(f"the config file leaves {tool} of {self.spec.name} out")
        return await self._on_connection(lambda connection: connection.call(tool, arguments), check)

    async def request(self, method: str, params: JsonObject, check: Check | None = None) -> JsonObject:
        """Send a request for a prompt, a resource, or the end of an argument, as `call` does."""
        return await self._on_connection(lambda connection: connection.request(method, params), check)

    async def watch(self, uri: str, tell: Callable[[], None]) -> None:
        """Tell when a resource was updated, over all connections; a server that is watched does not sleep."""
        self._calls += 1
        try:
            while True:
                connection = await self._connected()
                await self._named(connection, connection.watch(uri, tell))
                # What happened until the next connection nobody tells.
                tell()
        finally:
            self._calls -= 1
            self._called_at = anyio.current_time()
            self._signals.wakeup.set()

    async def _connected(self) -> "Connection":
        """Return the connection, however long it takes. Raise when the server was stopped: there will be none."""
        while True:
            news = self._news
            try:
                return await self._awake()
            except ServerUnavailable:
                if self._stopping.is_set():
                    raise
                await news.wait()

    async def _on_connection(self, send: "Callable[[Connection], Awaitable[T]]", check: Check | None) -> T:
        self._calls += 1
        try:
            connection = await self._awake()
            if check is not None:
                await check()
            self._in_flight += 1
            try:
                return await self._named(connection, send(connection))
            finally:
                self._in_flight -= 1
        finally:
            self._calls -= 1
            self._called_at = anyio.current_time()
            # It may sleep later now.
            self._signals.wakeup.set()

    async def _named(self, connection: "Connection", answer: Awaitable[T]) -> T:
        try:
            return await answer
        except (ServerRejected, ServerUnavailable) as error:
            if connection.challenge is not None and not isinstance(error, OutcomeUnknown):
                raise sign_in_needed(self.spec.name, connection.challenge.missing) from error
            text = self._shown(f"{self.spec.name}: {error.message}")
            details = masked_values(error.details, self.spec)
            raise type(error)(text, hint=error.hint, details=details) from error

    async def _awake(self) -> "Connection":
        if self.state.status is ServerStatus.ASLEEP:
            self._wake.set()
        while self._connection is None and self._is_waking:
            await self._news.wait()
        if self._connection is not None:
            return self._connection
        if self.state.status is ServerStatus.SIGN_IN_NEEDED:
            raise sign_in_needed(self.spec.name)
        why = f": {without_server_output(self.state.error)}" if self.state.error else ""
        failed = self.state.status is ServerStatus.FAILED
        raise ServerUnavailable(
            f"{self.spec.name} {'has failed' if failed else f'is {self.state.status}'}{why}",
            hint="it is retried automatically" if failed and not self._is_given_up else "",
        )

    @property
    def _is_waking(self) -> bool:
        """Asleep, or woken by another call: one that has never answered has no offer."""
        status = self.state.status
        return status is ServerStatus.ASLEEP or (status is ServerStatus.STARTING and self.offer is not None)

    async def _run(self, predecessors: "Collection[asyncio.Task[None]]") -> None:
        try:
            await self._keep_connected(predecessors)
        except Exception as error:
            # Whoever waits for this server would wait for ever.
            log.exception("MCP server is given up: a fault of Toolscript", extra={"part": self.spec.name})
            why = f"a fault of Toolscript ({type(error).__name__}), which its log explains; start it again"
            self._give_up(why)

    async def _keep_connected(self, predecessors: "Collection[asyncio.Task[None]]") -> None:
        if predecessors:
            await asyncio.wait(predecessors)
        hints: ProtocolHints | None = None
        while not self._stopping.is_set():
            if self.state.status is ServerStatus.ASLEEP and not await self._woken():
                return
            try:
                hints = hints or await _load_hints()
            except ImportError as error:
                self._give_up(f"a library is missing, install Toolscript again: {error}")
                return
            failure = await self._attempt(hints)
            if self._stopping.is_set():
                return
            if failure is None:
                continue
            if self._credentials is not None and await self._wants_sign_in():
                await self._until_signed_in(self._credentials)
                continue
            restarts = self._is_first_crash
            self._failures = 1 if restarts else self._failures + 1
            self._ready_since = math.inf
            self._fail(failure, restarts=restarts)
            with anyio.move_on_after(self._timing.retry_after(self._failures)):
                await self._stopping.wait()

    async def _wants_sign_in(self) -> bool:
        """Return whether the last attempt ended because the server wants a sign-in."""
        from toolscript.core.mcp_client.oauth.discovery import needs_sign_in

        with anyio.move_on_after(self.spec.start_seconds):
            return await needs_sign_in(self.spec, self._challenge)
        return False

    async def _until_signed_in(self, credentials: Credentials) -> None:
        """Wait for a person, and look again now and then: a server may have refused a good token by mistake."""
        self._failures, self._ready_since = 0, math.inf
        log.info("MCP server needs a sign-in", extra={"part": self.spec.name})
        missing = self._challenge.missing if self._challenge is not None else ()
        error = how_to_sign_in(self.spec.name, missing)
        status = ServerStatus.SIGN_IN_NEEDED
        self._publish(ServerState(self.spec.name, self.spec.transport, status, error), None)
        ends = self._stopping.wait(), credentials.until_changed(self._sign_in)
        waiting = [asyncio.ensure_future(until) for until in ends]
        credentials.is_wanted = True
        try:
            await asyncio.wait(waiting, timeout=self._timing.sign_in_again, return_when=asyncio.FIRST_COMPLETED)
        finally:
            credentials.is_wanted = False
            for task in waiting:
                task.cancel()

    @property
    def _is_first_crash(self) -> bool:
        """Return whether a server that is lost now has worked, and did not crash just before that."""
        if math.isinf(self._ready_since):
            return False
        return not self._failures or anyio.current_time() - self._ready_since > self._timing.settled_after

    async def _woken(self) -> bool:
        """Sleep until a call, or until the offer is old; return whether to start, and not to stop."""
        with anyio.move_on_after(self._timing.list_after):
            await self._wake.wait()
        self._wake.clear()
        if not self._stopping.is_set():
            self._publish(replace(self.state, status=ServerStatus.STARTING, error=""), self.offer)
        return not self._stopping.is_set()

    async def _attempt(self, hints: "ProtocolHints") -> "Failure | None":
        """Run one connection until it ends; return why it failed, or None if the server is asleep or stopped."""
        from toolscript.core.mcp_client.connection import Trace, open_connection

        self._signals = Signals()
        trace = Trace(self._signals, self._credentials)
        self._sign_in = self._credentials.sign_in() if self._credentials is not None else ""
        self._scope = scope = anyio.CancelScope()
        fault: Exception = ServerUnavailable(f"it was not ready within {self.spec.start_seconds:g} seconds")
        turn: Turn | None = None
        with scope:
            try:
                turn = await self._turns.take(urgent=self._calls > 0, failed_before=self._failures > 0)
                scope.deadline = anyio.current_time() + self.spec.start_seconds
                async with open_connection(self.spec, trace, hints, self._groups, self._timing) as opened:
                    await self._serve(opened, scope, turn)
                    return None
            except Exception as error:  # noqa: BLE001 - any failure of a server leads to a retry
                fault = fault if scope.cancel_called else error
            finally:
                if turn is not None:
                    turn.release()
        self._challenge = trace.challenge
        return None if self.state.status is ServerStatus.ASLEEP else trace.why(fault)

    async def _serve(self, connection: "Connection", scope: anyio.CancelScope, turn: Turn) -> None:
        listed = await connection.list_items()
        turn.release()
        scope.deadline = math.inf
        self._connection, self._ready_since = connection, anyio.current_time()
        self._publish_ready(connection, listed)
        self._logged = ""
        log.info("MCP server is ready", extra={"part": self.spec.name, "total": len(listed.items)})
        try:
            await self._watch(connection)
            if not self._stopping.is_set():
                self._connection, self._failures = None, 0
                self._publish(replace(self.state, status=ServerStatus.ASLEEP), self.offer)
        finally:
            if self._connection is not None:
                # Published before the connection closes, which may take a while.
                self._connection = None
                self._publish_failure("the connection was lost", restarts=self._is_first_crash)

    async def _watch(self, connection: "Connection") -> None:
        """Return when the server is to sleep, or to stop."""
        signals, remote = self._signals, self.spec.transport is not Transport.STDIO
        while not self._stopping.is_set():
            sleeps_in = self._sleeps_in()
            if sleeps_in <= 0:
                return
            with anyio.move_on_after(self._timing.ping_after if remote else sleeps_in) as quiet:
                await signals.wakeup.wait()
            signals.wakeup.clear()
            if signals.lost:
                raise ServerUnavailable("the connection was lost")
            if signals.take_ping_requested() or (remote and quiet.cancelled_caught):
                await self._ping(connection)
            if signals.take_changed():
                await self._list_again(connection)

    async def _ping(self, connection: "Connection") -> None:
        """Raise if the server does not answer. It may be busy with a call, which has a limit of its own."""
        if not await connection.ping(self._timing.ping_timeout) and not self._in_flight:
            raise ServerUnavailable("the server no longer answers")

    def _sleeps_in(self) -> float:
        """Return the seconds until the server sleeps: soon if it was only listed, else when it was idle."""
        if self._calls or not self._may_sleep:
            return math.inf
        sleeps_at = max(self._ready_since + self._timing.linger, self._called_at + self._timing.idle)
        return sleeps_at - anyio.current_time()

    async def _list_again(self, connection: "Connection") -> None:
        """List again after a debounce: changes come in bursts, and the delay grows with the listing time."""
        await anyio.sleep(self._debounce)
        self._signals.take_changed()
        began = anyio.current_time()
        try:
            with anyio.fail_after(self.spec.start_seconds):
                self._publish_ready(connection, await connection.list_items())
        except (ServerRejected, TimeoutError) as error:
            reason = self._shown(str(error))
            log.warning("MCP server cannot be listed again", extra={"part": self.spec.name, "reason": reason})
        self._debounce = max(self._timing.debounce, 2 * (anyio.current_time() - began))

    def _publish_ready(self, connection: "Connection", listed: "ListedItems") -> None:
        state = ServerState(
            self.spec.name,
            self.spec.transport,
            ServerStatus.READY,
            protocol=connection.protocol,
            version=connection.version,
            **_counts(listed.items),
        )
        refused = tuple(map(self._shown, listed.refused))
        self._publish(state, Offer(self.spec.name, tuple(listed.items), refused))

    def _fail(self, failure: "Failure", *, restarts: bool) -> None:
        # The server's own output may contain anything: it is part of the server's state and is not logged.
        reason = self._shown(failure.reason)
        level = logging.DEBUG if reason == self._logged else logging.WARNING
        log.log(level, "MCP server is not ready", extra={"part": self.spec.name, "reason": reason})
        self._logged = reason
        self._publish_failure(f"{reason}{masked(failure.details, self.spec)}", restarts=restarts)

    def _shown(self, message: str) -> str:
        return shown(self._credentials.masked(message) if self._credentials else message, self.spec)

    def _give_up(self, error: str) -> None:
        self._is_given_up = True
        self._publish_failure(error, restarts=False)

    def _publish_failure(self, error: str, *, restarts: bool) -> None:
        state = ServerState(self.spec.name, self.spec.transport, ServerStatus.FAILED, error, restarts=restarts)
        self._publish(state, None)

    def _publish(self, state: ServerState, offer: Offer | None) -> None:
        """Publish a state and an offer; states of a server that is being stopped are ignored."""
        is_late = self._stopping.is_set() and state.status is not ServerStatus.STOPPED
        if not is_late and (state, offer) != (self.state, self.offer):
            self.state, self.offer = state, offer
            news, self._news = self._news, asyncio.Event()
            news.set()
            self._on_change()


def _counts(items: Collection[Item]) -> dict[str, Any]:
    kinds = Counter(item.kind for item in items)
    names = {"tools": ItemKind.TOOL, "prompts": ItemKind.PROMPT, "resources": ItemKind.RESOURCE}
    return {name: kinds[kind] for name, kind in names.items()}


async def _load_hints() -> "ProtocolHints":
    if sys.modules.get(_CONNECTION) is None:
        # Importing the SDK takes two seconds, which would block the event loop.
        await asyncio.to_thread(import_module, _CONNECTION)
    from toolscript.core.mcp_client.protocol import ProtocolHints

    return ProtocolHints()
