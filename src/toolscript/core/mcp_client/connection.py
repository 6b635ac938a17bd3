"""One connection to one server: requests, what the server says meanwhile, and notifications of changes.

A modern protocol has no handshake: every request carries the metadata, and clients subscribe to changes. An older
one starts with `initialize`, and its servers report changes unasked.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    SamplingCapability,
    SamplingToolsCapability,
    ToolListChangedNotification,
)

from toolscript.core.errors import ServerRejected, ServerUnavailable, ToolscriptError
from toolscript.core.item_json import storable
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.exchanges import Exchange, Exchanges, refused
from toolscript.core.mcp_client.failures import (
    CALL,
    SDK_PLACEHOLDERS,
    Failure,
    describe_failure,
    translate_errors,
    unanswered,
)
from toolscript.core.mcp_client.http import HttpWatch, http_streams, sse_streams
from toolscript.core.mcp_client.list_changes import subscription
from toolscript.core.mcp_client.listing import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    ListedItems,
    Listing,
    call_result,
    list_all,
)
from toolscript.core.mcp_client.model import CallResult, ServerSpec, Transport
from toolscript.core.mcp_client.oauth.challenge import Challenge
from toolscript.core.mcp_client.oauth.tokens import Credentials
from toolscript.core.mcp_client.process_groups import ProcessGroups
from toolscript.core.mcp_client.protocol import CLIENT, ProtocolHints, build_request, is_modern, negotiate
from toolscript.core.mcp_client.relay import LOG_LEVELS, QUESTIONS, Relay, current_relay
from toolscript.core.mcp_client.stdio import Child, stdio_streams
from toolscript.core.mcp_client.supervision import Signals, Timing
from toolscript.core.mcp_client.updates import ResourceUpdates
from toolscript.core.text import readable

# A server that asks for nothing wants the request again, a little later, and later each time.
_STATE_ONLY_SECONDS = 0.25
_SHORT_SECONDS = 5.0
# How often a modern server may request input for one request.
MAX_ROUNDS = 20
INPUT_REQUIRED, LOG, UPDATED = "input_required", "notifications/message", "notifications/resources/updated"
LISTEN, SUBSCRIBE, UNSUBSCRIBE = "subscriptions/listen", "resources/subscribe", "resources/unsubscribe"
_CHANGES = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
_UNAUTHORIZED = frozenset({401, 403})
_SAMPLING = SamplingCapability(tools=SamplingToolsCapability())

# The SDK also logs the errors it raises, and those log records may contain secrets.
for noisy in ("client", "mcp.client"):
    logging.getLogger(noisy).setLevel(logging.CRITICAL)
logging.getLogger("httpx2").setLevel(logging.WARNING)


class Trace:
    """Record of one connection attempt, which explains its failure afterwards."""

    def __init__(self, signals: Signals, credentials: Credentials | None = None) -> None:
        self.signals = signals
        self.watch = HttpWatch(signals.request_ping, credentials)
        self.started: list[Child] = []

    def why(self, fault: BaseException) -> Failure:
        """Describe the failure, with the output of the process and the HTTP status of this attempt."""
        return describe_failure(fault, self.started[-1] if self.started else None, self.watch.refusal)

    @property
    def challenge(self) -> Challenge | None:
        """Return the challenge of the server if it refused the last request for want of a token."""
        return self.watch.auth.challenge if self.watch.auth is not None else None


class _Dispatcher(JSONRPCDispatcher):
    """Dispatcher that reports a closed connection at once, before the next request fails on it.

    What a server says to the client of a request goes there as it is, without the models of the SDK's session.
    """

    def __init__(self, read: Any, write: Any, signals: Signals, exchanges: Exchanges) -> None:
        super().__init__(read, write)
        self._signals = signals
        self._exchanges = exchanges
        self.updates = ResourceUpdates()

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        **options: Any,
    ) -> None:
        async def answer(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            if method in QUESTIONS:
                return await self._answer(method, params or {})
            return await on_request(context, method, params)

        async def take(context: Any, method: str, params: Mapping[str, Any] | None) -> None:
            if method == LOG:
                await self._exchanges.log(params or {})
            elif method == UPDATED:
                self.updates.tell(str((params or {}).get("uri", "")))
            else:
                await on_notify(context, method, params)

        try:
            await super().run(answer, take, on_notify_intercept, **options)
        finally:
            self.updates.end()
            self._signals.lose()

    async def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(await self._exchanges.ask_one(method, params))
        except ServerRejected as error:
            code = error.details.get("code")
            raise MCPError(code if isinstance(code, int) else INVALID_REQUEST, error.message) from None


class Connection:
    """Connection to a server that has answered. Any task may call; only one task opens and closes it."""

    def __init__(
        self,
        spec: ServerSpec,
        session: ClientSession,
        dispatcher: _Dispatcher,
        trace: Trace,
        exchanges: Exchanges,
    ) -> None:
        self._exchanges = exchanges
        self._log_level = ""
        self._spec = spec
        self._session = session
        self._dispatcher = dispatcher
        self._trace = trace
        self._wire_names: dict[str, str] = {}
        # By tool: the header of each argument that a modern server wants repeated in the headers.
        self._header_maps: dict[str, dict[tuple[str, ...], str]] = {}
        self.protocol = session.protocol_version or ""
        info = session.server_info
        self.version = info.version if info else ""
        self._description = session.instructions or (info and (info.description or info.title)) or ""

    async def list_items(self) -> ListedItems:
        """List everything the server offers, and keep the names and headers that calls need."""
        listings = self._listings()
        listed = await list_all(self._request, self._spec, self._description, listings, self._why_unusable)
        self._wire_names = listed.wire_names
        self._header_maps = _header_maps(listed.items) if is_modern(self.protocol) else {}
        return listed

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool. Raise OutcomeUnknown if no answer comes in time, or at all: it may still be running."""
        headers = mcp_param_headers(self._header_maps.get(tool, {}), arguments)
        params = {"name": self._wire_names.get(tool, readable(tool)), "arguments": storable(arguments)}
        return call_result(tool, await self._ask(CALL, params, headers, tool))

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request of a client that has no effect: for a prompt, a resource, or the end of an argument."""
        return await self._ask(method, params, {}, method)

    async def _ask(self, method: str, params: JsonObject, headers: Mapping[str, str], what: str) -> JsonObject:
        """Send a client's request, and ask the client what the server asks before it answers."""
        relay = current_relay()
        await self._set_log_level(relay)
        with self._exchanges.begin(relay) as exchange:
            try:
                with anyio.fail_after(self._spec.call_seconds) as exchange.limit:
                    return await self._completed(exchange, method, params, headers)
            except TimeoutError:
                if self._spec.transport is not Transport.STDIO:
                    self._trace.signals.request_ping()
                raise unanswered(method)(
                    f"{what}: no answer within {self._spec.call_seconds:g} seconds",
                    hint=f"it may still be running; raise callTimeout of {self._spec.name}, or ask for less",
                ) from None

    async def _completed(
        self, exchange: Exchange, method: str, params: JsonObject, headers: Mapping[str, str]
    ) -> JsonObject:
        """Return the complete answer: a modern server gets what it requests by sending the request again."""
        rounds, pause = 0, _STATE_ONLY_SECONDS
        while True:
            answer = await self._request(method, params, headers, exchange.relay)
            if answer.get("resultType") != INPUT_REQUIRED:
                return answer
            questions, state = answer.get("inputRequests") or {}, answer.get("requestState")
            if not isinstance(questions, Mapping) or not (questions or isinstance(state, str)):
                raise ServerRejected(f"{method}: the server requests input, and does not say which")
            given: JsonObject = {}
            if questions and rounds == MAX_ROUNDS:
                raise refused(f"{method}: the server requests input more than {MAX_ROUNDS} times")
            if questions:
                rounds, given = rounds + 1, {"inputResponses": await exchange.ask(questions)}
            else:
                await anyio.sleep(pause)
                pause = min(2 * pause, _SHORT_SECONDS)
            params = {**params, **given, **({"requestState": state} if isinstance(state, str) else {})}

    async def _set_log_level(self, relay: Relay | None) -> None:
        """Let a server of the older protocol log what the most curious of its clients wants."""
        capabilities = self._session.server_capabilities
        wanted = relay.log_level if relay else ""
        if not wanted or is_modern(self.protocol) or not capabilities or capabilities.logging is None:
            return
        if not self._log_level or LOG_LEVELS.index(wanted) < LOG_LEVELS.index(self._log_level):
            self._log_level = wanted
            with suppress(ServerRejected, TimeoutError), anyio.fail_after(_SHORT_SECONDS):
                await self._request("logging/setLevel", {"level": wanted})

    async def watch(self, uri: str, tell: Callable[[], None]) -> None:
        """Tell when a resource was updated, until the connection is lost. Raise ServerRejected if it cannot be."""
        if is_modern(self.protocol):
            with suppress(SubscriptionLost), translate_errors(LISTEN):
                async with listen(self._session, resource_subscriptions=[uri]) as events:
                    async for _ in events:
                        tell()
            return
        updates = self._dispatcher.updates
        try:
            with updates.told(uri, tell):
                async with updates.turn(uri):
                    if uri not in updates.subscribed:
                        await self._request(SUBSCRIBE, {"uri": uri})
                        updates.subscribed.add(uri)
                await updates.ended.wait()
        finally:
            with anyio.move_on_after(_SHORT_SECONDS, shield=True), suppress(ToolscriptError):
                await self._unsubscribe(uri)

    async def _unsubscribe(self, uri: str) -> None:
        updates = self._dispatcher.updates
        async with updates.turn(uri):
            if uri in updates.subscribed and not updates.is_watched(uri) and not updates.ended.is_set():
                updates.subscribed.discard(uri)
                await self._request(UNSUBSCRIBE, {"uri": uri})

    @property
    def challenge(self) -> Challenge | None:
        return self._trace.challenge

    async def ping(self, seconds: float) -> bool:
        """Return whether the server answers in time; an error response counts as an answer."""
        method = "server/discover" if is_modern(self.protocol) else "ping"
        try:
            with anyio.fail_after(seconds):
                await self._request(method, {})
        except ServerRejected:
            return True
        except TimeoutError:
            return False
        return True

    async def _request(
        self,
        method: str,
        params: JsonObject,
        headers: Mapping[str, str] | None = None,
        relay: Relay | None = None,
    ) -> JsonObject:
        full_params, options = build_request(self.protocol, method, params, headers or {}, relay)
        watch = self._trace.watch
        watch.status = 0
        try:
            with translate_errors(method):
                return await self._dispatcher.send_raw_request(method, full_params, options)
        except ServerUnavailable:
            self._trace.signals.request_ping()
            raise
        except ServerRejected as error:
            if not self._is_http_rejection(error):
                raise
            self._trace.signals.request_ping()
            # From 500 on, what stands before a server may answer while the server runs the call.
            kind = unanswered(method) if watch.status >= HTTPStatus.INTERNAL_SERVER_ERROR else ServerUnavailable
            raise kind(f"{method}: {watch.refusal}") from error

    def _is_http_rejection(self, error: ServerRejected) -> bool:
        """Return whether HTTP rejected the request, not the MCP server: an expired session or credentials."""
        status = self._trace.watch.status
        if not is_modern(self.protocol):
            return status != 0
        # The newer protocol also sets an HTTP status for its own errors.
        return status in _UNAUTHORIZED or (status != 0 and error.message.endswith(SDK_PLACEHOLDERS))

    def _listings(self) -> tuple[Listing, ...]:
        capabilities = self._session.server_capabilities
        if capabilities is None or not capabilities.model_dump(exclude_none=True):
            # A server without declared capabilities is listed for tools only, as other clients do.
            return (TOOLS,)
        tools = (TOOLS,) if capabilities.tools is not None else ()
        prompts = (PROMPTS,) if capabilities.prompts is not None else ()
        resources = (RESOURCES, TEMPLATES) if capabilities.resources is not None else ()
        return tools + prompts + resources

    def _why_unusable(self, item: Item) -> str | None:
        """Return why a tool cannot be called: the newer protocol forbids calls with invalid header parameters."""
        return find_invalid_x_mcp_header(item.input_schema) if is_modern(self.protocol) else None


