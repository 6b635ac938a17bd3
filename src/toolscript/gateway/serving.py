"""A gateway that stays: over HTTP with MCP at /mcp, or over stdio for one client."""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from subprocess import DEVNULL, Popen

from toolscript import __version__
from toolscript.adapters.config_files import Config, config_changes
from toolscript.adapters.gateway_files import OfferFile
from toolscript.adapters.running_gateway import RunningGateway
from toolscript.errors import ConfigInvalid, NotFound, SetupError, Unavailable
from toolscript.gateway.asking import files_of, find_running, running_file
from toolscript.gateway.mcp_routes import McpRoutes
from toolscript.gateway.opening import (
    REMEMBERED_SECONDS,
    Parts,
    cache_folder,
    left_out,
    open_parts,
    read_settings,
)
from toolscript.model.gateway import GatewayHealth
from toolscript.model.progress import silent
from toolscript.settings import GatewaySettings, load_gateway_settings
from toolscript.surfaces.plain_logs import configure_plain_logs

LOOPBACK = "127.0.0.1"
START_SECONDS = 20.0
STOP_SECONDS = 15.0

logger = logging.getLogger(__name__)


def start(*, flags: Mapping[str, object], on_ready: Callable[[str], None], background: bool) -> None:
    """Serves until it is told to stop; in the background, comes back as soon as it serves."""
    settings = load_gateway_settings(flags)
    _refuse_a_second(settings)
    if background:
        on_ready(_start_in_background(settings))
        return
    configure_plain_logs(settings.gateway_log_level)
    asyncio.run(_serve(settings, on_ready))


def status(*, flags: Mapping[str, object]) -> tuple[RunningGateway | None, GatewayHealth | None]:
    """What is written down about a gateway for these config files, and what it says itself."""
    settings = load_gateway_settings(flags)
    client = find_running(settings)
    if client is None:
        return running_file(settings).read(), None
    return running_file(settings).read(), asyncio.run(client.health())


def stop(*, flags: Mapping[str, object]) -> RunningGateway:
    settings = load_gateway_settings(flags)
    running = running_file(settings).read()
    if running is None:
        raise NotFound(
            "no gateway is running for these config files", hint="`toolscript gateway start` starts one"
        )
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running_file(settings).read() is not None:
        if time.monotonic() > deadline:
            raise Unavailable(
                f"the gateway (process {running.pid}) has not stopped", hint="end the process yourself"
            )
        time.sleep(0.05)
    return running


def serve_stdio(*, flags: Mapping[str, object]) -> None:
    """One client on stdin and stdout: through the gateway that is running, else with one of its own."""
    from toolscript.surfaces.mcp.endpoint import create_mcp_server, run_stdio

    settings = load_gateway_settings(flags)
    configure_plain_logs(settings.gateway_log_level)
    running = find_running(settings)

    async def run() -> None:
        if running is not None:
            await run_stdio(create_mcp_server(running, __version__))
            return
        async with open_following(settings) as parts:
            await run_stdio(create_mcp_server(parts.gateway, __version__))

    asyncio.run(run())


@asynccontextmanager
async def open_following(settings: GatewaySettings) -> AsyncIterator[Parts]:
    """A gateway that follows its config files and answers from memory until its servers do."""
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(open_parts(settings, silent))
        stop_watching = asyncio.Event()
        stack.callback(stop_watching.set)
        # Looked at before they are read, so that no change falls between the two.
        changes = config_changes(files_of(settings), stop_watching)
        config = _use_config(settings, parts)
        if not parts.indexing.remembers:
            # From here on they are known to be starting: an index without tools is then no answer yet.
            parts.servers.use(config.servers)
        await parts.indexing.has_begun()
        following = asyncio.create_task(_follow(settings, parts, config, changes))
        stack.callback(following.cancel)
        yield parts


def _use_config(settings: GatewaySettings, parts: Parts) -> Config:
    config = read_settings(settings)
    most_seconds = 0.0 if settings.search_no_cache else REMEMBERED_SECONDS
    remembered = OfferFile(cache_folder(settings) / "tools", config.servers).recall(most_seconds)
    parts.gateway.left_out = left_out(config)
    for state in parts.gateway.left_out:
        logger.error("a server cannot be started", extra={"server": state.name, "reason": state.error})
    parts.indexing.use(config.servers, remembered.offers)
    return config


async def _follow(settings: GatewaySettings, parts: Parts, config: Config, changes: AsyncIterator[None]) -> None:
    """The model first where tools are remembered: it makes answers better, and servers take longer."""
    if parts.indexing.ready:
        await parts.indexing.model_is_decided()
    parts.servers.use(config.servers)
    async for _ in changes:
        try:
            parts.servers.use(_use_config(settings, parts).servers)
        except ConfigInvalid as error:
            logger.error("the config file cannot be used; the servers stay as they were: %s", error.message)
        else:
            logger.warning("the config file changed and was read again")


async def _serve(settings: GatewaySettings, on_ready: Callable[[str], None]) -> None:
    import uvicorn

    from toolscript.surfaces.gateway_http import create_gateway_app

    with _listening(settings.gateway_port) as listener:
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        async with open_following(settings) as parts:
            mcp = McpRoutes(parts.gateway, parts.spec_named, parts.indexing.model_is_decided)
            app = create_gateway_app(
                parts.gateway,
                limit=settings.search_limit,
                threshold=settings.search_threshold,
                token=settings.gateway_token,
                more_routes=mcp.routes,
                lifespan=mcp.open,
            )
            running_file(settings).write(url, __version__, settings.search_model)
            on_ready(url)
            config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=3)
            # It raises the signal that stopped it once more when it has stopped, which would end this process
            # before its servers are ended and its file is removed.
            signal.signal(signal.SIGTERM, lambda *_: None)
            try:
                await uvicorn.Server(config).serve(sockets=[listener])
            finally:
                running_file(settings).remove()


def _listening(port: int) -> socket.socket:
    # The protocol is named so that asyncio sends small answers at once (TCP_NODELAY).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise SetupError(
            f"port {port} of this machine cannot be used: {error.strerror}",
            hint="give another one with --port, or 0 for any that is free",
        ) from error
    listener.listen(128)
    return listener


def _refuse_a_second(settings: GatewaySettings) -> None:
    running = running_file(settings).read()
    if running is not None:
        raise SetupError(
            f"a gateway is already running at {running.url} (process {running.pid})",
            hint="`toolscript gateway stop` stops it",
        )


def _start_in_background(settings: GatewaySettings) -> str:
    log = settings.data_folder / "gateway.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = Popen(_same_command(), stdin=DEVNULL, stdout=DEVNULL, stderr=output, start_new_session=True)  # noqa: S603
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        running = running_file(settings).read()
        if running is not None and running.pid == child.pid:
            return running.url
        time.sleep(0.05)
    raise SetupError("the gateway did not start", hint=f"see {log}")


def _same_command() -> Sequence[str]:
    """This very command, in the foreground."""
    return [
        sys.executable,
        "-m",
        "toolscript",
        *(word for word in sys.argv[1:] if word not in ("--background", "-b")),
    ]
