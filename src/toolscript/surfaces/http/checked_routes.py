"""Who asks is known before anything of the request is read, and whether it may."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from toolscript.model.tenancy import Caller, Scope
from toolscript.surfaces.http.callers import CallerOf
from toolscript.surfaces.http.challenges import require_scope
from toolscript.surfaces.http.visitors import VisitorOf

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Check = Callable[[Request, Response], Awaitable[None]]

OF_A_BODY = ("content-length", "content-type")

BEARER = HTTPBearer(
    auto_error=False, bearerFormat="JWT", description="A token of the tenant whose documents these are."
)


def for_callers(caller_of: CallerOf, scope: Scope) -> type[APIRoute]:
    """Routes that only callers come to, and of those the ones whose token has this scope."""

    async def check(request: Request, told: Response) -> None:
        caller = await caller_of(request, told)
        require_scope(caller, scope)
        request.state.caller = caller

    return _checked_first(check)


def _nobody(_: Request) -> bool:
    return False


def for_visitors(
    visitor_of: VisitorOf, scope: Scope, is_exempt: Callable[[Request], bool] = _nobody
) -> type[APIRoute]:
    """Routes for everybody who has this scope: also for the public, where the installation gives it that.

    Who `is_exempt` is not asked who it is, nor counted.
    """

    async def check(request: Request, told: Response) -> None:
        if is_exempt(request):
            return
        require_scope(await visitor_of(request, told), scope)

    return _checked_first(check)


def _checked_first(check: Check) -> type[APIRoute]:
    """The framework would read and parse a stranger's body first."""

    class CheckedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def after_the_check(request: Request) -> Response:
                told = Response()
                await check(request, told)
                answer = await handle(request)
                answer.headers.update({name: told.headers[name] for name in told.headers if name not in OF_A_BODY})
                return answer

            return after_the_check

    return CheckedRoute


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CallerHere = Annotated[Caller, Depends(_caller)]
