"""Who asks for documents is known before anything of the request is read."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from toolscript.model.tenancy import Caller

# Answers who calls, or refuses; what it sets on the response goes with every answer.
CallerOf = Callable[[Request, Response], Awaitable[Caller]]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]

OF_A_BODY = ("content-length", "content-type")

BEARER = HTTPBearer(
    auto_error=False, bearerFormat="JWT", description="A token of the tenant whose documents these are."
)


def for_callers(caller_of: CallerOf) -> type[APIRoute]:
    """Routes that only callers come to. The framework would read and parse a stranger's body first."""

    class RouteForCallers(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def first_the_caller(request: Request) -> Response:
                told = Response()
                request.state.caller = await caller_of(request, told)
                answer = await handle(request)
                answer.headers.update({name: told.headers[name] for name in told.headers if name not in OF_A_BODY})
                return answer

            return first_the_caller

    return RouteForCallers


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


CallerHere = Annotated[Caller, Depends(_caller)]
