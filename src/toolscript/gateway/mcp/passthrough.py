"""Proxy for servers with an HTTP transport: requests and responses pass through unchanged.

The client's credentials are removed and the server's own are added. Streams are forwarded chunk by chunk.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy

import anyio
import httpx2
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp_types.version import LATEST_PROTOCOL_VERSION
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import (
    ERROR_TABLE,
    Forbidden,
    NotFound,
    ServerRejected,
    ServerUnavailable,
    ToolscriptError,
    envelope_of,
)
from toolscript.core.mcp.answers import failed
from toolscript.core.mcp.endpoint import LOOPBACK_ONLY, wire_result
from toolscript.core.mcp_client.model import ServerSpec, Transport, how_to_sign_in, sign_in_needed
from toolscript.core.mcp_client.oauth.tokens import Credentials
from toolscript.gateway.activity import NoActivity, Outcome
from toolscript.gateway.callers import client_is
from toolscript.gateway.mcp.passthrough_approvals import PassthroughApprovals, ServerFilter
from toolscript.gateway.mcp.passthrough_calls import PassingCalls, PassthroughLog
from toolscript.gateway.mcp.passthrough_messages import Requested, requested_in
from toolscript.gateway.streams import cancel_on_disconnect

MAX_BYTES = 4 * 1024 * 1024
CONNECT_SECONDS = 10.0
KEPT_CONNECTIONS = 20
REQUEST_HEADERS = frozenset({"accept", "content-type", "last-event-id", "traceparent", "tracestate"})
RESPONSE_HEADERS = frozenset({"content-type", "cache-control", "allow", "retry-after", "x-accel-buffering"})

logger = logging.getLogger("toolscript.mcp")

FindServer = Callable[[str], ServerSpec | None]
# Takes a server and a tool, and raises Forbidden where a rule does not allow the current client to call it.
RequireAllowed = Callable[[str, str], None]
# The sign-in of a server; None for one that has its own credentials in its headers.
CredentialsOf = Callable[[ServerSpec], Credentials | None]
# None: there are no rules.
FindRules = Callable[[], RequireAllowed | None]


def passthrough_client() -> httpx2.AsyncClient:
    """Return a client that keeps no cookies: entries of one host have accounts of their own.

    A stream holds its connection as long as it lasts, so their number is not limited.
    """
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS)
    return httpx2.AsyncClient(trust_env=False, cookies=no_cookies, limits=limits)


def passthrough_asgi(
    find: FindServer,
    client: httpx2.AsyncClient,
    security: TransportSecuritySettings = LOOPBACK_ONLY,
    log: PassthroughLog | None = None,
    find_rules: FindRules = lambda: None,
    approvals: PassthroughApprovals | None = None,
    credentials_of: CredentialsOf = lambda _: None,
) -> ASGIApp:
    """Return the app for `/mcp/{server}`. `find` returns the current spec of a server."""
    passthrough = _Passthrough(
        find, client, security, log or PassthroughLog(NoActivity()), find_rules, approvals, credentials_of
    )
    return RequestBodyLimitMiddleware(passthrough, MAX_BYTES)


class _Passthrough:
    def __init__(
        self,
        find: FindServer,
        client: httpx2.AsyncClient,
        security: TransportSecuritySettings,
        log: PassthroughLog,
        find_rules: FindRules,
        approvals: PassthroughApprovals | None,
        credentials_of: CredentialsOf,
    ) -> None:
        self._credentials_of = credentials_of
        self._log = log
        self._find_rules = find_rules
        self._approvals = approvals
        self._find = find
        self._client = client
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refused = await self._security.validate_request(request, is_post=request.method == "POST")
        if refused is not None:
            await refused(scope, receive, send)
            return
        try:
            spec = _reachable(self._find, str(request.path_params["server"]))
            body = await request.body()
            credentials = self._credentials_of(spec)
            if credentials is not None and credentials.is_wanted:
                raise sign_in_needed(spec.name)
            held = await self._approvals.of(spec.name) if self._approvals else None
            rules = self._find_rules()
            requested = requested_in(body, strictly=held is not None or rules is not None)
        except ToolscriptError as error:
            await _error_response(error)(scope, receive, send)
            return
        calls = self._log.begin(spec, request.headers, requested)
        try:
            if held is not None and (refusal := held.refusal(requested)):
                calls.end(Outcome.REFUSED, "FORBIDDEN")
                await refusal(scope, receive, send)
                return
            await calls.sent()
            if (refused_calls := _refused(spec, requested, calls.client, rules)) is not None:
                calls.end(Outcome.REFUSED, ERROR_TABLE[Forbidden].code)
                await refused_calls(scope, receive, send)
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_on_disconnect, receive, tasks.cancel_scope)
                await self._forward(spec, request, requested, send, calls, held)
                tasks.cancel_scope.cancel()
        finally:
            calls.end()

    async def _forward(
        self,
        spec: ServerSpec,
        request: Request,
        requested: Requested,
        send: Send,
        calls: PassingCalls,
        held: ServerFilter | None,
    ) -> None:
        upstream = self._client.build_request(
            request.method,
            spec.url,
            content=await request.body() or None,
            headers=_headers_for(spec, request.headers.items()),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        )
        started = False
        credentials = self._credentials_of(spec)
        auth = credentials.auth() if credentials is not None else None
        try:
            answer = await self._client.send(upstream, stream=True, auth=auth, follow_redirects=False)
            try:
                _require_usable(spec, answer)
                chunks: AsyncIterator[bytes] = answer.aiter_raw()
                if held is not None:
                    chunks = await held.filtered(requested, answer.status_code, answer.headers, chunks)
                started = True
                await _send_answer(answer, send, calls, chunks)
            finally:
                await answer.aclose()
        except (httpx2.HTTPError, ToolscriptError) as error:
            # What has begun cannot become an error any more: the stream ends, and the client asks again.
            if started:
                logger.warning("stream ended early", extra={"part": spec.name, "reason": type(error).__name__})
                raise
            if isinstance(error, ToolscriptError | httpx2.ConnectError | httpx2.ConnectTimeout):
                calls.end(Outcome.REFUSED, "UNAVAILABLE")
            ours = error if isinstance(error, ToolscriptError) else _unreachable(spec, error)
            await _error_response(ours)(request.scope, request.receive, send)


def _refused(spec: ServerSpec, requested: Requested, client: str, rules: RequireAllowed | None) -> Response | None:
    """Return the answer to a request with a call that a rule does not allow: none of its messages is sent."""
    if rules is None:
        return None
    try:
        with client_is(client):
            for _, tool in requested.called_tools:
                rules(spec.name, tool)
    except Forbidden as error:
        result = wire_result(failed(error), LATEST_PROTOCOL_VERSION)
        ids = [id_ for id_, _ in requested.called_tools if id_ is not None]
        return requested.answer([{"jsonrpc": "2.0", "id": id_, "result": result} for id_ in ids])
    return None


def _reachable(find: FindServer, name: str) -> ServerSpec:
    spec = find(name)
    if spec is None:
        raise NotFound(f"there is no server {name[:100]!r}", hint="`toolscript list-servers` lists them")
    if spec.transport is not Transport.HTTP:
        raise NotFound(f"{name} is not reached over HTTP", hint="its tools are at /mcp")
    if spec.include_tools or spec.exclude_tools:
        # A plain proxy would offer the tools that the user excluded.
        raise Forbidden(f"{name} has includeTools or excludeTools", hint="the tools that are left are at /mcp")
    return spec


def _headers_for(spec: ServerSpec, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the protocol headers of the client, without credentials and cookies, and the server's own."""
    kept = {name: value.strip() for name, value in headers if name in REQUEST_HEADERS or name.startswith("mcp-")}
    return {**kept, "accept-encoding": "identity", "user-agent": "toolscript", **spec.headers}


