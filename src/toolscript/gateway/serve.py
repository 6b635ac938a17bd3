"""Runs a gateway: over HTTP, with MCP at /mcp."""

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolscript.core.errors import SetupError
from toolscript.core.items import JsonObject
from toolscript.core.mcp.lazy_mount import LazyMount
from toolscript.core.own_files import write_private
from toolscript.core.version import __version__
from toolscript.gateway.bridge_http import Lost, NotSent
from toolscript.gateway.client_tokens import ClientTokens, is_of_client
from toolscript.gateway.config.read import ConfigPlace
from toolscript.gateway.discovery import ALREADY_RUNNING, Record, choices_of, own_token, place_of, running_file
from toolscript.gateway.first_answers import FILE as FIRST_ANSWERS
from toolscript.gateway.first_answers import PIPE_HEADER, ask_first
from toolscript.gateway.following import open_following
from toolscript.gateway.handover import Handover, taken_over
from toolscript.gateway.listed_tools import listed_name
from toolscript.gateway.record import RUN, RunningGateway, is_replaced
from toolscript.gateway.runtime import Resources, open_shared, require_tables, require_usable
from toolscript.gateway.settings import GatewaySettings, environment
from toolscript.gateway.slow_senders import Senders
from toolscript.gateway.socket_owners import Address, comes_from_this_user, system_exposes_owners
from toolscript.gateway.streams import EndingStreams
from toolscript.gateway.views import Views, WorkspaceRouter, workspace_route
from toolscript.gateway.workspace import Workspace, workspace_of

if TYPE_CHECKING:
    from uvicorn import Server

    from toolscript.core.mcp.endpoint import ToolServer

MODULES = ("toolscript.core.mcp.endpoint", "toolscript.gateway.mcp.one_server")
OWN, DIRECT, OF_SERVER = "own", "direct", "of_server"
# The folder, under the data folder, of results that are too large to be shown whole.
RESULTS = "results"
LOOPBACK = "127.0.0.1"
# How long a thread keeps others from running: each request waits for that several times, where one has much to do.
SWITCH_SECONDS = 0.0005
# Of a request.
MAX_BYTES = 8 * 1024 * 1024
LOG_FACTS = ("part", "server", "file", "reason", "method", "path", "status", "took_ms", "total", "query_id")

logger = logging.getLogger("toolscript.gateway")


class McpRoutes:
    """`/mcp` finds and calls tools; `/mcp/all` hands all of them through, `/mcp/{server}` those of one."""

    def __init__(self, settings: GatewaySettings, resources: Resources) -> None:
        self._resources = resources
        self._split = settings.gateway_split_calls
        self._results_folder = settings.data_folder / RESULTS
        self._later = LazyMount(MODULES, self._open_apps, resources.indexing.wait_for_model)

    @property
    def routes(self) -> tuple[BaseRoute, ...]:
        return (
            Route("/mcp", self._later.app(OWN)),
            Route("/mcp/all", self._later.app(DIRECT)),
            Route("/mcp/{server}", self._later.app(OF_SERVER)),
        )

    def open(self) -> AbstractAsyncContextManager[None]:
        return self._later.open()

    @asynccontextmanager
    async def _open_apps(self) -> AsyncIterator[Mapping[str, ASGIApp]]:
        from toolscript.gateway.mcp.direct import create_direct_server
        from toolscript.gateway.mcp.large_results import LargeResults
        from toolscript.gateway.mcp.one_server import OneServer, ServerApps
        from toolscript.gateway.mcp.pipes import BySplit, Piped, current_pipe
        from toolscript.gateway.mcp.tools import create_mcp_server

        resources, gateway = self._resources, self._resources.recorded
        results = LargeResults(self._results_folder)

        def find_any_schema(tool: str) -> JsonObject | None:
            return None if current_pipe().is_pipe else resources.gateway.input_schema(tool)

        direct, direct_living = _with_sessions(
            create_direct_server(gateway, __version__, find_any_schema, results)
        )
        app, living = _with_sessions(create_mcp_server(gateway, __version__, results=results))
        split_app, split_living = _with_sessions(
            create_mcp_server(gateway, __version__, split=True, results=results)
        )

        def create(server: str) -> "ToolServer":
            def find_schema(name: str) -> JsonObject | None:
                return resources.gateway.input_schema(listed_name(server, name))

            view = OneServer(gateway, server, resources.gateway.until_listed, gateway.servers)
            return create_direct_server(view, __version__, find_schema)

        async with (
            living,
            split_living,
            direct_living,
            ServerApps(lambda name: resources.indexing.spec_named(name) is not None, create) as of_server,
        ):
            own = BySplit(app, split_app, split=self._split)
            yield {OWN: own, DIRECT: Piped(direct), OF_SERVER: of_server}


