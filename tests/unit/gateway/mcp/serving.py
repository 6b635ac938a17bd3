"""Serves routes on a free loopback port for as long as a test needs them."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from toolscript.core.mcp.endpoint import mcp_asgi
from toolscript.gateway.mcp.tools import create_mcp_server
from toolscript.gateway.model import McpGateway


@asynccontextmanager
async def serve_gateway(gateway: McpGateway) -> AsyncIterator[str]:
    """Return the address of a gateway's own endpoint."""
    app, opened = mcp_asgi(create_mcp_server(gateway, "1.2.3"))
    async with serve([Route("/mcp", app)], opened) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def serve(routes: Sequence[BaseRoute], *opened: AbstractAsyncContextManager[None]) -> AsyncIterator[str]:
    """The socket listens from the start, so that clients need not wait for the server."""
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(_listening())
        for one in opened:
            await stack.enter_async_context(one)
        server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=list(routes)), log_config=None, lifespan="off", timeout_graceful_shutdown=1
            )
        )
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(server.serve, [listening])
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True


def _listening() -> socket.socket:
    """With the protocol named, asyncio sends small packets at once; otherwise each answer took 40 ms."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.bind(("127.0.0.1", 0))
    opened.listen(128)
    return opened
