"""gateway start, status and stop."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL, Popen

from toolscript.core.errors import NotFound, SetupError, Unavailable
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.discovery import RunningGateway, listens, running_file, running_here, token_at
from toolscript.gateway.model import GatewayHealth
from toolscript.gateway.settings import GatewaySettings, load_gateway_settings

START_SECONDS = 20.0
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.05
MAX_LOG = 4_096


def start(*, flags: Mapping[str, object], on_ready: Callable[[str], None], background: bool) -> None:
    """Serve until stopped; in the background, return as soon as the gateway accepts requests."""
    settings = load_gateway_settings(flags)
    _refuse_a_second(settings)
    from toolscript.gateway.runtime import require_model
    from toolscript.gateway.serve import serve

    require_model(settings)
    if background:
        on_ready(_start_in_background(settings))
    else:
        serve(settings, on_ready)


def status(*, flags: Mapping[str, object]) -> tuple[RunningGateway | None, GatewayHealth | None]:
    """Return the recorded gateway of these config files, and the health it reports."""
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    url = settings.gateway_url or (running.url if running is not None else "")
    if not url or not listens(url):
        return running, None
    token = settings.gateway_token or token_at(settings.data_folder / "run", url)
    return running, asyncio.run(GatewayClient(url, token=token).health())


def find(*, flags: Mapping[str, object]) -> RunningGateway | None:
    """Return the gateway of these config files with its token; a token from the settings is in no file."""
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    return replace(running, token=running.token or settings.gateway_token) if running is not None else None


def stop(*, flags: Mapping[str, object]) -> RunningGateway:
    settings = load_gateway_settings(flags)
    running = running_here(settings)
    if running is None:
        raise NotFound(
            "no gateway is running for these config files", hint="`toolscript gateway start` starts one"
        )
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running_here(settings) == running:
        if time.monotonic() > deadline:
            raise Unavailable(
                f"the gateway (process {running.pid}) has not stopped", hint="end the process yourself"
            )
        time.sleep(LOOK_SECONDS)
    return running


def _refuse_a_second(settings: GatewaySettings) -> None:
    running = running_file(settings).read()
    if running is not None:
        raise SetupError(
            f"a gateway is already running at {running.url} (process {running.pid})",
            hint="`toolscript gateway stop` stops it",
        )


def _start_in_background(settings: GatewaySettings) -> str:
    log = settings.data_folder / "gateway.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = Popen(_same_command(), stdin=DEVNULL, stdout=DEVNULL, stderr=output, start_new_session=True)  # noqa: S603
    except OSError as error:
        raise SetupError(
            f"{log} cannot be written: {error.strerror}", hint="choose another folder with --data-dir"
        ) from error
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        running = running_file(settings).read()
        if running is not None and running.pid == child.pid:
            return running.url
        time.sleep(LOOK_SECONDS)
    reason, hint = _last_error(log)
    raise SetupError(
        f"the gateway did not start{reason and f': {reason}'}", hint="; ".join(filter(None, (hint, f"see {log}")))
    )


def _last_error(log: Path) -> tuple[str, str]:
    """Return the last error of the log and its hint, else the last line."""
    with suppress(OSError, UnicodeDecodeError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MAX_LOG))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [number for number, line in enumerate(lines) if line.startswith("error: ")]
        if not errors:
            return (lines[-1] if lines else ""), ""
        hints = [line.removeprefix("hint: ") for line in lines[errors[-1] :] if line.startswith("hint: ")]
        return lines[errors[-1]].removeprefix("error: "), hints[0] if hints else ""
    return "", ""


def _same_command() -> Sequence[str]:
    """Return this command's argv without the background option."""
    return [
        sys.executable,
        "-m",
        "toolscript",
        *(word for word in sys.argv[1:] if word not in ("--background", "-b")),
    ]
