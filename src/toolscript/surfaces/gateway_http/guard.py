"""Who may ask: this machine, no web page of a stranger, and whoever shows the token when there is one."""

import hmac

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.errors import Forbidden, ToolscriptError, Unauthorized
from toolscript.surfaces.error_table import ERROR_TABLE, envelope_of
from toolscript.surfaces.loopback import is_loopback_host, is_loopback_origin


class Guard:
    """A page in a browser can be made to call this address; the names it calls by and from give it away."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refused := self._refusal(scope)):
            status = ERROR_TABLE[type(refused)].http_status
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await JSONResponse(envelope_of(refused), status, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ToolscriptError | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not is_loopback_host(hosts[0]):
            return Forbidden("this gateway answers to 127.0.0.1 and localhost only", details={"header": "Host"})
        if not all(is_loopback_origin(origin) for origin in origins):
            return Forbidden("web pages of other machines may not ask this gateway", details={"header": "Origin"})
        if self._token and scope["path"] != "/livez" and not self._shows_token(headers):
            return Unauthorized(
                "this gateway wants a token", hint="send Authorization: Bearer <TOOLSCRIPT_GATEWAY_TOKEN>"
            )
        return None

    def _shows_token(self, headers: Headers) -> bool:
        kind, _, shown = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(shown.strip().encode(), self._token.encode())
        return kind.lower() == "bearer" and same