def _header_maps(items: Sequence[Item]) -> dict[str, dict[tuple[str, ...], str]]:
    maps = {item.name: x_mcp_header_map(item.input_schema) for item in items if item.input_schema}
    return {name: headers for name, headers in maps.items() if headers}


@asynccontextmanager
async def open_connection(
    spec: ServerSpec, trace: Trace, hints: ProtocolHints, groups: ProcessGroups, timing: Timing
) -> AsyncIterator[Connection]:
    """Connect and negotiate. A server that rejects Streamable HTTP is tried over the older SSE at once.

    `hints` keep that, so the next attempt starts with SSE. If it fails, the one after starts with Streamable HTTP.
    """
    async with AsyncExitStack() as stack:
        streams = _streams(spec, trace, hints, groups, timing)
        try:
            connection = await stack.enter_async_context(_connected(spec, streams, trace, hints, timing))
        except Exception:
            was_streamable_http = spec.transport is Transport.HTTP and not hints.uses_legacy_sse
            hints.uses_legacy_sse = was_streamable_http and trace.watch.means_old_server
            if not hints.uses_legacy_sse:
                raise
            trace.signals.reset()
            streams = sse_streams(spec, trace.watch)
            connection = await stack.enter_async_context(_connected(spec, streams, trace, hints, timing))
        yield connection


