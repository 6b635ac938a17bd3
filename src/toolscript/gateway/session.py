"""Runs a command against the running gateway, or against a gateway for the duration of the command."""

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolscript.core.items import ItemKind
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.gateway.discovery import CHOICES
from toolscript.gateway.joining import join
from toolscript.gateway.model import LocalQuery, Need
from toolscript.gateway.settings import FLAG, load_gateway_settings

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway

T = TypeVar("T")

# How long a command waits for slow servers once others have answered.
PATIENCE_SECONDS, LOOK_SECONDS = 10.0, 0.1


def ask(
    action: "Callable[[Gateway], Coroutine[Any, Any, T]]",
    *,
    flags: Mapping[str, object],
    need: Need,
    on_progress: OnProgress = silent,
    on_start: Callable[[str], None] = lambda _: None,
) -> T:
    """Run an action against the running gateway, which is started if none runs, else against one of its own.

    Flag beats environment beats default. A model that only this command wants is no reason to start a gateway.
    """
    settings = load_gateway_settings(flags)
    starts = not any(settings.sources.get(name) == FLAG for name in CHOICES)
    joined = join(settings, refresh=need.refresh, blocks=True, starts=starts, on_start=on_start)
    if joined is not None:
        if joined.is_new:
            _wait_for_servers(joined.client, need, on_progress)
        return _finished(action(joined.client))
    import asyncio

    from toolscript.gateway.runtime import run_alone

    return asyncio.run(run_alone(action, settings, need, on_progress))


def _wait_for_servers(client: "Gateway", need: Need, on_progress: OnProgress) -> None:
    """Wait until a gateway that has just started has listed its servers; once one has answered, a while longer.

    Those that failed a short while ago, or whose tools are cached, are not waited for.
    """
    if need.only_server is not None:
        # A call waits for its own server.
        return
    ends_at = None
    while True:
        states = _finished(client.servers())
        waiting = [state for state in states if state.status is ServerStatus.STARTING]
        on_progress(Progress("starting servers", len(states) - len(waiting), len(states)))
        if len(waiting) < len(states) and ends_at is None:
            ends_at = time.monotonic() + PATIENCE_SECONDS
        if not waiting or (ends_at is not None and time.monotonic() > ends_at):
            return
        time.sleep(LOOK_SECONDS)


def _finished(action: "Coroutine[Any, Any, T]") -> T:
    """Return the result of an action that waits for nothing. An event loop takes longer to import than to ask."""
    try:
        action.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    raise RuntimeError("a command waits for more than its gateway")


def default_query(
    *, limit: int | None, threshold: float | None, kind: ItemKind | None, search_type: SearchType | None = None
) -> Callable[[str], LocalQuery]:
    """Return a factory of queries with a command's options, else with the settings."""
    settings = load_gateway_settings({"search_limit": limit, "search_threshold": threshold})
    return lambda text: LocalQuery(text, settings.search_limit, settings.search_threshold, kind, search_type)
