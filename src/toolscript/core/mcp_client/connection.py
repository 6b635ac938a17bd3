"""One connection to one server: protocol negotiation, calls, and notifications of changes."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ServerCapabilities,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.item_json import storable
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.failures import STAND_INS, Failure, in_words, translated
from toolscript.core.mcp_client.http import HttpWatch, http_streams, sse_streams
from toolscript.core.mcp_client.listing import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    Found,
    Listing,
    call_result,
    list_all,
)
from toolscript.core.mcp_client.model import CallResult, ServerSpec, Transport
from toolscript.core.mcp_client.process_groups import ProcessGroups
from toolscript.core.mcp_client.stdio import Child, stdio_streams
from toolscript.core.mcp_client.supervision import Pace, Signals
from toolscript.core.text import readable
from toolscript.core.version import __version__

CLIENT = Implementation(name="toolscript", version=__version__)
_ACKNOWLEDGED_WITHIN = 1.0
_ASK_AGAIN = 1.0
_ASK_AGAIN_AT_LAST = 60.0
_CHANGES = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
_NOT_LET_IN = frozenset({401, 403})

# The SDK tells its troubles to the log as well as to us, and some of what it tells there is secret.
for noisy in ("client", "mcp.client"):
    logging.getLogger(noisy).setLevel(logging.CRITICAL)
logging.getLogger("httpx2").setLevel(logging.WARNING)


@dataclass
class Habits:
    """What was learnt about a server, so that it is not asked again what it did not understand."""

    shakes_hands: bool = False
    speaks_old_sse: bool = False


async def agree(session: ClientSession, habits: Habits, patience: float) -> None:
    if not habits.shakes_hands and await _discovered(session, habits, patience):
        return
    try:
        await session.initialize()
        habits.shakes_hands = True
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        habits.shakes_hands = False
        await session.discover()


async def _discovered(session: ClientSession, habits: Habits, patience: float) -> bool:
    try:
        with anyio.fail_after(patience):
            await session.discover()
    except MCPError as error:
        # There are servers that a request before the handshake kills, and others that say so with the same code
        # and go on: the handshake finds out which.
        habits.shakes_hands = habits.shakes_hands or error.code == CONNECTION_CLOSED
        return False
    except (TimeoutError, ValidationError, RuntimeError):
        return False
    return True


def is_modern(protocol: str) -> bool:
    return protocol in MODERN_PROTOCOL_VERSIONS


def addressed(
    protocol: str, method: str, params: JsonObject, headers: Mapping[str, str]
) -> tuple[dict[str, Any], CallOptions]:
    """A request's parameters and headers as the protocol wants them: the newer one says everything each time."""
    options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: protocol}}
    if not is_modern(protocol):
        return dict(params), options
    named = params.get(NAME_BEARING_METHODS.get(method, ""))
    name = {MCP_NAME_HEADER: encode_header_value(named)} if isinstance(named, str) else {}
    options["headers"] = {**options["headers"], MCP_METHOD_HEADER: method, **name, **headers}
    return {**params, "_meta": _envelope(protocol)}, options


def _envelope(protocol: str) -> JsonObject:
    return {
        PROTOCOL_VERSION_META_KEY: protocol,
        CLIENT_INFO_META_KEY: CLIENT.model_dump(by_alias=True, mode="json", exclude_none=True),
        CLIENT_CAPABILITIES_META_KEY: {},
    }


@asynccontextmanager
async def subscribed(session: ClientSession, signals: Signals) -> AsyncIterator[None]:
    """Inside, a change is heard that happens after whatever is listed now."""
    if not is_modern(session.protocol_version or ""):
        yield
        return
    async with anyio.create_task_group() as tasks:
        heard = anyio.Event()
        tasks.start_soon(_keep_listening, session, signals, heard)
        with anyio.move_on_after(_ACKNOWLEDGED_WITHIN):
            await heard.wait()
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _keep_listening(session: ClientSession, signals: Signals, heard: anyio.Event) -> None:
    pause = _ASK_AGAIN
    while True:
        try:
            await _listen(session, signals, heard)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                heard.set()
                return
        except SubscriptionLost:
            pass
        # What changed while nobody listened is found by listing again.
        signals.doubt()
        signals.change()
        await anyio.sleep(pause)
        pause = min(2 * pause, _ASK_AGAIN_AT_LAST)


async def _listen(session: ClientSession, signals: Signals, heard: anyio.Event) -> None:
    offered = session.server_capabilities or ServerCapabilities()
    async with listen(
        session,
        tools_list_changed=offered.tools is not None,
        prompts_list_changed=offered.prompts is not None,
        resources_list_changed=offered.resources is not None,
    ) as events:
        heard.set()
        async for _ in events:
            signals.change()


class Trace:
    """What an attempt to connect meets on its way, to tell afterwards why it failed."""

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self.watch = HttpWatch(signals.doubt)
        self.started: list[Child] = []

    def why(self, fault: BaseException) -> Failure:
        return in_words(fault, self.started[-1] if self.started else None, self.watch.refusal)


class _Dispatcher(JSONRPCDispatcher):
    """Tells when the other side is gone; otherwise only the next request would find out."""

    def __init__(self, read: Any, write: Any, signals: Signals) -> None:
        super().__init__(read, write)
        self._signals = signals

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        **options: Any,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, **options)
        finally:
            self._signals.lose()


