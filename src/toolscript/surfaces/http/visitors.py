"""Who asks where nobody has to be known: with a token on its tenant's behalf, without one as the public.

A token that is wrong is refused here as well. Whoever shows one wants more than the public has, and has to be told
that it does not get it.
"""

from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.requests import Request
from starlette.responses import Response

from toolscript.model.tenancy import UNLIMITED, Caller, Plan, Scope, Stranger, Visitor
from toolscript.ports import Callers, RequestBudget
from toolscript.surfaces.http.callers import Entrance

PUBLIC = "public"
# What one customer of a network has: within it, addresses can be had for nothing.
ONE_HOUSEHOLD = 64
UNKNOWN_ADDRESS = "unknown"

VisitorOf = Callable[[Request, Response], Awaitable[Visitor]]


def visitors_of(
    callers: Callers | None,
    budget: RequestBudget,
    *,
    public_scopes: frozenset[Scope],
    public_requests_per_minute: int = 0,
    default_plan: Plan = UNLIMITED,
    debug_bypass: bool = False,
) -> VisitorOf:
    """Where the public may do nothing, everybody has to show a token. No requests a minute: no limit."""
    entrance = Entrance(callers, budget, default_plan, debug_bypass)
    public_plan = Plan(PUBLIC, requests_per_minute=public_requests_per_minute or None)

    async def visitor_of(request: Request, response: Response) -> Visitor:
        if not public_scopes or entrance.is_told(request.headers):
            caller = await entrance.admit(request, response)
            return Visitor(public_scopes | _granted(caller), caller)
        await entrance.count(Stranger(address_of(request)), public_plan, request, response)
        return Visitor(public_scopes)

    return visitor_of


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


def _granted(caller: Caller) -> frozenset[Scope]:
    return frozenset(scope for scope in Scope if caller.may(scope))
