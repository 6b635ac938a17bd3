"""Authentication and authorization of requests: tenants, anonymous clients and administrators.

This module alone decides the tenant of a request: no path, query or body names one.
"""

import hmac
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
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
from toolscript.core.web.admin_guesses import AdminGuesses
from toolscript.core.web.clients import Client, counts_as, network_of
from toolscript.core.web.errors import SEND_HINT, require_scope
from toolscript.core.web.hosts import is_loopback_address, is_loopback_host, is_loopback_origin

BYPASS, BYPASS_TENANT, DEFAULT_TENANT = "x-debug-bypass-auth", "x-debug-tenant", "debug"
WINDOW_SECONDS = 60
KEYS_HINT = "set TOOLSCRIPT_JWT_KEYS to the key set of the token issuer, and TOOLSCRIPT_JWT_ISSUER"

# Returns the principal or raises. The headers it sets on the response are part of every response.
Authenticate = Callable[[Request, Response], Awaitable[Principal]]

PUBLIC = "public"
JWT_DOTS = 2

Identify = Callable[[Request, Response], Awaitable[Identity]]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
RouteCheck = Callable[[Request, Response], Awaitable[None]]

BODY_HEADERS = ("content-length", "content-type")

BEARER = HTTPBearer(
    auto_error=False, bearerFormat="JWT", description="A token of the tenant whose documents these are."
)

READING = frozenset({"GET", "HEAD", "OPTIONS"})
ADMIN_HINT = (
    "set TOOLSCRIPT_ADMIN_TOKEN, and send it as Authorization: Bearer <token>; or connect over the socket of "
    "`toolscript serve --socket PATH`; to try things out on this machine, set TOOLSCRIPT_ENVIRONMENT=development"
)
# A proxy forwarded a request that has one of these headers: its client is elsewhere.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

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
    """Required authentication. `debug_bypass`: a debug header may replace the token; otherwise it is ignored."""

    verifier: TokenVerifier | None
    budget: RequestBudget
    default_plan: Plan = UNLIMITED
    debug_bypass: bool = False

    def has_credentials(self, headers: Headers) -> bool:
        """Return whether the request has credentials, valid or not."""
        return "authorization" in headers or self._bypassing(headers) is not None

    async def admit(self, request: Request, response: Response) -> Principal:
        principal = self._bypassing(request.headers) or await self._verified(request.headers)
        # For the request log.
        request.state.tenant = principal.tenant.name
        counts_as(request, Client(f"tenant {principal.tenant.name}", principal.plan.concurrency), has_token=True)
        await self.count(principal.tenant, principal.plan, request, response)
        return principal

    async def count(self, client: Tenant | Anonymous, plan: Plan, request: Request, response: Response) -> None:
        left = await self.budget.take(client, plan)
        if left.limit is None:
            return
        headers = _rate_headers(left)
        response.headers.update(headers)
        # For error responses, which the exception handlers build.
        request.state.rate_headers = headers
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
            raise Unauthorized("X-Debug-Tenant is set twice", hint="name one tenant")
        return Principal(Tenant(names[0]), self.default_plan)

    async def _verified(self, headers: Headers) -> Principal:
        if self.verifier is None:
            raise Unauthorized("no keys are configured to verify tokens", hint=KEYS_HINT)
        token = _token(headers)
        try:
            return await self.verifier.verify(token)
        except Unauthorized as error:
            error.details["error"] = "invalid_token"
            raise


