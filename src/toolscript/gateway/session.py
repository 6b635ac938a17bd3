"""Runs a command against the running gateway, or against a gateway for the duration of the command."""

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, silent
from toolscript.gateway.callers import CLI, client_is
from toolscript.gateway.discovery import T, find_running
from toolscript.gateway.model import LocalQuery, Need
from toolscript.gateway.settings import load_gateway_settings

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway


def ask(
    action: "Callable[[Gateway], Coroutine[Any, Any, T]]",
    *,
    flags: Mapping[str, object],
    need: Need,
    on_progress: OnProgress = silent,
) -> T:
    """Run an action against a gateway. Flag beats environment beats default."""
    settings = load_gateway_settings(flags)
    running = find_running(settings, refresh=need.refresh, blocks=True)
    with client_is(CLI):
        if running is not None:
            return _finished(action(running))
        import asyncio

        from toolscript.gateway.runtime import run_alone

        return asyncio.run(run_alone(action, settings, need, on_progress))


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
