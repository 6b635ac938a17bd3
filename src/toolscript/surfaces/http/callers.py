"""Who asks, told by headers alone, and whether its plan lets it ask once more.

The tenant of a request comes from here and from nowhere else: nothing in a path, a query or a body names one.
"""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from toolscript.errors import TooManyRequests, Unauthorized
from toolscript.model.tenancy import UNLIMITED, Budget, Caller, Plan, Tenant
from toolscript.ports import Callers, RequestBudget
from toolscript.surfaces.http.document_callers import CallerOf

BYPASS, BYPASS_TENANT, USUAL_TENANT = "x-debug-bypass-auth", "x-debug-tenant", "debug"
WINDOW_SECONDS = 60
SEND_HINT = "send Authorization: Bearer <token>"
KEYS_HINT = "set TOOLSCRIPT_JWT_KEYS to the key set of whoever issues the tokens, and TOOLSCRIPT_JWT_ISSUER"


def callers_of(
    callers: Callers | None,
    budget: RequestBudget,
    *,
    default_plan: Plan = UNLIMITED,
    debug_bypass: bool = False,
) -> CallerOf:
    """`debug_bypass`: whether a header may stand for a token. Where it may not, it is a header like any other."""

    async def caller_of(request: Request, response: Response) -> Caller:
        caller = _bypassing(request.headers, default_plan) if debug_bypass else None
        if caller is None:
            caller = await _verified(callers, request.headers)
        await _require_budget(budget, caller, request, response)
        return caller

    return caller_of


def _bypassing(headers: Headers, plan: Plan) -> Caller | None:
    if headers.getlist(BYPASS) != ["1"]:
        return None
    names = headers.getlist(BYPASS_TENANT) or [USUAL_TENANT]
    if len(names) > 1:
        raise Unauthorized("X-Debug-Tenant is there twice", hint="name one tenant")
    return Caller(Tenant(names[0]), plan)


async def _verified(callers: Callers | None, headers: Headers) -> Caller:
    if callers is None:
        raise Unauthorized("nobody's tokens are known here", hint=KEYS_HINT)
    token = _token(headers)
    try:
        return await callers.verify(token)
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


async def _require_budget(budget: RequestBudget, caller: Caller, request: Request, response: Response) -> None:
    left = await budget.take(caller.tenant, caller.plan)
    if left.limit is None:
        return
    told = _rate_headers(left)
    response.headers.update(told)
    # For answers that an error becomes: they are made elsewhere.
    request.state.rate_headers = told
    if not left.allowed:
        raise TooManyRequests(
            f"the plan `{caller.plan.name}` allows {left.limit} requests a minute, and they are spent",
            hint=f"try again in {left.resets_in_seconds} seconds",
            details={"retry_after_seconds": left.resets_in_seconds},
        )


def _rate_headers(left: Budget) -> dict[str, str]:
    """As most clients know them, and as the draft of a standard has them since its eighth version."""
    return {
        "RateLimit-Limit": f"{left.limit}",
        "RateLimit-Remaining": f"{left.remaining}",
        "RateLimit-Reset": f"{left.resets_in_seconds}",
        "RateLimit-Policy": f'"minute";q={left.limit};w={WINDOW_SECONDS}',
        "RateLimit": f'"minute";r={left.remaining};t={left.resets_in_seconds}',
    }
