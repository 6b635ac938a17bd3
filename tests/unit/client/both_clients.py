"""A server that answers anything, and a client of each kind to ask it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolscript.client.clients import AsyncClient, Client

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

# Runs an action with a client of one kind; the action calls a method of it, or exhausts a list.
Ask = Callable[..., Any]


def other_server(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status, headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=METHODS)])


@asynccontextmanager
async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Serve connections with a function, and wait for it to end with each of them."""
    handling: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        handling.add(task)
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async with await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 24) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*handling, return_exceptions=True)


async def ask_sync(
    url: str, path: str, *arguments: Any, options: dict[str, Any] | None = None, **more: Any
) -> Any:
    """Call `path`, such as `tools.search`, of a `Client` in a thread; return its result, of a list its entries."""

    def run() -> Any:
        with Client(url, **{"retries": 0, **(options or {})}) as client:
            resource, _, method = path.partition(".")
            result = getattr(getattr(client, resource), method)(*arguments, **more)
            return list(result) if hasattr(result, "pages") else result

    return await asyncio.to_thread(run)


async def ask_async(
    url: str, path: str, *arguments: Any, options: dict[str, Any] | None = None, **more: Any
) -> Any:
    async with AsyncClient(url, **{"retries": 0, **(options or {})}) as client:
        resource, _, method = path.partition(".")
        result = getattr(getattr(client, resource), method)(*arguments, **more)
        if hasattr(result, "pages"):
            return [entry async for entry in result]
        return await result
