"""gateway start, status and stop."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from toolscript.core.errors import NotFound, SetupError, Unavailable
from toolscript.gateway.discovery import running_file, running_here
from toolscript.gateway.joining import connect, join, why_unusable
from toolscript.gateway.launch import start_in_background
from toolscript.gateway.model import GatewayHealth
from toolscript.gateway.record import RunningGateway, is_replaced, listens
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings

# How long a gateway may take to stop. One that takes longer is killed; its servers end with it.
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.05


def start(
    *,
    flags: Mapping[str, object],
    on_ready: Callable[..., None],
    background: bool,
    on_demand: bool = False,
    private: bool = False,
) -> None:
    """Serve until stopped; in the background, return as soon as the gateway accepts requests, whoever started it.

    `on_demand`: for a client that found none; that another process is faster is no error. `private`: for the
    process that started this one alone, until that ends; `on_ready` gets the token, too.
    """
    settings = load_gateway_settings(flags)
    running = None if private else running_file(settings).read()
    if background and running is not None and not why_unusable(running, settings):
        # A command may have started it in the meantime.
        on_ready(running.url)
        return
    if not (on_demand or private):
        _refuse_a_second(settings)
    from toolscript.gateway.runtime import require_model
    from toolscript.gateway.serve import serve, serve_private

    require_model(settings)
    if background:
        arguments = [word for word in sys.argv[1:] if word not in ("--background", "-b")]
        on_ready(start_in_background(settings.data_folder, arguments, environment(), until_ready=True).url)
    elif private:
        serve_private(settings, on_ready)
    else:
        serve(settings, on_ready, on_demand=on_demand)


def status(*, flags: Mapping[str, object]) -> tuple[RunningGateway | None, GatewayHealth | None]:
    """Return the recorded gateway, and the health of these config files' servers in it."""
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    url = settings.gateway_url or (running.url if running is not None else "")
    if not url or not listens(url):
        return running, None
    joined = join(replace(settings, gateway_alone=False, sources={}), starts=False)
    return running, None if joined is None else asyncio.run(joined.client.health())


def find(*, flags: Mapping[str, object]) -> RunningGateway | None:
    """Return the running gateway with its token; a token from the settings is in no file."""
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    return replace(running, token=running.token or settings.gateway_token) if running is not None else None


def find_workspace(*, flags: Mapping[str, object]) -> RunningGateway | None:
    """Return the running gateway with the address at which it serves these config files."""
    settings = load_gateway_settings(flags)
    running = find(flags=flags)
    if running is None:
        return None
    client = connect(settings, running)
    asyncio.run(client.health())
    return replace(running, url=client.url)


def stop(*, flags: Mapping[str, object]) -> RunningGateway:
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    if running is None:
        raise NotFound("no gateway is running for this data folder", hint="`toolscript gateway start` starts one")
    for sent in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        os.kill(running.pid, sent)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if running_here(settings) != running:
                return running
            time.sleep(LOOK_SECONDS)
    raise Unavailable(f"the gateway (process {running.pid}) has not stopped", hint="end the process yourself")


def _refuse_a_second(settings: GatewaySettings) -> None:
    running = running_file(settings).read()
    if running is not None and not is_replaced(running):
        raise SetupError(
            f"a gateway is already running at {running.url} (process {running.pid})",
            hint="`toolscript gateway stop` stops it",
        )
