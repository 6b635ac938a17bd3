"""How a client joins the gateway of its user and data folder, or starts it."""

import logging
import math
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from toolscript.core.errors import SetupError
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.client import GatewayClient, Place
from toolscript.gateway.discovery import CHOICES, place_of, running_here
from toolscript.gateway.model import Gateway
from toolscript.gateway.record import API, RUN, RunningGateway, is_replaced, listens, token_at
from toolscript.gateway.settings import FLAG, GatewaySettings, environment, usual_data_dir
from toolscript.gateway.workspace import Survey

REFRESHES = "--refresh queries the servers again, for this command alone"
# How long a client waits for further servers once one has answered. They start a few at a time.
PATIENCE_SECONDS = 10.0
END_SECONDS, LOOK_SECONDS = 20.0, 0.02
STARTED = "started the gateway in the background; `toolscript gateway stop` ends it, --alone works without"

logger = logging.getLogger(__name__)


class Joined:
    """A client of the gateway, and whether this process has just started it."""

    def __init__(self, client: GatewayClient, *, is_new: bool = False) -> None:
        self.client = client
        self.is_new = is_new


def join(
    settings: GatewaySettings,
    *,
    refresh: bool = False,
    blocks: bool = False,
    starts: bool = True,
    on_start: Callable[[str], None] = lambda _: None,
) -> Joined | None:
    """Join the gateway at the configured address, else that of this data folder; start it if none runs.

    None: work alone. `refresh`: the command queries the servers itself. `blocks`: requests of the client block
    their thread. Whatever keeps a running gateway from use is logged.
    """
    if settings.gateway_url:
        # A shell has the token of a client, from `gateway env`; a command of the person has their own.
        token = token_at(settings.data_folder / RUN, settings.gateway_url) or settings.gateway_token
        place = Place(settings.gateway_url, token)
        return Joined(GatewayClient(place, search_type=_explicit_type(settings), blocks=blocks))
    if settings.gateway_alone:
        return None
    may_start = starts and settings.gateway_on_demand
    running = running_here(settings)
    is_new = running is None and may_start and not refresh
    if is_new:
        running = _launched(settings, on_start=on_start)
    elif running is None:
        _warn_of_another_folder(settings)
    elif may_start and is_replaced(running):
        is_new = (replaced := _launched(settings, replacing=running)) is not None
        running = replaced or running
    if running is None:
        return None
    if why := REFRESHES if refresh else why_unusable(running, settings):
        logger.warning("the gateway at %s is not used: %s", running.url, why)
        return None
    return Joined(connect(settings, running, blocks=blocks, may_start=may_start), is_new=is_new)


def find_running(settings: GatewaySettings) -> GatewayClient | None:
    """Return a client of the running gateway if this process would use it."""
    joined = join(settings, starts=False)
    return joined.client if joined is not None else None


async def until_listed(client: Gateway, on_progress: OnProgress, pause: Callable[[], Awaitable[None]]) -> None:
    """Wait until no server is starting; each time one has answered, a while longer for the others.

    Those that failed a short while ago, or whose tools are cached, are not waited for.
    """
    ends_at, answered = math.inf, 0
    while True:
        states = await client.servers()
        waiting = [state for state in states if state.status is ServerStatus.STARTING]
        on_progress(Progress("starting servers", len(states) - len(waiting), len(states)))
        if len(states) - len(waiting) > answered:
            ends_at, answered = time.monotonic() + PATIENCE_SECONDS, len(states) - len(waiting)
        if not waiting or time.monotonic() > ends_at:
            return
        await pause()


def connect(
    settings: GatewaySettings, running: RunningGateway, *, blocks: bool = False, may_start: bool = False
) -> GatewayClient:
    """Return a client of this gateway that sees what the config files of this folder name."""
    survey = Survey(place_of(settings), environment())

    def place(found: RunningGateway) -> Place:
        surveyed = survey.look_for(found.workspace)
        workspace = surveyed.workspace
        token = found.token or settings.gateway_token
        return Place(found.url, token, None if workspace.id == found.workspace else workspace)

    found = [running]

    def find_again() -> Place | None:
        again = _after_the_end(settings) or (_launched(settings) if may_start else None)
        if again is None:
            return None
        found[0] = again
        return place(again)

    return GatewayClient(
        place(running),
        find_again=find_again,
        look_again=lambda: place(found[0]),
        note=lambda: survey.look().note,
        search_type=_explicit_type(settings),
        blocks=blocks,
    )


def _after_the_end(settings: GatewaySettings) -> RunningGateway | None:
    """Return the gateway that runs now. One that is ending no longer listens, and has its record for a moment."""
    deadline = time.monotonic() + END_SECONDS
    while (running := running_here(settings)) is not None and not listens(running.url):
        if time.monotonic() > deadline:
            return None
        time.sleep(LOOK_SECONDS)
    return running


def _launched(
    settings: GatewaySettings,
    *,
    replacing: RunningGateway | None = None,
    on_start: Callable[[str], None] = lambda _: None,
) -> RunningGateway | None:
    if not _is_writable(settings):
        return None
    # Starting processes takes a while to import, and few commands do it.
    from toolscript.gateway.launch import launch, words_of

    given = {name: str(getattr(settings, name)) for name, source in settings.sources.items() if source == FLAG}
    try:
        running = launch(settings.data_folder, words_of(given), environment(), replacing=replacing)
    except SetupError as error:
        logger.warning("%s (%s)", error.message, error.hint)
        return None
    on_start(STARTED)
    return running


def _is_writable(settings: GatewaySettings) -> bool:
    """Return whether a gateway can keep its record: without a writable home folder every command works alone."""
    folder = settings.data_folder
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
    except PermissionError:
        return False
    return existing.is_dir() and os.access(existing, os.W_OK)


def _explicit_type(settings: GatewaySettings) -> SearchType | None:
    """Return the search type if it was set explicitly; otherwise the gateway's default applies."""
    return SearchType(settings.search_type) if "search_type" in settings.sources else None


def why_unusable(running: RunningGateway, settings: GatewaySettings) -> str:
    """Return why this gateway cannot be used, or an empty string. Only explicit settings count, not defaults."""
    if running.api != API:
        return f"it is version {running.version}, which this version cannot use"
    for name in CHOICES:
        actual, requested = running.choices.get(name), getattr(settings, name)
        if name in settings.sources and actual != requested:
            return f"it has {name} {actual}, and this command has {requested}"
    return "" if listens(running.url) else "it does not listen"


def _warn_of_another_folder(settings: GatewaySettings) -> None:
    if settings.sources.get("data_dir") == FLAG:
        usual = running_here(replace(settings, data_dir=usual_data_dir()))
        if usual is not None:
            reason = f"it has another --data-dir than {settings.data_dir}"
            logger.warning("the gateway at %s is not used: %s", usual.url, reason)