def _with_sessions(server: "ToolServer") -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    from toolscript.core.mcp.sessions import mcp_asgi_with_sessions

    return mcp_asgi_with_sessions(server, MAX_BYTES, PIPE_HEADER)


def serve(settings: GatewaySettings, on_ready: Callable[[str], None], *, on_demand: bool = False) -> None:
    """Serve over HTTP until stopped. `on_demand`: end without an error if another process was faster."""
    _configure_logs(settings.gateway_log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        asyncio.run(_serve(settings, on_ready, on_demand=on_demand))
    except SetupError as error:
        if not (on_demand and error.details.get(ALREADY_RUNNING)):
            raise


async def _serve(settings: GatewaySettings, on_ready: Callable[[str], None], *, on_demand: bool) -> None:
    workspace = served_workspace(settings)
    with _place(settings, or_any=on_demand) as (record, listener):
        # Made under the lock, or two that start at once would make two. One from the settings is the user's to
        # hand out; it is not written to a file.
        generated = own_token(settings.data_folder / RUN)
        # That of a client is in the shells that `gateway env` was read into.
        is_chosen = settings.gateway_token != generated and not is_of_client(settings.gateway_token)
        chosen = settings.gateway_token if is_chosen else ""
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        recorded = "" if chosen else generated
        choices = choices_of(settings)
        running = RunningGateway(os.getpid(), url, __version__, choices, recorded, workspace.id, ready=False)
        # Recorded before it answers: clients connect, and wait.
        record.write(running)
        async with AsyncExitStack() as stack:
            closing = asyncio.Event()
            handover = Handover(listener, record, closing)
            routes = (handover.route(),)
            tokens = (chosen, generated)
            app, until_quiet = await _open_app(settings, workspace.place, tokens, routes, stack)
            handover.server = server = _server(EndingStreams(app, closing), closing)
            # For a command that waits, its search comes first.
            ready = _get_ready(url, chosen or generated, settings, until_quiet if on_demand else None)

            async def say_ready() -> None:
                await ready
                if record.is_held:
                    record.write(replace(running, ready=True))
                    on_ready(url)

            saying = asyncio.create_task(say_ready())
            stack.callback(saying.cancel)
            await server.serve(sockets=[listener])


async def _get_ready(
    url: str, token: str, settings: GatewaySettings, until_quiet: Callable[[], Awaitable[None]] | None
) -> None:
    """Answer what clients of MCP ask first, so that none waits for it, and keep that for their next start."""
    if until_quiet is not None:
        await until_quiet()
    try:
        answers = await asyncio.to_thread(ask_first, url, token)
        write_private(settings.data_folder / FIRST_ANSWERS, json.dumps(answers))
    except (NotSent, Lost, OSError) as error:
        logger.warning("the first answers of MCP are not kept: %s", error)


def serve_private(settings: GatewaySettings, say: Callable[[str, str], None]) -> None:
    """Serve the process that started this one, until it closes stdin; `say` gets URL and token for it alone."""
    _configure_logs(settings.gateway_log_level)
    asyncio.run(_serve_private(settings, say))


async def _serve_private(settings: GatewaySettings, say: Callable[[str, str], None]) -> None:
    token, closing = secrets.token_urlsafe(32), asyncio.Event()
    with _listening(0) as listener:
        async with AsyncExitStack() as stack:
            app, _ = await _open_app(settings, None, (token, token), (), stack)
            server = _server(EndingStreams(app, closing), closing)
            loop = asyncio.get_running_loop()

            def until_left() -> None:
                while os.read(0, 1):
                    pass
                loop.call_soon_threadsafe(setattr, server, "should_exit", True)

            threading.Thread(target=until_left, daemon=True).start()
            say(f"http://{LOOPBACK}:{listener.getsockname()[1]}", token)
            await server.serve(sockets=[listener])


def _server(app: ASGIApp, closing: asyncio.Event) -> "Server":
    import uvicorn

    # No proxy headers: authentication relies on the real address of the connection.
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=3, proxy_headers=False)
    Senders().watch(config)
    server = _ending_streams(uvicorn.Server(config), closing)

    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn re-raises the signal that stopped it, which would end this process before it stops its servers and
    # removes its file. One that comes before uvicorn listens for signals counts, too.
    signal.signal(signal.SIGTERM, stop)
    return server


