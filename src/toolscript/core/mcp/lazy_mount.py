"""Apps whose libraries take seconds to load. They are loaded beside what is served already, and not before it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module

from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import Unavailable

logger = logging.getLogger("toolscript.mcp")

# Opens what the apps need open, and answers them by name.
OpenApps = Callable[[], AbstractAsyncContextManager[Mapping[str, ASGIApp]]]


def load(modules: Sequence[str]) -> None:
    # The whole of the SDK before its parts: its packages import each other, and where two threads begin at
    # different ends of the circle (the connections to MCP servers begin at `mcp`) both fail.
    for name in ("mcp", *modules):
        import_module(name)


class LazyMount:
    """`until_quiet` ends when what matters more has been loaded. Who asks for an app does not wait for that."""

    def __init__(
        self, modules: Sequence[str], open_apps: OpenApps, until_quiet: Callable[[], Awaitable[None]]
    ) -> None:
        self._modules = modules
        self._open_apps = open_apps
        self._until_quiet = until_quiet
        self._asked = asyncio.Event()
        self._apps: dict[str, _Later] = {}

    def app(self, name: str) -> ASGIApp:
        return self._apps.setdefault(name, _Later(self._asked))

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
            await asyncio.to_thread(load, self._modules)
        except ImportError as error:
            logger.exception("MCP cannot be loaded")
            for later in self._apps.values():
                later.fail(error)
            return
        async with self._open_apps() as apps:
            for name, app in apps.items():
                self._apps.setdefault(name, _Later(self._asked)).become(app)
            await closing.wait()

    async def _until_wanted(self, closing: asyncio.Event) -> None:
        reasons = (self._until_quiet(), self._asked.wait(), closing.wait())
        waits = {asyncio.ensure_future(reason) for reason in reasons}
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()


class _Later:
    """An app that is not there yet: whoever asks waits for it."""

    def __init__(self, asked: asyncio.Event) -> None:
        self._asked = asked
        self._app: asyncio.Future[ASGIApp] | None = None
        self._known: ASGIApp | None = None
        self._failure: Unavailable | None = None

    def become(self, app: ASGIApp) -> None:
        self._known = app
        if self._app is not None and not self._app.done():
            self._app.set_result(app)

    def fail(self, error: ImportError) -> None:
        self._failure = Unavailable(f"MCP cannot be loaded: {error}", hint="install toolscript again")
        if self._app is not None and not self._app.done():
            self._app.set_exception(self._failure)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._failure is not None:
            raise self._failure
        if self._known is None:
            self._asked.set()
            self._app = self._app or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._app)
        assert self._known is not None  # noqa: S101
        await self._known(scope, receive, send)
