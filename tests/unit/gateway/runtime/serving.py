"""A gateway's HTTP API on a free port, with a client."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from toolscript.gateway.activity import ActivityLog
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.http import create_gateway_app
from toolscript.gateway.model import Gateway


def open_app(
    gateway: Gateway,
    *,
    limit: int = 3,
    threshold: float = 0.0,
    token: str = "",
    activity: ActivityLog | None = None,
) -> Starlette:
    """Without a token every client counts as the gateway's user."""
    return create_gateway_app(
        gateway,
        limit=limit,
        threshold=threshold,
        token=token,
        activity=activity,
        is_same_person=None if token else lambda *_: True,
    )


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """The socket listens from the start, so that clients need not wait for the server."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def client_of(gateway: Gateway, *, token: str = "") -> AsyncIterator[GatewayClient]:
    async with serving(open_app(gateway, threshold=0.35, token=token)) as url:
        yield GatewayClient(url, token=token)