class Connection:
    """A server that answered. Anyone may call; only one task opens and closes it."""

    def __init__(self, spec: ServerSpec, session: ClientSession, dispatcher: _Dispatcher, trace: Trace) -> None:
        self._spec = spec
        self._session = session
        self._dispatcher = dispatcher
        self._trace = trace
        self._wire_names: dict[str, str] = {}
        self._headers: dict[str, dict[tuple[str, ...], str]] = {}
        self.protocol = session.protocol_version or ""
        info = session.server_info
        self.version = info.version if info else ""
        self._about = session.instructions or (info and (info.description or info.title)) or ""

    async def list_items(self) -> Found:
        found = await list_all(self._request, self._spec, self._about, self._listings(), self._unusable)
        self._wire_names = found.wire_names
        self._headers = self._mirrored(found.items) if is_modern(self.protocol) else {}
        return found

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        headers = mcp_param_headers(self._headers.get(tool, {}), arguments)
        params = {"name": self._wire_names.get(tool, readable(tool)), "arguments": storable(arguments)}
        try:
            with anyio.fail_after(self._spec.call_seconds):
                return call_result(tool, await self._request("tools/call", params, headers))
        except TimeoutError:
            if self._spec.transport is not Transport.STDIO:
                self._trace.signals.doubt()
            raise ServerUnavailable(
                f"{tool}: no answer within {self._spec.call_seconds:g} seconds",
                hint=f"it may still be at work; raise callTimeout of {self._spec.name}, or ask for less at once",
            ) from None

    async def look(self, seconds: float) -> None:
        """Asks whether the server is still there; any answer of its own will do."""
        method = "server/discover" if is_modern(self.protocol) else "ping"
        try:
            with anyio.fail_after(seconds):
                await self._request(method, {})
        except ServerRejected:
            return
        except TimeoutError:
            raise ServerUnavailable("the server no longer answers") from None

    async def _request(
        self, method: str, params: JsonObject, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        asked, options = addressed(self.protocol, method, params, headers or {})
        watch = self._trace.watch
        watch.status = 0
        try:
            with translated(method):
                return await self._dispatcher.send_raw_request(method, asked, options)
        except ServerUnavailable:
            self._trace.signals.doubt()
            raise
        except ServerRejected as error:
            if not self._was_refused_at_the_door(error):
                raise
            self._trace.signals.doubt()
            raise ServerUnavailable(f"{method}: {watch.refusal}") from error

    def _was_refused_at_the_door(self, error: ServerRejected) -> bool:
        """By HTTP rather than by the server's own judgement: it forgot our session, or no longer knows us."""
        status = self._trace.watch.status
        if not is_modern(self.protocol):
            return status != 0
        # The newer protocol gives its own errors a status, too.
        return status in _NOT_LET_IN or (status != 0 and error.message.endswith(STAND_INS))

    def _listings(self) -> tuple[Listing, ...]:
        offered = self._session.server_capabilities
        if offered is None or not offered.model_dump(exclude_none=True):
            # A server that says nothing about itself was not asked for prompts by anyone before us either.
            return (TOOLS,)
        prompts = (PROMPTS,) if offered.prompts is not None else ()
        resources = (RESOURCES, TEMPLATES) if offered.resources is not None else ()
        return ((TOOLS,) if offered.tools is not None else ()) + prompts + resources

    def _unusable(self, item: Item) -> str | None:
        """The newer protocol forbids calling a tool whose wish for headers cannot be met."""
        return find_invalid_x_mcp_header(item.input_schema) if is_modern(self.protocol) else None

    def _mirrored(self, items: Sequence[Item]) -> dict[str, dict[tuple[str, ...], str]]:
        maps = {item.name: x_mcp_header_map(item.input_schema) for item in items if item.input_schema}
        return {name: wanted for name, wanted in maps.items() if wanted}


@asynccontextmanager
async def open_connection(
    spec: ServerSpec, trace: Trace, habits: Habits, groups: ProcessGroups, pace: Pace
) -> AsyncIterator[Connection]:
    async with AsyncExitStack() as stack:
        streams = _streams(spec, trace, habits, groups, pace)
        try:
            connection = await stack.enter_async_context(_connected(spec, streams, trace, habits, pace))
        except Exception:
            newer = spec.transport is Transport.HTTP and not habits.speaks_old_sse
            habits.speaks_old_sse = newer and trace.watch.means_old_server
            if not habits.speaks_old_sse:
                raise
            trace.signals.forget()
            older = sse_streams(spec, trace.watch)
            connection = await stack.enter_async_context(_connected(spec, older, trace, habits, pace))
        yield connection


def _streams(
    spec: ServerSpec, trace: Trace, habits: Habits, groups: ProcessGroups, pace: Pace
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    if spec.transport is Transport.STDIO:
        return stdio_streams(spec, groups, pace.goodbye, trace.started)
    if spec.transport is Transport.HTTP and not habits.speaks_old_sse:
        return http_streams(spec, trace.watch)
    return sse_streams(spec, trace.watch)


@asynccontextmanager
async def _connected(
    spec: ServerSpec,
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    trace: Trace,
    habits: Habits,
    pace: Pace,
) -> AsyncIterator[Connection]:
    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            trace.signals.change()

    async with streams as (read, write):
        dispatcher = _Dispatcher(read, write, trace.signals)
        async with ClientSession(dispatcher=dispatcher, client_info=CLIENT, message_handler=hear) as session:
            await agree(session, habits, pace.probe)
            trace.watch.status = 0
            async with subscribed(session, trace.signals):
                yield Connection(spec, session, dispatcher, trace)
