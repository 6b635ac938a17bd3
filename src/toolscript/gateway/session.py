"""Runs a command against the running gateway, or against a gateway for the duration of the command."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, silent
from toolscript.gateway.discovery import T, find_running
from toolscript.gateway.model import LocalQuery, Need
from toolscript.gateway.settings import load_gateway_settings

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway


def ask(
    action: "Callable[[Gateway], Awaitable[T]]",
    *,
    flags: Mapping[str, object],
    need: Need,
    on_progress: OnProgress = silent,
) -> T:
    """Run an action against a gateway. Flag beats environment beats default."""
    settings = load_gateway_settings(flags)
    running = find_running(settings, refresh=need.refresh)
    if running is not None:
        return asyncio.run(_run(action, running))
    from toolscript.gateway.runtime import run_alone

    return asyncio.run(run_alone(action, settings, need, on_progress))


async def _run(action: "Callable[[Gateway], Awaitable[T]]", gateway: "Gateway") -> T:
    return await action(gateway)


def default_query(
    *, limit: int | None, threshold: float | None, kind: ItemKind | None, search_type: SearchType | None = None
) -> Callable[[str], LocalQuery]:
    """Return a factory of queries with a command's options, else with the settings."""
    settings = load_gateway_settings({"search_limit": limit, "search_threshold": threshold})
    return lambda text: LocalQuery(text, settings.search_limit, settings.search_threshold, kind, search_type)
