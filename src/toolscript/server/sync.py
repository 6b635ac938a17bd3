"""sync: what comes into the catalog, from a file or from MCP servers."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from toolscript.adapters.config_files.here import ConfigPlace, left_out
from toolscript.adapters.jsonl_items import count_lines, read_items
from toolscript.errors import NotFound, SetupError
from toolscript.model.progress import OnProgress
from toolscript.model.servers import ServerSpec
from toolscript.ports import ToolServers
from toolscript.service.catalog_alone import open_catalog
from toolscript.settings.gateway import environment, load_gateway_settings
from toolscript.settings.service import load_settings
from toolscript.sync.following_servers import FollowingServers
from toolscript.sync.import_items import ImportReport, import_items
from toolscript.sync.server_items import ServerReport, ServerSync, own_source

logger = logging.getLogger(__name__)


def sync_file(path: Path, *, source: str, prune: bool, on_progress: OnProgress) -> ImportReport:
    async def run() -> ImportReport:
        async with open_catalog(load_settings()) as catalog:
            return await import_items(
                catalog,
                own_source(source),
                read_items(path),
                prune=prune,
                empty_hint=f"`toolscript sources remove {quote(source)}` removes all of it; or leave --prune out",
                total=count_lines(path),
                on_progress=on_progress,
            )

    return asyncio.run(run())


def sync_servers(
    *, config: str, only: Sequence[str], prune: bool, wait_seconds: float, on_progress: OnProgress
) -> Sequence[ServerReport]:
    async def run() -> Sequence[ServerReport]:
        chosen = choose_servers(_place(config), only)
        async with open_catalog(load_settings()) as catalog, open_servers(chosen.specs) as servers:
            reports = await ServerSync(catalog, servers, prune, on_progress).once(wait_seconds)
            return sorted([*reports, *chosen.left_out], key=lambda one: one.server)

    return asyncio.run(run())


def watch_servers(
    *, config: str, only: Sequence[str], prune: bool, on_report: Callable[[ServerReport], None]
) -> None:
    """Until it is told to stop."""

    async def run() -> None:
        chosen = choose_servers(_place(config), only)
        async with open_catalog(load_settings()) as catalog, open_servers(chosen.specs) as servers:
            for report in chosen.left_out:
                on_report(report)
            following = FollowingServers(ServerSync(catalog, servers, prune), on_report)
            task = asyncio.ensure_future(following.run())
            for sign in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(sign, task.cancel)
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(run())


def _place(explicit: str) -> ConfigPlace:
    """The file that is named, by the caller or by the environment; none: the usual ones."""
    settings = load_gateway_settings({"config": explicit or None})
    return ConfigPlace(settings.config, by_person=bool(explicit))


@dataclass(frozen=True)
class Chosen:
    """Servers to ask, and those that cannot be started as they are written down."""

    specs: Sequence[ServerSpec]
    left_out: Sequence[ServerReport]


def choose_servers(place: ConfigPlace, only: Sequence[str]) -> Chosen:
    config = place.read_and_warn(environment())
    unusable = {state.name: ServerReport(state.name, failed=state.error) for state in left_out(config)}
    known = sorted({*(spec.name for spec in config.servers), *unusable})
    if not known:
        raise SetupError(
            "there are no MCP servers in the config files",
            hint="`toolscript config import` takes over those of your other clients",
        )
    if unknown := sorted(set(only) - set(known)):
        raise NotFound(
            f"no server is called {', '.join(repr(one[:80]) for one in unknown)}",
            hint=f"the servers are: {', '.join(known)}",
            details={"servers": unknown},
        )
    wanted = set(only or known)
    specs = [spec for spec in config.servers if spec.name in wanted]
    return Chosen(specs, [unusable[name] for name in sorted(wanted & unusable.keys())])


@asynccontextmanager
async def open_servers(specs: Sequence[ServerSpec]) -> AsyncIterator[ToolServers]:
    """These servers, started; ended whatever happens."""
    # Imported here: what speaks their protocol takes longer to load than a file takes to be synced.
    from toolscript.adapters.mcp_servers import McpServers

    servers = McpServers()
    try:
        servers.use(specs)
        yield servers
    finally:
        await servers.close()
