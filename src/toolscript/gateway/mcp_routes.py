"""MCP on the gateway's own address. Its SDK takes seconds to load, so it is loaded while searches are answered."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript import __version__
from toolscript.errors import Unavailable
from toolscript.model.servers import ServerSpec
from toolscript.ports import Gateway


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
        self._until_quiet = until_quiet
        self._asked = asyncio.Event()
        self._own = _Later(self._asked)
        self._of_server = _Later(self._asked)

    @property
    def routes(self) -> tuple[BaseRoute, ...]:
        return Route("/mcp", self._own), Route("/mcp/{server}", self._of_server)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        closing = asyncio.Event()
        serving = asyncio.create_task(self._serve(closing))
        try:
            yield
        finally:
            closing.set()
            await serving

    async def _serve(self, closing: asyncio.Event) -> None:
        """One task opens and closes what the SDK needs open, as its task groups ask for."""
        await self._until_wanted(closing)
        if closing.is_set():
            return
        try:
            await asyncio.to_thread(_load)
        except ImportError as error:
            self._own.fail(error)
            self._of_server.fail(error)
            raise
        from httpx2 import AsyncClient

        from toolscript.surfaces.mcp.endpoint import create_mcp_server, mcp_asgi
        from toolscript.surfaces.mcp.passthrough import passthrough_asgi

        app, living = mcp_asgi(create_mcp_server(self._gateway, __version__))
        async with living, AsyncClient(trust_env=False) as client:
            self._own.become(app)
            self._of_server.become(passthrough_asgi(self._find_server, client))
            await closing.wait()

    async def _until_wanted(self, closing: asyncio.Event) -> None:
        """Loaded when somebody asks for it, and else when what matters more has been loaded."""
        reasons = (self._until_quiet(), self._asked.wait(), closing.wait())
        waits = {asyncio.ensure_future(reason) for reason in reasons}
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()


class _Later:
    """An app that is not there yet: whoever asks waits for it."""

    def __init__(self, asked: asyncio.Event) -> None:
        self._asked = asked
        self._app: asyncio.Future[ASGIApp] | None = None
        self._known: ASGIApp | None = None
        self._failure: Exception | None = None

    def become(self, app: ASGIApp) -> None:
        self._known = app
        if self._app is not None and not self._app.done():
            self._app.set_result(app)

    def fail(self, error: Exception) -> None:
        self._failure = error
        if self._app is not None and not self._app.done():
            self._app.set_exception(error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._failure is not None:
            raise Unavailable(f"MCP cannot be loaded: {self._failure}", hint="install toolscript again")
        if self._known is None:
            self._asked.set()
            self._app = self._app or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._app)
        assert self._known is not None  # noqa: S101
        await self._known(scope, receive, send)


def _load() -> None:
    # The whole of the SDK before its parts: its packages import each other, and where two threads begin at
    # different ends of the circle (the servers' connections begin at `mcp`) both fail.
    import_module("mcp")
    import_module("toolscript.surfaces.mcp.endpoint")
    import_module("toolscript.surfaces.mcp.passthrough")