def _token(headers: Headers) -> str:
    values = headers.getlist("authorization")
    if len(values) > 1:
        raise Unauthorized(
            "there are two Authorization headers", hint="send one", details={"error": "invalid_request"}
        )
    kind, _, token = (values[0] if values else "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized("a token is needed", hint=SEND_HINT)
    return token.strip()


def _rate_headers(left: Budget) -> dict[str, str]:
    """Return the common RateLimit-* headers, and those of the IETF draft since version 8."""
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
    """Optional authentication: a token resolves to its tenant, no token is the anonymous principal.

    Without public scopes a token is required. `public_requests_per_minute` 0: no limit.
    """
    authenticator = Authenticator(verifier, budget, default_plan, debug_bypass)
    public_plan = Plan(PUBLIC, requests_per_minute=public_requests_per_minute or None)

    async def identify(request: Request, response: Response) -> Identity:
        if not public_scopes or authenticator.has_credentials(request.headers):
            principal = await authenticator.admit(request, response)
            scopes = public_scopes.union(filter(principal.may, Scope))
            return Identity(scopes, principal, principal.namespaces)
        address = address_of(request)
        counts_as(request, Client(address))
        await authenticator.count(Anonymous(address), public_plan, request, response)
        return Identity(public_scopes)

    return identify


def address_of(request: Request) -> str:
    """Return the client's address, for IPv6 its network; behind a trusted proxy, the forwarded address."""
    return network_of(request.client.host if request.client else "")


def require_principal(authenticate: Authenticate, scope: Scope) -> type[APIRoute]:
    """Return a route class that requires a token with this scope."""

    async def check(request: Request, response: Response) -> None:
        principal = await authenticate(request, response)
        require_scope(principal, scope)
        request.state.principal = principal

    return check_first(check)


def _never_exempt(_: Request) -> bool:
    return False


def require_identity(
    identify: Identify, scope: Scope, is_exempt: Callable[[Request], bool] = _never_exempt
) -> type[APIRoute]:
    """Return a route class for clients with this scope; anonymous clients may have it by configuration.

    Requests that are exempt are neither authenticated nor counted.
    """

    async def check(request: Request, response: Response) -> None:
        if is_exempt(request):
            return
        require_scope(await identify(request, response), scope)

    return check_first(check)


def check_first(check: RouteCheck) -> type[APIRoute]:
    """Return a route class that checks before FastAPI reads and parses the body."""

    class CheckedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def check_then_handle(request: Request) -> Response:
                response = Response()
                await check(request, response)
                answer = await handle(request)
                answer.headers.update(
                    {name: response.headers[name] for name in response.headers if name not in BODY_HEADERS}
                )
                return answer

            return check_then_handle

    return CheckedRoute


async def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


CurrentPrincipal = Annotated[Principal, Depends(_principal)]


@dataclass(frozen=True)
class AdminAccess:
    """Access for administrators: by token, by a Unix socket with file permissions, or locally in development.

    `development` applies only if no token is set. `socket` is the path of the socket, empty for none.
    """

    token: str = field(default="", repr=False)
    development: bool = False
    socket: str = ""
    guesses: AdminGuesses = field(default_factory=AdminGuesses, compare=False, repr=False)

    async def note_wrong(self, request: Request) -> None:
        """Note a refused request whose token is no tenant's: it was meant to be, or guessed as, that of here."""
        value = request.headers.get("authorization", "")
        if self.token and value and value.count(".") != JWT_DOTS:
            await self.guesses.note(address_of(request))

    def admits(self, request: Request) -> bool:
        return self.refusal(request) is None

    def is_by_address(self, request: Request) -> bool:
        """Return whether an administrator is recognized by the address alone, as in development."""
        return self.development and not self.token and not self._is_socket_request(request)

    def refusal(self, request: Request) -> ToolscriptError | None:
        if self._is_socket_request(request):
            return _check_not_proxied(request)
        if self.token:
            return _check_token(request.headers, self.token)
        if not self.development:
            return Forbidden("no admin token is set, so this is not allowed over the network", hint=ADMIN_HINT)
        return _check_development(request)

    def _is_socket_request(self, request: Request) -> bool:
        """Compare the server address; a missing client address proves nothing: a disconnected client has none."""
        return bool(self.socket) and tuple(request.scope.get("server") or ()) == (self.socket, None)


def admins_only(admin: AdminAccess) -> AdminCheck:
    """Return a router dependency that admits only administrators."""

    async def require_admin(request: Request) -> None:
        error = admin.refusal(request)
        if error is not None:
            await admin.note_wrong(request)
            raise error

    return require_admin


def _check_token(headers: Headers, token: str) -> ToolscriptError | None:
    kind, _, value = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(value.strip().encode(), token.encode())
    if kind.lower() == "bearer" and same:
        return None
    return Unauthorized(
        "this needs the admin token",
        hint="send Authorization: Bearer <TOOLSCRIPT_ADMIN_TOKEN>, or connect over the socket of `serve --socket`",
    )


def _check_development(request: Request) -> ToolscriptError | None:
    """Reject requests of web pages, which a browser on this machine could send; Host and Origin reveal them."""
    hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
    if request.client is None or not is_loopback_address(request.client.host):
        return Forbidden("without an admin token only this machine may do this", hint=ADMIN_HINT)
    if len(hosts) != 1 or not is_loopback_host(hosts[0]):
        return Forbidden(
            "without an admin token this is for 127.0.0.1 and localhost",
            hint=ADMIN_HINT,
            details={"header": "Host"},
        )
    if not all(is_loopback_origin(origin) for origin in origins):
        return Forbidden(
            "web pages of other machines may not do this", hint=ADMIN_HINT, details={"header": "Origin"}
        )
    return _check_not_proxied(request)


def _check_not_proxied(request: Request) -> ToolscriptError | None:
    if any(name in request.headers for name in PROXY_HEADERS):
        return Forbidden("through a proxy this needs the admin token", hint=ADMIN_HINT)
    return None