def _require_usable(spec: ServerSpec, answer: httpx2.Response) -> None:
    """Raise if the server rejected our credentials or redirects: the client must not see that as its own 401."""
    status = answer.status_code
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        hint = "put working `headers` in .toolscript.json"
        if status == HTTPStatus.UNAUTHORIZED and spec.may_sign_in:
            hint = f"{how_to_sign_in(spec.name)}, or {hint}"
        raise ServerRejected(f"{spec.name} refused our credentials", hint=hint)
    if 300 <= status < 400:
        raise ServerRejected(f"{spec.name} has moved", hint="put its new `url` in .toolscript.json")


async def _send_answer(
    answer: httpx2.Response, send: Send, calls: PassingCalls, chunks: AsyncIterator[bytes]
) -> None:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.multi_items()
        if name.lower() in RESPONSE_HEADERS or name.lower().startswith("mcp-")
    ]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    async for chunk in calls.watched(answer.headers, answer.status_code, chunks):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _unreachable(spec: ServerSpec, error: httpx2.HTTPError) -> ServerUnavailable:
    return ServerUnavailable(
        f"{spec.name} did not answer: {type(error).__name__}",
        hint="`toolscript list-servers` shows its state",
    )


def _error_response(error: ToolscriptError) -> JSONResponse:
    return JSONResponse(envelope_of(error), ERROR_TABLE[type(error)].http_status)
