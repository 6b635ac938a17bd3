"""Authentication and authorization of requests: tenants, the public and administrators.

The tenant of a request comes from here and from nowhere else: nothing in a path, a query or a body names one.
"""

import hmac
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers

from toolscript.core.auth.model import (
    UNLIMITED,
    Anonymous,
    Budget,
    Identity,
    Plan,
    Principal,
    RequestBudget,
    Scope,
    Tenant,
    TokenVerifier,
)
from toolscript.core.errors import Forbidden, ToolscriptError, TooManyRequests, Unauthorized
from toolscript.core.web.errors import SEND_HINT, require_scope
from toolscript.core.web.hosts import is_loopback_address, is_loopback_host, is_loopback_origin

BYPASS, BYPASS_TENANT, DEFAULT_TENANT = "x-debug-bypass-auth", "x-debug-tenant", "debug"
WINDOW_SECONDS = 60
KEYS_HINT = "set TOOLSCRIPT_JWT_KEYS to the key set of whoever issues the tokens, and TOOLSCRIPT_JWT_ISSUER"

# Answers who calls, or refuses; what it sets on the response goes with every answer.
Authenticate = Callable[[Request, Response], Awaitable[Principal]]

PUBLIC = "public"
# What one customer of a network has: within it, addresses can be had for nothing.
ONE_HOUSEHOLD = 64
UNKNOWN_ADDRESS = "unknown"

Identify = Callable[[Request, Response], Awaitable[Identity]]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
RouteCheck = Callable[[Request, Response], Awaitable[None]]

OF_A_BODY = ("content-length", "content-type")

BEARER = HTTPBearer(
    auto_error=False, bearerFormat="JWT", description="A token of the tenant whose documents these are."
)

READING = frozenset({"GET", "HEAD", "OPTIONS"})
WAYS = (
    "set TOOLSCRIPT_ADMIN_TOKEN, and send it as Authorization: Bearer <token>; or ask over the socket of "
    "`toolscript serve --socket PATH`; to try things out on this machine, set TOOLSCRIPT_ENVIRONMENT=development"
)
# A request that carries one of these was handed on: who sent it is somewhere else.
HANDED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

AdminCheck = Callable[[Request], Awaitable[None]]


def authenticator_of(
    verifier: TokenVerifier | None,
    budget: RequestBudget,
    *,
    default_plan: Plan = UNLIMITED,
    debug_bypass: bool = False,
) -> Authenticate:
    authenticator = Authenticator(verifier, budget, default_plan, debug_bypass)

    async def authenticate(request: Request, response: Response) -> Principal:
        return await authenticator.admit(request, response)

    return authenticate


@dataclass(frozen=True)
class Authenticator:
    """`debug_bypass`: whether a header may stand for a token. Where it may not, it is a header like any other."""

    verifier: TokenVerifier | None
    budget: RequestBudget
    default_plan: Plan = UNLIMITED
    debug_bypass: bool = False

    def is_told(self, headers: Headers) -> bool:
        """Whether whoever asks says who it is, rightly or not."""
        return "authorization" in headers or self._bypassing(headers) is not None

    async def admit(self, request: Request, response: Response) -> Principal:
        principal = self._bypassing(request.headers) or await self._verified(request.headers)
        # For the log: whose request it was.
        request.state.tenant = principal.tenant.name
        await self.count(principal.tenant, principal.plan, request, response)
        return principal

    async def count(self, who: Tenant | Anonymous, plan: Plan, request: Request, response: Response) -> None:
        left = await self.budget.take(who, plan)
        if left.limit is None:
            return
        told = _rate_headers(left)
        response.headers.update(told)
        # For answers that an error becomes: they are made elsewhere.
        request.state.rate_headers = told
        if not left.allowed:
            raise TooManyRequests(
                f"the plan `{plan.name}` allows {left.limit} requests a minute, and they are spent",
                hint=f"try again in {left.resets_in_seconds} seconds",
                details={"retry_after_seconds": left.resets_in_seconds},
            )

    def _bypassing(self, headers: Headers) -> Principal | None:
        if not self.debug_bypass or headers.getlist(BYPASS) != ["1"]:
            return None
        names = headers.getlist(BYPASS_TENANT) or [DEFAULT_TENANT]
        if len(names) > 1:
            raise Unauthorized("X-Debug-Tenant is there twice", hint="name one tenant")
        return Principal(Tenant(names[0]), self.default_plan)

    async def _verified(self, headers: Headers) -> Principal:
        if self.verifier is None:
            raise Unauthorized("nobody's tokens are known here", hint=KEYS_HINT)
        token = _token(headers)
        try:
            return await self.verifier.verify(token)
        except Unauthorized as error:
            error.details["error"] = "invalid_token"
            raise


