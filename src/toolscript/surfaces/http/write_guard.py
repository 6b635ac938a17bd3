"""Who may write: whoever shows the token; where none is set, this machine and nobody else."""

import hmac
from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.datastructures import Headers

from toolscript.errors import Forbidden, ToolscriptError, Unauthorized
from toolscript.model.tenancy import Scope
from toolscript.surfaces.http.challenges import require_scope
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.loopback import is_loopback_address, is_loopback_host, is_loopback_origin

READING = frozenset({"GET", "HEAD", "OPTIONS"})
TOKEN_HINT = "set TOOLSCRIPT_ADMIN_TOKEN, and send it as Authorization: Bearer <token>"  # noqa: S105 - no secret
# A request that carries one of these was handed on: who sent it is somewhere else.
HANDED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def writers_only(token: str) -> Callable[[Request], Awaitable[None]]:
    """A dependency for whole routers: what only reads passes."""

    async def require_writer(request: Request) -> None:
        if request.method in READING:
            return
        refused = _without_token(request) if not token else _with_token(request.headers, token)
        if refused is not None:
            raise refused

    return require_writer


def readers_only(visitor_of: VisitorOf, token: str) -> Callable[[Request, Response], Awaitable[None]]:
    """For a catalog that is not public: whoever shows the token, this machine, and tokens that have the scope."""

    async def require_reader(request: Request, response: Response) -> None:
        if not is_admin_or_here(request, token):
            require_scope(await visitor_of(request, response), Scope.TOOLS_READ)

    return require_reader


def is_admin_or_here(request: Request, token: str) -> bool:
    """Whether the token is shown, or this machine asks by itself."""
    shown = bool(token) and _with_token(request.headers, token) is None
    return shown or _without_token(request) is None


def _with_token(headers: Headers, token: str) -> ToolscriptError | None:
    kind, _, shown = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(shown.strip().encode(), token.encode())
    if kind.lower() == "bearer" and same:
        return None
    return Unauthorized("writing wants the token", hint="send Authorization: Bearer <TOOLSCRIPT_ADMIN_TOKEN>")


def _without_token(request: Request) -> ToolscriptError | None:
    """A web page can be made to call this machine from within; the names it calls by and from give it away."""
    hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
    if request.client is None or not is_loopback_address(request.client.host):
        return Forbidden("without a token only this machine may write", hint=TOKEN_HINT)
    if any(name in request.headers for name in HANDED_ON):
        return Forbidden("without a token nothing may be written through a proxy", hint=TOKEN_HINT)
    if len(hosts) != 1 or not is_loopback_host(hosts[0]):
        details = {"header": "Host"}
        return Forbidden(
            "without a token writes are for 127.0.0.1 and localhost", hint=TOKEN_HINT, details=details
        )
    if not all(is_loopback_origin(origin) for origin in origins):
        details = {"header": "Origin"}
        return Forbidden("web pages of other machines may not write", hint=TOKEN_HINT, details=details)
    return None
