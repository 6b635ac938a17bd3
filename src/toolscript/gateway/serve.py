"""Runs a gateway: over HTTP with MCP at /mcp, or over stdio for one client."""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolscript.core.errors import ConfigInvalid, SetupError
from toolscript.core.mcp.lazy_mount import LazyMount
from toolscript.core.mcp_client.model import Offer, ServerSpec
from toolscript.core.values import silent
from toolscript.core.version import __version__
from toolscript.gateway.config.read import Config, left_out
from toolscript.gateway.config.watch import config_changes
from toolscript.gateway.discovery import choices_of, find_running, own_token, place_of, running_file
from toolscript.gateway.model import Gateway
from toolscript.gateway.runtime import (
    REMEMBERED_SECONDS,
    Resources,
    cache_folder,
    open_resources,
    read_curation,
    read_settings,
)
from toolscript.gateway.settings import GatewaySettings, load_gateway_settings
from toolscript.gateway.socket_owners import Address, comes_from_this_user, system_exposes_owners
from toolscript.gateway.store.offers import OfferFile

MODULES = ("toolscript.core.mcp.endpoint", "toolscript.gateway.mcp.passthrough")
OWN, OF_SERVER = "own", "of_server"
LOOPBACK = "127.0.0.1"
MODEL_FIRST_SECONDS = 2.0
# Searched until its servers have been listed again.
SEARCHED_SECONDS = 30 * 24 * 3600.0
# A config, and the cached offers of its servers that need not be listed again.
_Used = tuple[Config, Sequence[Offer]]
LOG_FACTS = ("part", "server", "file", "reason", "method", "path", "status", "took_ms", "total", "query_id")

logger = logging.getLogger(__name__)


class McpRoutes:
    """`/mcp` finds and calls tools; `/mcp/{server}` proxies one server."""

    def __init__(
        self,
        gateway: Gateway,
        find_server: Callable[[str], ServerSpec | None],
        until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self._gateway = gateway
        self._find_server = find_server
        self._later = LazyMount(MODULES, self._open_apps, until_quiet)

    @property
    def routes(self) -> tuple[BaseRoute, ...]:
        return Route("/mcp", self._later.app(OWN)), Route("/mcp/{server}", self._later.app(OF_SERVER))

    def open(self) -> AbstractAsyncContextManager[None]:
        return self._later.open()

    @asynccontextmanager
    async def _open_apps(self) -> AsyncIterator[Mapping[str, ASGIApp]]:
        from httpx2 import AsyncClient

        from toolscript.core.mcp.endpoint import mcp_asgi
        from toolscript.gateway.mcp.passthrough import passthrough_asgi
        from toolscript.gateway.mcp.tools import create_mcp_server

        app, living = mcp_asgi(create_mcp_server(self._gateway, __version__))
        async with living, AsyncClient(trust_env=False) as client:
            yield {OWN: app, OF_SERVER: passthrough_asgi(self._find_server, client)}


def serve(settings: GatewaySettings, on_ready: Callable[[str], None]) -> None:
    """Serve over HTTP until stopped."""
    _configure_logs(settings.gateway_log_level)
    asyncio.run(_serve(settings, on_ready))


def serve_stdio(*, flags: Mapping[str, object]) -> None:
    """Serve one client on stdin and stdout, through the running gateway or an own one."""
    from toolscript.core.mcp.endpoint import run_stdio
    from toolscript.gateway.mcp.tools import create_mcp_server

    settings = load_gateway_settings(flags)
    _configure_logs(settings.gateway_log_level)
    running = find_running(settings)

    async def run() -> None:
        if running is not None:
            await run_stdio(create_mcp_server(running, __version__))
            return
        async with open_following(settings) as resources:
            await run_stdio(create_mcp_server(resources.gateway, __version__))

    asyncio.run(run())


@asynccontextmanager
async def open_following(settings: GatewaySettings) -> AsyncIterator[Resources]:
    """Open a gateway that follows its config files and answers from the cache until its servers have started."""
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_resources(settings, silent, at_once=True))
        stop_watching = asyncio.Event()
        stack.callback(stop_watching.set)
        named: list[Path] = []
        # Watching starts before reading, so that no change is missed.
        changes = config_changes(place_of(settings).watched(), stop_watching, named=lambda: [*named])
        config, offers = _use_config(settings, resources, named)
        if not resources.indexing.uses_cache:
            # Mark the servers as starting, so that a search waits instead of using an empty index.
            resources.servers.use(config.servers, offers)
        await resources.indexing.has_begun()
        following = asyncio.create_task(_follow(settings, resources, (config, offers), changes, named))
        stack.callback(following.cancel)
        yield resources


