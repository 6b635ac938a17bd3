"""Runs a gateway: over HTTP with MCP at /mcp, or over stdio for one client."""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolscript.core.errors import SetupError
from toolscript.core.mcp.lazy_mount import LazyMount
from toolscript.core.version import __version__
from toolscript.gateway.activity import ActivityLog
from toolscript.gateway.discovery import (
    ALREADY_RUNNING,
    Record,
    RunningGateway,
    choices_of,
    is_replaced,
    own_token,
    place_of,
    running_file,
)
from toolscript.gateway.following import open_following
from toolscript.gateway.handover import Handover, taken_over
from toolscript.gateway.history import keeps_arguments, open_activity
from toolscript.gateway.joining import join
from toolscript.gateway.model import Gateway
from toolscript.gateway.runtime import Resources, open_shared, require_usable
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings
from toolscript.gateway.socket_owners import Address, comes_from_this_user, system_exposes_owners
from toolscript.gateway.streams import EndingStreams
from toolscript.gateway.views import Views, WorkspaceRouter, workspace_route
from toolscript.gateway.workspace import Workspace, workspace_of

if TYPE_CHECKING:
    from uvicorn import Server

MODULES = ("toolscript.core.mcp.endpoint", "toolscript.gateway.mcp.passthrough")
OWN, DIRECT, OF_SERVER = "own", "direct", "of_server"
# The folder, under the data folder, of results that are too large to be shown whole.
RESULTS = "results"
LOOPBACK = "127.0.0.1"
LOG_FACTS = ("part", "server", "file", "reason", "method", "path", "status", "took_ms", "total", "query_id")


class McpRoutes:
    """`/mcp` finds and calls tools; `/mcp/all` hands all of them through; `/mcp/{server}` proxies one server."""

    def __init__(self, settings: GatewaySettings, resources: Resources) -> None:
        self._resources = resources
        self._arguments = keeps_arguments(settings)
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
        from toolscript.core.mcp.sessions import mcp_asgi_with_sessions
        from toolscript.gateway.mcp.direct import create_direct_server
        from toolscript.gateway.mcp.large_results import LargeResults
        from toolscript.gateway.mcp.passthrough import passthrough_asgi, passthrough_client
        from toolscript.gateway.mcp.passthrough_approvals import PassthroughApprovals
        from toolscript.gateway.mcp.passthrough_calls import PassthroughLog
        from toolscript.gateway.mcp.session_use import SessionUsage
        from toolscript.gateway.mcp.tools import create_mcp_server

        resources, gateway, activity = self._resources, self._resources.recorded, self._resources.activity
        usage = SessionUsage(gateway, activity, is_one=False, split=self._split)
        results = LargeResults(self._results_folder)
        direct, direct_living = mcp_asgi_with_sessions(
            create_direct_server(gateway, __version__, resources.gateway.input_schema, results)
        )
        app, living = mcp_asgi_with_sessions(
            create_mcp_server(gateway, __version__, usage, split=self._split, results=results)
        )
        log = PassthroughLog(activity, arguments=self._arguments)
        indexing, find_rules = resources.indexing, resources.gateway.find_rules
        held = PassthroughApprovals(indexing.approvals, indexing.offers) if indexing.approvals else None
        async with living, direct_living, passthrough_client() as client:
            of_server = passthrough_asgi(
                indexing.spec_named,
                client,
                log=log,
                find_rules=find_rules,
                approvals=held,
                credentials_of=resources.sign_ins.of,
            )
            yield {OWN: app, DIRECT: direct, OF_SERVER: of_server}


def serve(settings: GatewaySettings, on_ready: Callable[[str], None], *, on_demand: bool = False) -> None:
    """Serve over HTTP until stopped. `on_demand`: end without an error if another process was faster."""
    _configure_logs(settings.gateway_log_level)
    try:
        asyncio.run(_serve(settings, on_ready, on_demand=on_demand))
    except SetupError as error:
        if not (on_demand and error.details.get(ALREADY_RUNNING)):
            raise


