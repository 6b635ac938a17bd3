"""Runs a command against the running gateway, or against a gateway for the duration of the command."""

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, silent
from toolscript.gateway.callers import CLI, client_is
from toolscript.gateway.discovery import CHOICES
from toolscript.gateway.joining import Joined, join, until_listed
from toolscript.gateway.model import LocalQuery, Need
from toolscript.gateway.settings import FLAG, load_gateway_settings

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway

T = TypeVar("T")

LOOK_SECONDS = 0.1


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
    with client_is(CLI):
        joined = join(settings, refresh=need.refresh, blocks=True, starts=starts, on_start=on_start)
        if joined is not None:
            return _asked(action, joined, need, on_progress)
        import asyncio

        from toolscript.gateway.runtime import run_alone

        return asyncio.run(run_alone(action, settings, need, on_progress))


def _asked(
    action: "Callable[[Gateway], Coroutine[Any, Any, T]]", joined: Joined, need: Need, on_progress: OnProgress
) -> T:
    """Ask the gateway. Where it, or this workspace in it, is new, ask once its servers have been listed.

    A call waits for its own server, and is made once.
    """
    client = joined.client
    if joined.is_new and need.only_server is None:
        _finished(until_listed(client, on_progress, _pause))
    result = _finished(action(client))
    if not client.opened_workspace or need.is_call or joined.is_new:
        return result
    _finished(until_listed(client, on_progress, _pause))
    return _finished(action(client))


async def _pause() -> None:
    time.sleep(LOOK_SECONDS)  # noqa: ASYNC251 - nothing else runs in a command that asks


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
