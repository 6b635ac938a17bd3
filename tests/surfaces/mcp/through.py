"""The server of everything by itself, and the same one behind a gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Route

from tests.mcp_servers_conformance.everything import everything_server
from tests.surfaces.mcp.serving import serve
from toolscript.model.servers import ServerSpec, Transport
from toolscript.surfaces.mcp.endpoint import LOOPBACK_ONLY
from toolscript.surfaces.mcp.passthrough import FindServer, passthrough_asgi


@asynccontextmanager
async def serve_everything() -> AsyncIterator[str]:
    manager = StreamableHTTPSessionManager(everything_server(), security_settings=LOOPBACK_ONLY)
    async with serve([Route("/mcp", StreamableHTTPASGIApp(manager))], manager.run()) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def serve_passthrough(find: FindServer) -> AsyncIterator[str]:
    """The address that `/mcp/{server}` comes after."""
    async with (
        httpx2.AsyncClient(trust_env=False) as client,
        serve([Route("/mcp/{server}", passthrough_asgi(find, client))]) as address,
    ):
        yield address


@asynccontextmanager
async def serve_everything_through_the_gateway() -> AsyncIterator[str]:
    async with serve_everything() as upstream:
        spec = ServerSpec("everything", Transport.HTTP, url=upstream)
        async with serve_passthrough({"everything": spec}.get) as address:
            yield f"{address}/mcp/everything"