def _use_config(settings: GatewaySettings, resources: Resources, named: list[Path]) -> _Used:
    """Use the config of now. `named` gets the files that it names, to be watched, too."""
    config = read_settings(settings)
    named[:] = config.named
    resources.gateway.curate(read_curation(config))
    max_seconds = 0.0 if settings.search_no_cache else SEARCHED_SECONDS
    cached = OfferFile(cache_folder(settings) / "tools", config.servers).recall(max_seconds)
    resources.gateway.left_out = left_out(config)
    for state in resources.gateway.left_out:
        logger.error("a server cannot be started", extra={"server": state.name, "reason": state.error})
    resources.indexing.use(config.servers, cached.offers)
    return config, [offer for offer in cached.offers if cached.ages[offer.server] < REMEMBERED_SECONDS]


async def _follow(
    settings: GatewaySettings,
    resources: Resources,
    used: _Used,
    changes: AsyncIterator[None],
    named: list[Path],
) -> None:
    """With cached tools, load the model before the servers: it improves answers and loads faster."""
    if resources.indexing.ready:
        with suppress(TimeoutError):
            await asyncio.wait_for(resources.indexing.wait_for_model(), MODEL_FIRST_SECONDS)
    config, offers = used
    resources.servers.use(config.servers, offers)
    async for _ in changes:
        try:
            config, offers = _use_config(settings, resources, named)
            resources.servers.use(config.servers, offers)
        except (ConfigInvalid, OSError) as error:
            # OSError: the gateway's working folder was removed.
            logger.error("the config file cannot be used; the servers stay as they were: %s", error)
        else:
            logger.warning("the config file changed and was read again")


async def _serve(settings: GatewaySettings, on_ready: Callable[[str], None]) -> None:
    import uvicorn

    from toolscript.gateway.http import create_gateway_app

    with _listening(settings.gateway_port) as listener:
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        # A token from the settings is the user's to hand out; it is not written to a file.
        generated = own_token(settings.data_folder / "run")
        chosen = settings.gateway_token if settings.gateway_token != generated else ""
        recorded = "" if chosen else generated
        record = running_file(settings).held(url, __version__, choices_of(settings), recorded)
        async with open_following(settings) as resources:
            mcp = McpRoutes(resources.gateway, resources.spec_named, resources.indexing.wait_for_model)
            app = create_gateway_app(
                resources.gateway,
                limit=settings.search_limit,
                threshold=settings.search_threshold,
                token=chosen or generated,
                is_same_person=None if chosen else _connection_owner_check(),
                more_routes=mcp.routes,
                lifespan=mcp.open,
            )
            # No proxy headers: authentication relies on the real address of the connection.
            config = uvicorn.Config(
                app, log_config=None, ws="none", timeout_graceful_shutdown=3, proxy_headers=False
            )
            # uvicorn re-raises the signal that stopped it, which would end this process before it stops its
            # servers and removes its file.
            signal.signal(signal.SIGTERM, lambda *_: None)
            with record:
                on_ready(url)
                await uvicorn.Server(config).serve(sockets=[listener])


def _connection_owner_check() -> Callable[[Address, Address], bool] | None:
    """Return the check of the connection's owner where the system supports it."""
    return comes_from_this_user if system_exposes_owners() else None


def _listening(port: int) -> socket.socket:
    # With the protocol named, asyncio sets TCP_NODELAY and sends small answers at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":
        # On Windows it would let two programs share a port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise SetupError(
            f"port {port} of this machine cannot be used: {error.strerror}",
            hint="`toolscript gateway start --port 0` takes a free one",
        ) from error
    listener.listen(128)
    return listener


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        facts = [f"{name}={str(vars(record)[name])!r}" for name in LOG_FACTS if name in vars(record)]
        line = " ".join([when, record.levelname.lower(), record.name, repr(record.getMessage())[1:-1], *facts])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _configure_logs(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "uvicorn.error", "httpx2", "mcp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
