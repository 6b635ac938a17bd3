"""Who is an administrator. Where a request comes from is no credential: it may have come through a proxy."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fastapi import Request, Response
from starlette.datastructures import Headers

from toolscript.errors import Forbidden, ToolscriptError, Unauthorized
from toolscript.model.tenancy import Scope
from toolscript.surfaces.http.challenges import require_scope
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.loopback import is_loopback_address, is_loopback_host, is_loopback_origin

READING = frozenset({"GET", "HEAD", "OPTIONS"})
WAYS = (
    "set TOOLSCRIPT_ADMIN_TOKEN, and send it as Authorization: Bearer <token>; or ask over the socket of "
    "`toolscript serve --socket PATH`; to try things out on this machine, set TOOLSCRIPT_ENVIRONMENT=development"
)
# A request that carries one of these was handed on: who sent it is somewhere else.
HANDED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

Check = Callable[[Request], Awaitable[None]]


@dataclass(frozen=True)
class AdminAccess:
    """The ways to be one: the token; the Unix socket, whose file admits nobody else; this machine in development.

    `development` counts only where no token is set. `socket` is the path of the file, empty: there is none.
    """

    token: str = field(default="", repr=False)
    development: bool = False
    socket: str = ""

    def admits(self, request: Request) -> bool:
        return self.refusal(request) is None

    def refusal(self, request: Request) -> ToolscriptError | None:
        if self._came_over_the_socket(request):
            return _handed_on(request)
        if self.token:
            return _with_token(request.headers, self.token)
        if not self.development:
            return Forbidden("no admin token is set here, so nobody may do this over the network", hint=WAYS)
        return _in_development(request)

    def _came_over_the_socket(self, request: Request) -> bool:
        """Told by the address it came to. That a client has none proves nothing: one that has left has none."""
        return bool(self.socket) and tuple(request.scope.get("server") or ()) == (self.socket, None)


def admins_only(admin: AdminAccess) -> Check:
    """A dependency for whole routers."""

    async def require_admin(request: Request) -> None:
        refused = admin.refusal(request)
        if refused is not None:
            raise refused

    return require_admin


def writers_only(admin: AdminAccess) -> Check:
    """The same, but what only reads passes."""
    require_admin = admins_only(admin)

    async def require_writer(request: Request) -> None:
        if request.method not in READING:
            await require_admin(request)

    return require_writer


def readers_only(visitor_of: VisitorOf, admin: AdminAccess) -> Callable[[Request, Response], Awaitable[None]]:
    """For a catalog that is not public: administrators, and tokens that have the scope."""

    async def require_reader(request: Request, response: Response) -> None:
        if not admin.admits(request):
            require_scope(await visitor_of(request, response), Scope.TOOLS_READ)

    return require_reader


def _with_token(headers: Headers, token: str) -> ToolscriptError | None:
    kind, _, shown = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(shown.strip().encode(), token.encode())
    if kind.lower() == "bearer" and same:
        return None
    return Unauthorized(
        "this wants the admin token",
        hint="send Authorization: Bearer <TOOLSCRIPT_ADMIN_TOKEN>, or ask over the socket of `serve --socket`",
    )


def _in_development(request: Request) -> ToolscriptError | None:
    """A web page can be made to call this machine from within; the names it calls by and from give it away."""
    hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
    if request.client is None or not is_loopback_address(request.client.host):
        return Forbidden("without an admin token only this machine may do this", hint=WAYS)
    if len(hosts) != 1 or not is_loopback_host(hosts[0]):
        return Forbidden(
            "without an admin token this is for 127.0.0.1 and localhost",
            hint=WAYS,
            details={"header": "Host"},
        )
    if not all(is_loopback_origin(origin) for origin in origins):
        return Forbidden("web pages of other machines may not do this", hint=WAYS, details={"header": "Origin"})
    return _handed_on(request)


def _handed_on(request: Request) -> ToolscriptError | None:
    if any(name in request.headers for name in HANDED_ON):
        return Forbidden("through a proxy this needs the admin token", hint=WAYS)
    return None