def _token(headers: Headers) -> str:
    shown = headers.getlist("authorization")
    if len(shown) > 1:
        raise Unauthorized(
            "there are two Authorization headers", hint="send one", details={"error": "invalid_request"}
        )
    kind, _, token = (shown[0] if shown else "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized("a token is needed", hint=SEND_HINT)
    return token.strip()


def _rate_headers(left: Budget) -> dict[str, str]:
    """As most clients know them, and as the draft of a standard has them since its eighth version."""
    return {
        "RateLimit-Limit": f"{left.limit}",
        "RateLimit-Remaining": f"{left.remaining}",
        "RateLimit-Reset": f"{left.resets_in_seconds}",
        "RateLimit-Policy": f'"minute";q={left.limit};w={WINDOW_SECONDS}',
        "RateLimit": f'"minute";r={left.remaining};t={left.resets_in_seconds}',
    }


def optional_authenticator_of(
    verifier: TokenVerifier | None,
    budget: RequestBudget,
    *,
    public_scopes: frozenset[Scope],
    public_requests_per_minute: int = 0,
    default_plan: Plan = UNLIMITED,
    debug_bypass: bool = False,
) -> Identify:
    """Where the public may do nothing, everybody has to show a token. No requests a minute: no limit."""
    authenticator = Authenticator(verifier, budget, default_plan, debug_bypass)
    public_plan = Plan(PUBLIC, requests_per_minute=public_requests_per_minute or None)

    async def identify(request: Request, response: Response) -> Identity:
        if not public_scopes or authenticator.is_told(request.headers):
            principal = await authenticator.admit(request, response)
            return Identity(public_scopes.union(filter(principal.may, Scope)), principal)
        await authenticator.count(Anonymous(address_of(request)), public_plan, request, response)
        return Identity(public_scopes)

    return identify


def address_of(request: Request) -> str:
    """The household that a request comes from; behind a proxy, what the server believes of its headers."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return UNKNOWN_ADDRESS
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, ONE_HOUSEHOLD), strict=False))


def require_principal(authenticate: Authenticate, scope: Scope) -> type[APIRoute]:
    """Routes that only callers come to, and of those the ones whose token has this scope."""

    async def check(request: Request, told: Response) -> None:
        principal = await authenticate(request, told)
        require_scope(principal, scope)
        request.state.principal = principal

    return _checked_first(check)


def _nobody(_: Request) -> bool:
    return False


def require_identity(
    identify: Identify, scope: Scope, is_exempt: Callable[[Request], bool] = _nobody
) -> type[APIRoute]:
    """Routes for everybody who has this scope: also for the public, where the installation gives it that.

    Who `is_exempt` is not asked who it is, nor counted.
    """

    async def check(request: Request, told: Response) -> None:
        if is_exempt(request):
            return
        require_scope(await identify(request, told), scope)

    return _checked_first(check)


def _checked_first(check: RouteCheck) -> type[APIRoute]:
    """The framework would read and parse a stranger's body first."""

    class CheckedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def after_the_check(request: Request) -> Response:
                response = Response()
                await check(request, response)
                answer = await handle(request)
                answer.headers.update(
                    {name: response.headers[name] for name in response.headers if name not in OF_A_BODY}
                )
                return answer

            return after_the_check

    return CheckedRoute


async def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


PrincipalHere = Annotated[Principal, Depends(_principal)]


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


def admins_only(admin: AdminAccess) -> AdminCheck:
    """A dependency for whole routers."""

    async def require_admin(request: Request) -> None:
        refused = admin.refusal(request)
        if refused is not None:
            raise refused

    return require_admin


def writers_only(admin: AdminAccess) -> AdminCheck:
    """The same, but what only reads passes."""
    require_admin = admins_only(admin)

    async def require_writer(request: Request) -> None:
        if request.method not in READING:
            await require_admin(request)

    return require_writer


def readers_only(identify: Identify, admin: AdminAccess) -> Callable[[Request, Response], Awaitable[None]]:
    """For a catalog that is not public: administrators, and tokens that have the scope."""

    async def require_reader(request: Request, response: Response) -> None:
        if not admin.admits(request):
            require_scope(await identify(request, response), Scope.TOOLS_READ)

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