@contextmanager
def _place(settings: GatewaySettings, *, or_any: bool) -> Iterator[tuple[Record, socket.socket]]:
    """Take the place of the gateway: a free one, or that of an older gateway."""
    file = running_file(settings)
    running = file.read()
    if running is not None and is_replaced(running):
        # Whatever would keep this one from serving is found while the other still serves.
        require_usable(settings)
        with taken_over(running, running.token or settings.gateway_token, file.path) as place:
            yield place
        return
    # Before others take it for a gateway that runs.
    require_tables(settings)
    with file.held() as record, _listening(settings.gateway_port, or_any=or_any) as listener:
        yield record, listener


def served_workspace(settings: GatewaySettings) -> Workspace:
    """Return the workspace of requests that name none: the user's own servers, or those of an explicit file."""
    place = place_of(settings)
    if place.named:
        return workspace_of(place, environment())
    return Workspace((str(place.paths()[0]),))


async def _open_app(
    settings: GatewaySettings,
    place: ConfigPlace | None,
    tokens: tuple[str, str],
    routes: tuple[BaseRoute, ...],
    stack: AsyncExitStack,
) -> tuple[ASGIApp, Callable[[], Awaitable[None]]]:
    """Open the gateway of a place, else of this folder; return it, and what waits until its model is loaded.

    `tokens`: the one of the settings, which then is the only one, and the generated one.
    """
    from toolscript.gateway.http import create_gateway_app, create_view_app

    limit, threshold, (chosen, generated) = settings.search_limit, settings.search_threshold, tokens
    shared = await stack.enter_async_context(open_shared(settings))

    @asynccontextmanager
    async def open_view(workspace: Workspace) -> AsyncIterator[ASGIApp]:
        async with open_following(settings, workspace.place, shared) as resources:
            mcp = McpRoutes(settings, resources)
            async with mcp.open():
                yield create_view_app(
                    resources.recorded,
                    activity=resources.activity,
                    limit=limit,
                    threshold=threshold,
                    more_routes=mcp.routes,
                )

    resources = await stack.enter_async_context(open_following(settings, place, shared))
    views = Views(open_view)
    stack.push_async_callback(views.close)
    sweeping = asyncio.create_task(views.sweep())
    stack.callback(sweeping.cancel)
    mcp = McpRoutes(settings, resources)
    app = create_gateway_app(
        resources.recorded,
        activity=resources.activity,
        limit=limit,
        threshold=threshold,
        token=chosen or generated,
        client_of=ClientTokens(settings.data_folder / RUN).client_of,
        is_same_person=None if chosen else _connection_owner_check(),
        more_routes=(*routes, workspace_route(views), *mcp.routes),
        more_middleware=(Middleware(WorkspaceRouter, views=views),),
        lifespan=mcp.open,
    )
    return app, resources.indexing.wait_for_model


def _connection_owner_check() -> Callable[[Address, Address], bool] | None:
    """Return the check of the connection's owner where the system supports it."""
    return comes_from_this_user if system_exposes_owners() else None


def _listening(port: int, *, or_any: bool = False) -> socket.socket:
    """Listen on this port; `or_any`: on a free one if another program has it."""
    # With the protocol named, asyncio sets TCP_NODELAY and sends small answers at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":
        # On Windows it would let two programs share a port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        if or_any and port:
            return _listening(0)
        raise SetupError(
            f"port {port} of this machine cannot be used: {error.strerror}",
            hint="`toolscript gateway start --port 0` takes a free one",
        ) from error
    listener.listen(128)
    return listener


def _ending_streams(server: "Server", closing: asyncio.Event) -> "Server":
    """Return the server, which ends endless streams before it waits for what is being answered."""
    shutdown = server.shutdown

    async def shut_down(sockets: list[socket.socket] | None = None) -> None:
        closing.set()
        await shutdown(sockets)

    server.shutdown = shut_down  # type: ignore[method-assign]
    return server


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