def _streams(
    spec: ServerSpec, trace: Trace, hints: ProtocolHints, groups: ProcessGroups, timing: Timing
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    if spec.transport is Transport.STDIO:
        return stdio_streams(spec, groups, timing.shutdown, trace.started)
    if spec.transport is Transport.HTTP and not hints.uses_legacy_sse:
        return http_streams(spec, trace.watch)
    return sse_streams(spec, trace.watch)


@asynccontextmanager
async def _connected(
    spec: ServerSpec,
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    trace: Trace,
    hints: ProtocolHints,
    timing: Timing,
) -> AsyncIterator[Connection]:
    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            trace.signals.change()

    async with streams as (read, write):
        exchanges = Exchanges(spec.name)
        dispatcher = _Dispatcher(read, write, trace.signals, exchanges)
        session = ClientSession(
            dispatcher=dispatcher,
            client_info=CLIENT,
            message_handler=on_message,
            # They declare what clients can be asked; the dispatcher answers.
            elicitation_callback=_answered_by_dispatcher,
            sampling_callback=_answered_by_dispatcher,
            sampling_capabilities=_SAMPLING,
            list_roots_callback=_answered_by_dispatcher,
        )
        async with session:
            await negotiate(session, hints, timing.probe)
            trace.watch.status = 0
            async with subscription(session, trace.signals):
                yield Connection(spec, session, dispatcher, trace, exchanges)


async def _answered_by_dispatcher(context: object, params: object = None) -> ErrorData:
    del context, params
    return ErrorData(code=INVALID_REQUEST, message="not supported")
