"""Asks the gateway that is running, else one that lives as long as the question. Kept light: all commands pass."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from toolscript.adapters.config_files.here import files_here
from toolscript.adapters.http_clients.gateway import GatewayClient
from toolscript.adapters.running_gateway import RunningFile
from toolscript.model.gateway import LocalQuery
from toolscript.model.items import ItemKind
from toolscript.model.progress import OnProgress, silent
from toolscript.settings import GatewaySettings, load_gateway_settings

if TYPE_CHECKING:
    from toolscript.ports import Gateway

FIND_SECONDS = 1.0
# What a running gateway decided when it started: a command that is told otherwise works alone.
CHOICES = ("search_model", "search_alpha", "search_device", "search_no_cache")

T = TypeVar("T")


@dataclass(frozen=True)
class Need:
    """What a command needs of a gateway: its model; tools as they are now, not as they are remembered; one server.

    `refresh` asks the servers again even when a gateway is running.
    """

    model: bool = True
    remembers: bool = True
    refresh: bool = False
    only_server: str | None = None


def ask(
    action: "Callable[[Gateway], Awaitable[T]]",
    *,
    flags: Mapping[str, object],
    need: Need,
    on_progress: OnProgress = silent,
) -> T:
    """Runs an action against a gateway. Flag beats environment beats default."""
    settings = load_gateway_settings(flags)
    running = None if need.refresh and not settings.gateway_url else find_running(settings)
    if running is not None:
        return asyncio.run(_run(action, running))
    from toolscript.gateway.opening import run_alone

    return asyncio.run(run_alone(action, settings, need, on_progress))


async def _run(action: "Callable[[Gateway], Awaitable[T]]", gateway: "Gateway") -> T:
    return await action(gateway)


def find_running(settings: GatewaySettings) -> GatewayClient | None:
    """The gateway of this address, else the one that runs for these config files as these settings say."""
    if settings.gateway_url:
        return GatewayClient(settings.gateway_url, token=settings.gateway_token)
    running = running_file(settings).read()
    if running is None or running.choices != choices_of(settings) or not listens(running.url):
        return None
    return GatewayClient(running.url, token=settings.gateway_token, find_again=lambda: _url_now(settings))


def _url_now(settings: GatewaySettings) -> str | None:
    running = running_file(settings).read()
    return None if running is None else running.url


def choices_of(settings: GatewaySettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in CHOICES}


def running_file(settings: GatewaySettings) -> RunningFile:
    """A person's own config file is always one of them; a project's where there is one."""
    if settings.config:
        return RunningFile(settings.data_folder / "run", [Path(settings.config).expanduser().absolute()])
    own, *projects = files_of(settings)
    return RunningFile(settings.data_folder / "run", [own, *(path for path in projects if path.exists())])


def files_of(settings: GatewaySettings) -> Sequence[Path]:
    return files_here(settings.config)


def listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), FIND_SECONDS).close()
    except OSError:
        return False
    return True


def usual_query(
    *, limit: int | None, threshold: float | None, kind: ItemKind | None
) -> Callable[[str], LocalQuery]:
    """Queries with what a command was told, else what the settings say."""
    settings = load_gateway_settings({"search_limit": limit, "search_threshold": threshold})
    return lambda text: LocalQuery(text, settings.search_limit, settings.search_threshold, kind)
