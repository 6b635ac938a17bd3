"""Lazily mounted ASGI apps: their libraries take seconds to import, so the server starts before them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module

from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import Unavailable

logger = logging.getLogger("toolscript.mcp")

# Opens the apps' resources, and returns the apps by name.
OpenApps = Callable[[], AbstractAsyncContextManager[Mapping[str, ASGIApp]]]


def load(modules: Sequence[str]) -> None:
    # Import all of the SDK before its parts: its packages import each other. Two threads that enter the cycle
    # at different modules (connections to MCP servers import `mcp`) would both fail.
    for name in ("mcp", *modules):
        import_module(name)


class LazyMount:
    """Imports the apps after `until_quiet`, when more important modules are loaded, or at the first request."""

    def __init__(
        self, modules: Sequence[str], open_apps: OpenApps, until_quiet: Callable[[], Awaitable[None]]
    ) -> None:
        self._modules = modules
        self._open_apps = open_apps
        self._until_quiet = until_quiet
        self._requested = asyncio.Event()
        self._apps: dict[str, _Placeholder] = {}

    def app(self, name: str) -> ASGIApp:
        return self._apps.setdefault(name, _Placeholder(self._requested))

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
        """Open and close the apps in one task, as the SDK's task groups require."""
        await self._wait_for_start(closing)
        if closing.is_set():
            return
        try:
            await asyncio.to_thread(load, self._modules)
            async with self._open_apps() as apps:
                for name, app in apps.items():
                    self._apps.setdefault(name, _Placeholder(self._requested)).set_app(app)
                await closing.wait()
        except Exception as error:
            # Requests that wait for an app would wait for ever.
            logger.exception("MCP cannot be loaded")
            for placeholder in self._apps.values():
                placeholder.fail(error)

    async def _wait_for_start(self, closing: asyncio.Event) -> None:
        reasons = (self._until_quiet(), self._requested.wait(), closing.wait())
        waits = {asyncio.ensure_future(reason) for reason in reasons}
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()


class _Placeholder:
    """Placeholder of an app; requests wait until the app is loaded."""

    def __init__(self, requested: asyncio.Event) -> None:
        self._requested = requested
        self._app: asyncio.Future[ASGIApp] | None = None
        self._loaded: ASGIApp | None = None
        self._failure: Unavailable | None = None

    def set_app(self, app: ASGIApp) -> None:
        self._loaded = app
        if self._app is not None and not self._app.done():
            self._app.set_result(app)

    def fail(self, error: Exception) -> None:
        self._failure = Unavailable(f"MCP cannot be loaded: {error}", hint="reinstall toolscript")
        if self._app is not None and not self._app.done():
            self._app.set_exception(self._failure)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._failure is not None:
            raise self._failure
        if self._loaded is None:
            self._requested.set()
            self._app = self._app or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._app)
        assert self._loaded is not None  # noqa: S101
        await self._loaded(scope, receive, send)
