"""Lets a request through to the tools once it is known who asks, from where, and that it may ask once more.

Refusals are said twice: as HTTP says them, with status and headers, and as an error of the protocol in the body.
Of the SDKs' clients some read the one and some the other. The code of the error is the status: codes of one's own
are to be outside of the range that JSON-RPC reserves (MCP 2026-07-28, Error Codes).

A tool that needs a scope:
- Whoever shows a token that lacks the scope is told which one is missing, with status 403 and
  `error="insufficient_scope"`: the authorization of MCP asks for that, so that a client can get a better token.
- The public is told what it would be told of a tool that does not exist. No client calls what is not listed, so a
  challenge would reach nobody but those who try names; an installation that wants everybody to sign in gives the
  public no scope, and then the first request is answered with 401.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.errors import ToolscriptError, Unauthorized
from toolscript.model.tenancy import Visitor
from toolscript.surfaces.error_table import ERROR_TABLE, envelope, envelope_of
from toolscript.surfaces.http.challenges import refusal_headers, require_scope
from toolscript.surfaces.http.protected_resource import ProtectedResource
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.mcp_service.parts import ERROR, OK, REFUSED, ObserveMcp
from toolscript.surfaces.mcp_service.tools import ServiceTools

BODY_SECONDS = 10.0
LATE = 408
OUR_FAULT = 500
STRANGE_ADDRESS = "this service is not known by the address it was asked by, or that page may not ask it"
ADDRESS_HINT = "TOOLSCRIPT_PUBLIC_URL says by which address clients know the service"


@dataclass(frozen=True)
class Guard:
    """`resource` None: nobody's tokens are known here, and none are asked for."""

    app: ASGIApp
    tools: ServiceTools
    visitor_of: VisitorOf
    security: TransportSecuritySettings
    resource: ProtectedResource | None = None
    observe: ObserveMcp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, began = Request(scope, receive), time.perf_counter()
        request.state.outcome = OK
        refusal = await self._refusal(request)
        body = b"" if refusal is not None else await request.body()
        try:
            if refusal is not None:
                request.state.outcome = ERROR if refusal.status_code >= OUR_FAULT else REFUSED
                await refusal(scope, receive, send)
            else:
                await self.app(scope, _again(body, receive), _telling(request, send))
        except BaseException:
            request.state.outcome = ERROR
            raise
        finally:
            if self.observe is not None:
                self.observe(*_asked_for(body), request.state.outcome, time.perf_counter() - began)

    async def _refusal(self, request: Request) -> Response | None:
        strange = await TransportSecurityMiddleware(self.security).validate_request(request)
        if strange is not None:
            data = envelope("FORBIDDEN", STRANGE_ADDRESS, {"hint": ADDRESS_HINT})
            return _said(strange.status_code, f"{STRANGE_ADDRESS}. {ADDRESS_HINT}", data)
        try:
            visitor = await self.visitor_of(request, Response())
            with anyio.fail_after(BODY_SECONDS):
                self._require_scope(await request.body(), visitor)
        except TimeoutError:
            return _said(LATE, f"the request did not arrive within {BODY_SECONDS:.0f} seconds")
        except ToolscriptError as error:
            return await self._refused(request, error)
        request.state.visitor = visitor
        return None

    def _require_scope(self, body: bytes, visitor: Visitor) -> None:
        if visitor.caller is None or self.tools.all_are_for(visitor):
            return
        asked = _message(body)
        params = asked.get("params")
        if asked.get("method") == "tools/call" and isinstance(params, Mapping):
            lacking = self.tools.scope_lacking(params.get("name"), visitor)
            if lacking is not None:
                require_scope(visitor, lacking)

    async def _refused(self, request: Request, error: ToolscriptError) -> Response:
        status = ERROR_TABLE[type(error)].http_status
        # Nothing is read of those who are not known.
        number = None if isinstance(error, Unauthorized) else await _id(request)
        rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
        asking = {} if self.resource is None else self._challenge(request, self.resource)
        headers = {**rates, **refusal_headers(status, error, **asking)}
        said = f"{error.message}. {error.hint}" if error.hint else error.message
        return _said(status, said, envelope_of(error), number, headers)

    def _challenge(self, request: Request, resource: ProtectedResource) -> dict[str, str]:
        return {"resource_metadata": resource.metadata_url(request), "scope": " ".join(resource.scopes)}


def _said(
    status: int,
    message: str,
    data: object = None,
    number: str | int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    error = {"code": status, "message": message, **({} if data is None else {"data": data})}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, status, headers)


async def _id(request: Request) -> str | int | None:
    """What the request calls itself, where that can be told."""
    try:
        with anyio.fail_after(BODY_SECONDS):
            number = _message(await request.body()).get("id")
    except TimeoutError:
        return None
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None


def _message(body: bytes) -> Mapping[str, object]:
    """Nothing, where it is none: what is wrong with it is said by who reads it next."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, Mapping) else {}


def _asked_for(body: bytes) -> tuple[str, str]:
    """Which method, and which tool where one is called."""
    asked = _message(body)
    method, params = asked.get("method"), asked.get("params")
    name = params.get("name") if isinstance(params, Mapping) else None
    return method if isinstance(method, str) else "", name if isinstance(name, str) else ""


def _again(body: bytes, receive: Receive) -> Receive:
    """What has been read, once more, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def _telling(request: Request, send: Send) -> Send:
    """Every answer says what is left of the budget."""
    rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
    told = [(name.lower().encode(), value.encode()) for name, value in rates.items()]

    async def send_told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *told]}
        await send(message)

    return send_told