def serve_stdio(*, flags: Mapping[str, object], direct: bool = False) -> None:
    """Serve one client on stdin and stdout, through the running gateway or an own one.

    `direct`: hand the tools themselves through.
    """
    from toolscript.core.mcp.endpoint import run_stdio
    from toolscript.gateway.mcp.direct import create_direct_server
    from toolscript.gateway.mcp.large_results import LargeResults
    from toolscript.gateway.mcp.offered_servers import OfferedServers
    from toolscript.gateway.mcp.session_use import SessionUsage
    from toolscript.gateway.mcp.tools import create_mcp_server

    settings = load_gateway_settings(flags)
    _configure_logs(settings.gateway_log_level)
    joined = join(settings)

    async def serve_client(gateway: Gateway, activity: ActivityLog) -> None:
        results = LargeResults(settings.data_folder / RESULTS)
        if direct:
            await run_stdio(create_direct_server(gateway, __version__, results=results))
            return
        split = settings.gateway_split_calls
        usage = SessionUsage(gateway, activity, is_one=True, split=split)
        servers = OfferedServers(gateway)
        await servers.refresh()
        server = create_mcp_server(gateway, __version__, usage, split=split, results=results, servers=servers)
        await run_stdio(server)

    async def run() -> None:
        if joined is not None:
            # The gateway logs the calls, this process what its client's session uses.
            async with open_activity(settings) as activity:
                await serve_client(joined.client, activity)
            return
        async with open_following(settings) as resources:
            await serve_client(resources.recorded, resources.activity)

    asyncio.run(run())


async def _serve(settings: GatewaySettings, on_ready: Callable[[str], None], *, on_demand: bool) -> None:
    import uvicorn

    workspace = served_workspace(settings)
    with _place(settings, or_any=on_demand) as (record, listener):
        # Made under the lock, or two that start at once would make two. One from the settings is the user's to
        # hand out; it is not written to a file.
        generated = own_token(settings.data_folder / "run")
        chosen = settings.gateway_token if settings.gateway_token != generated else ""
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
            app = EndingStreams(await _open_app(settings, workspace, (chosen, generated), routes, stack), closing)
            # No proxy headers: authentication relies on the real address of the connection.
            config = uvicorn.Config(
                app, log_config=None, ws="none", timeout_graceful_shutdown=3, proxy_headers=False
            )
            handover.server = server = _ending_streams(uvicorn.Server(config), closing)

            def stop(*_: object) -> None:
                server.should_exit = True

            # uvicorn re-raises the signal that stopped it, which would end this process before it stops its
            # servers and removes its file. One that comes before uvicorn listens for signals counts, too.
            signal.signal(signal.SIGTERM, stop)
            record.write(replace(running, ready=True))
            on_ready(url)
            await server.serve(sockets=[listener])


@contextmanager
def _place(settings: GatewaySettings, *, or_any: bool) -> Iterator[tuple[Record, socket.socket]]:
    """Take the place of the gateway: a free one, or that of an older gateway."""
    file = running_file(settings)
    running = file.read()
    if running is not None and is_replaced(running):
        # Whatever would keep this one from serving is found while the other still serves.
        require_usable(settings)
        with taken_over(running, settings.gateway_token or running.token, file.path) as place:
            yield place
        return
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
    workspace: Workspace,
    tokens: tuple[str, str],
    routes: tuple[BaseRoute, ...],
    stack: AsyncExitStack,
) -> ASGIApp:
    """Open the gateway. `tokens`: the one of the settings, which then is the only one, and the generated one."""
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

    resources = await stack.enter_async_context(open_following(settings, workspace.place, shared))
    views = Views(open_view)
    stack.push_async_callback(views.close)
    sweeping = asyncio.create_task(views.sweep())
    stack.callback(sweeping.cancel)
    mcp = McpRoutes(settings, resources)
    return create_gateway_app(
        resources.recorded,
        activity=resources.activity,
        limit=limit,
        threshold=threshold,
        token=chosen or generated,
        is_same_person=None if chosen else _connection_owner_check(),
        more_routes=(*routes, workspace_route(views), *mcp.routes),
        more_middleware=(Middleware(WorkspaceRouter, views=views),),
        lifespan=mcp.open,
    )


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
