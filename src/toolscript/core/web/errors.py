"""Who asks, told by headers alone, and whether its plan lets it ask once more.

The tenant of a request comes from here and from nowhere else: nothing in a path, a query or a body names one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from toolscript.errors import TooManyRequests, Unauthorized
from toolscript.model.tenancy import UNLIMITED, Budget, Caller, Plan, Stranger, Tenant
from toolscript.ports import Callers, RequestBudget

BYPASS, BYPASS_TENANT, USUAL_TENANT = "x-debug-bypass-auth", "x-debug-tenant", "debug"
WINDOW_SECONDS = 60
SEND_HINT = "send Authorization: Bearer <token>"
KEYS_HINT = "set TOOLSCRIPT_JWT_KEYS to the key set of whoever issues the tokens, and TOOLSCRIPT_JWT_ISSUER"

# Answers who calls, or refuses; what it sets on the response goes with every answer.
CallerOf = Callable[[Request, Response], Awaitable[Caller]]


def callers_of(
    callers: Callers | None,
    budget: RequestBudget,
    *,
    default_plan: Plan = UNLIMITED,
    debug_bypass: bool = False,
) -> CallerOf:
    entrance = Entrance(callers, budget, default_plan, debug_bypass)

    async def caller_of(request: Request, response: Response) -> Caller:
        return await entrance.admit(request, response)

    return caller_of


@dataclass(frozen=True)
class Entrance:
    """`debug_bypass`: whether a header may stand for a token. Where it may not, it is a header like any other."""

    callers: Callers | None
    budget: RequestBudget
    default_plan: Plan = UNLIMITED
    debug_bypass: bool = False

    def is_told(self, headers: Headers) -> bool:
        """Whether whoever asks says who it is, rightly or not."""
        return "authorization" in headers or self._bypassing(headers) is not None

    async def admit(self, request: Request, response: Response) -> Caller:
        caller = self._bypassing(request.headers) or await self._verified(request.headers)
        # For the log: whose request it was.
        request.state.tenant = caller.tenant.name
        await self.count(caller.tenant, caller.plan, request, response)
        return caller

    async def count(self, who: Tenant | Stranger, plan: Plan, request: Request, response: Response) -> None:
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

    def _bypassing(self, headers: Headers) -> Caller | None:
        if not self.debug_bypass or headers.getlist(BYPASS) != ["1"]:
            return None
        names = headers.getlist(BYPASS_TENANT) or [USUAL_TENANT]
        if len(names) > 1:
            raise Unauthorized("X-Debug-Tenant is there twice", hint="name one tenant")
        return Caller(Tenant(names[0]), self.default_plan)

    async def _verified(self, headers: Headers) -> Caller:
        if self.callers is None:
            raise Unauthorized("nobody's tokens are known here", hint=KEYS_HINT)
        token = _token(headers)
        try:
            return await self.callers.verify(token)
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
