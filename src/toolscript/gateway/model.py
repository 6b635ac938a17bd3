"""Asks the gateway that is running, else one that lives as long as the question. Kept light: all commands pass."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from toolscript.adapters.config_files.here import ConfigPlace
from toolscript.adapters.config_files.trust import how_to_trust
from toolscript.adapters.http_clients.gateway import GatewayClient
from toolscript.adapters.running_gateway import RunningFile, RunningGateway, token_at
from toolscript.errors import ConfigInvalid
from toolscript.model.gateway import LocalQuery
from toolscript.model.items import ItemKind
from toolscript.model.progress import OnProgress, silent
from toolscript.model.queries import SearchType
from toolscript.settings.gateway import ENVIRONMENT, GatewaySettings, environment, load_gateway_settings

if TYPE_CHECKING:
    from toolscript.ports import Gateway

FIND_SECONDS = 1.0
# What a running gateway decided when it started: a command that is told otherwise works alone.
CHOICES = ("search_model", "search_alpha", "search_device", "search_no_cache")

logger = logging.getLogger(__name__)
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
    """The gateway of this address, else the one that runs for these config files, unless it is told otherwise."""
    if settings.gateway_url:
        token = settings.gateway_token or token_at(settings.data_folder / "run", settings.gateway_url)
        return GatewayClient(settings.gateway_url, token=token, search_type=_told_type(settings))
    running = running_here(settings)
    if running is None:
        _say_who_else_runs(settings)
        return None
    if why := _why_not(running, settings):
        logger.warning("the gateway at %s is not used: %s", running.url, why)
        return None
    return GatewayClient(
        running.url,
        token=settings.gateway_token or running.token,
        find_again=lambda: _running_now(settings),
        note=lambda: _untrusted_note(settings, running),
        search_type=_told_type(settings),
    )


def _told_type(settings: GatewaySettings) -> SearchType | None:
    """What was left to its default is no wish: the gateway has its own."""
    return SearchType(settings.search_type) if "search_type" in settings.told else None


def _untrusted_note(settings: GatewaySettings, running: RunningGateway) -> str:
    """The gateway of another folder knows nothing of the file in this one."""
    if running_file(settings).read() == running:
        return ""
    try:
        config = place_of(settings).read(environment())
    except ConfigInvalid:
        return ""
    waiting = [f"not searched: the servers of {path}; {how_to_trust(path)}" for path in sorted(config.untrusted)]
    projects = config.used.intersection(place_of(settings).paths()[1:])
    late = [f"{path} is trusted now: start this again to have its servers" for path in sorted(projects)]
    return "; ".join([*waiting, *late])


def _why_not(running: RunningGateway, settings: GatewaySettings) -> str:
    """What was left to its default is no wish: the gateway that is there will do."""
    for name in CHOICES:
        has, wanted = running.choices.get(name), getattr(settings, name)
        if name in settings.told and has != wanted:
            return f"it has {name} {has}, and this command was told {wanted}"
    return "" if listens(running.url) else "it does not listen"


def _say_who_else_runs(settings: GatewaySettings) -> None:
    own, *projects = place_of(settings).paths()
    other = RunningFile(settings.data_folder / "run", [own]).read() if projects else None
    if other is not None:
        logger.warning(
            "the gateway at %s is not used: %s has servers of its own, which are started for this command alone "
            "(`toolscript gateway start` in this folder keeps them running)",
            other.url,
            projects[0],
        )


def _running_now(settings: GatewaySettings) -> tuple[str, str] | None:
    running = running_here(settings)
    return None if running is None else (running.url, settings.gateway_token or running.token)


def choices_of(settings: GatewaySettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in CHOICES}


def running_here(settings: GatewaySettings) -> RunningGateway | None:
    return next(filter(None, (file.read() for file in running_files(settings))), None)


def running_file(settings: GatewaySettings) -> RunningFile:
    """The one that a gateway of this place writes."""
    return running_files(settings)[0]


def running_files(settings: GatewaySettings) -> list[RunningFile]:
    """A person's own config file is always one of them; a project's where it names servers.

    While a project's file is not trusted it has no servers, and the person's own gateway will do.
    """
    place, folder = place_of(settings), settings.data_folder / "run"
    own, *projects = place.paths()
    try:
        config = place.read(environment())
    except ConfigInvalid:
        # A gateway that runs stays with what it read before.
        return [RunningFile(folder, [own, *(path for path in projects if path.exists())])]
    naming = [path for path in projects if path in config.used | config.untrusted]
    first = RunningFile(folder, [own, *naming])
    return [first] if config.used.issuperset(naming) else [first, RunningFile(folder, [own])]


def place_of(settings: GatewaySettings) -> ConfigPlace:
    return ConfigPlace(settings.config, by_person=settings.told.get("config") != ENVIRONMENT)


def listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), FIND_SECONDS).close()
    except OSError:
        return False
    return True


def usual_query(
    *, limit: int | None, threshold: float | None, kind: ItemKind | None, search_type: SearchType | None = None
) -> Callable[[str], LocalQuery]:
    """Queries with what a command was told, else what the settings say."""
    settings = load_gateway_settings({"search_limit": limit, "search_threshold": threshold})
    return lambda text: LocalQuery(text, settings.search_limit, settings.search_threshold, kind, search_type)
