"""MCP on the gateway's own address. Its SDK is loaded while searches are answered."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolscript import __version__
from toolscript.model.servers import ServerSpec
from toolscript.ports import Gateway
from toolscript.surfaces.mcp.loaded_later import LoadedLater

MODULES = ("toolscript.surfaces.mcp.endpoint", "toolscript.surfaces.mcp.passthrough")
OWN, OF_SERVER = "own", "of_server"


class McpRoutes:
    """`/mcp` finds and calls tools; `/mcp/{server}` is one server as it is."""

    def __init__(
        self,
        gateway: Gateway,
        find_server: Callable[[str], ServerSpec | None],
        until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self._gateway = gateway
        self._find_server = find_server
        self._later = LoadedLater(MODULES, self._open_apps, until_quiet)

    @property
    def routes(self) -> tuple[BaseRoute, ...]:
        return Route("/mcp", self._later.app(OWN)), Route("/mcp/{server}", self._later.app(OF_SERVER))

    def open(self) -> AbstractAsyncContextManager[None]:
        return self._later.open()

    @asynccontextmanager
    async def _open_apps(self) -> AsyncIterator[Mapping[str, ASGIApp]]:
        from httpx2 import AsyncClient

        from toolscript.surfaces.mcp.endpoint import create_mcp_server, mcp_asgi
        from toolscript.surfaces.mcp.passthrough import passthrough_asgi

        app, living = mcp_asgi(create_mcp_server(self._gateway, __version__))
        async with living, AsyncClient(trust_env=False) as client:
            yield {OWN: app, OF_SERVER: passthrough_asgi(self._find_server, client)}
