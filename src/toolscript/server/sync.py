"""sync: imports items from files and MCP servers into the catalog; lists sources, items and changes."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TypeVar
from urllib.parse import quote as quote_path

from toolscript.core.audit import Counted
from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.items import Item, RefusedItem
from toolscript.core.mcp_client.model import ServerSpec, ToolServers, without_server_output
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.postgres.pool import Pool
from toolscript.core.taxonomy import Actor
from toolscript.core.values import OnProgress
from toolscript.gateway.config.read import ConfigPlace, left_out
from toolscript.gateway.discovery import with_secrets
from toolscript.gateway.settings import environment, load_gateway_settings, usual_data_dir
from toolscript.server.audit import recorded
from toolscript.server.catalog_store import open_catalog, open_catalog_pool
from toolscript.server.settings import load_settings
from toolscript.tools.catalog.files import count_lines, read_items
from toolscript.tools.catalog.items import (
    GENTLE_BATCH,
    ContinuousSync,
    ImportReport,
    ServerReport,
    ServerSync,
    import_items,
    own_source,
    remove_source,
    source_of,
)
from toolscript.tools.catalog.jobs import JobClient, JobRunner, Outcome
from toolscript.tools.model.catalog import (
    CatalogItem,
    ChangeDetails,
    ChangeState,
    ItemChange,
    ItemFilter,
    ItemSource,
    SyncJob,
)
from toolscript.tools.ports import Catalog, CatalogContents, SyncJobs
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents

T = TypeVar("T")
WAIT_SECONDS = 30.0
MAX_SOURCE = 500
# In the audit.
MAX_IDS_SHOWN = 50

logger = logging.getLogger(__name__)


def sync_file(path: Path, *, source: str, prune: bool, namespace: str, on_progress: OnProgress) -> ImportReport:
    async def run() -> ImportReport:
        async with open_catalog(load_settings()) as catalog:
            return await import_items(
                catalog.of(namespace),
                own_source(source),
                read_items(path),
                prune=prune,
                empty_hint=f"`{_removal(source, namespace)}` removes all of it; or leave --prune out",
                total=count_lines(path),
                on_progress=on_progress,
            )

    with recorded("items.import", source, namespace) as change:
        report = asyncio.run(run())
        change.count = report.changes
    return report


def sync_servers(
    *,
    config: str,
    only: Sequence[str],
    prune: bool,
    namespace: str,
    wait_seconds: float,
    on_progress: OnProgress,
) -> Sequence[ServerReport]:
    async def run() -> Sequence[ServerReport]:
        chosen = choose_servers(_config_place(config), only)
        async with open_catalog(load_settings()) as catalog, open_servers(chosen.specs) as servers:
            reports = await ServerSync(catalog.of(namespace), servers, prune, on_progress).once(wait_seconds)
            return sorted([*reports, *chosen.left_out], key=lambda report: report.server)

    with recorded("servers.sync", ", ".join(only) or "all", namespace) as change:
        reports = asyncio.run(run())
        change.count = _changes_of(reports)
    return reports


def watch_servers(
    *,
    config: str,
    only: Sequence[str],
    prune: bool,
    namespace: str,
    on_report: Callable[[ServerReport], None],
) -> None:
    """Sync whenever a server's list changes, until a signal stops it. What it changed in all is one entry."""
    counted = Counted()

    def recording_report(report: ServerReport) -> None:
        counted.count += _changes_of([report])
        on_report(report)

    async def run() -> None:
        chosen = choose_servers(_config_place(config), only)
        async with open_catalog(load_settings()) as catalog, open_servers(chosen.specs) as servers:
            for report in chosen.left_out:
                on_report(report)
            sync = ServerSync(catalog.of(namespace), servers, prune)
            following = ContinuousSync(sync, recording_report)
            task = asyncio.ensure_future(following.run())
            for sign in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(sign, task.cancel)
            with suppress(asyncio.CancelledError):
                await task

    with recorded("servers.sync", ", ".join(only) or "all", namespace, counted=counted):
        asyncio.run(run())


def _config_place(explicit: str) -> ConfigPlace:
    """Return the config file named by the user or the environment, or else the default ones."""
    settings = load_gateway_settings({"config": explicit or None})
    return with_secrets(ConfigPlace(settings.config, by_person=bool(explicit)), settings.data_folder)


@dataclass(frozen=True)
class Chosen:
    """Servers to sync, and reports of those whose configuration is invalid."""

    specs: Sequence[ServerSpec]
    left_out: Sequence[ServerReport]


def choose_servers(place: ConfigPlace, only: Sequence[str]) -> Chosen:
    config = place.read_and_warn(environment())
    unusable = {state.name: ServerReport(state.name, failed=state.error) for state in left_out(config)}
    names = sorted({*(spec.name for spec in config.servers), *unusable})
    if not names:
        raise SetupError(
            "there are no MCP servers in the config files",
            hint="`toolscript config import` takes over those of your other clients",
        )
    if unknown := sorted(set(only) - set(names)):
        raise NotFound(
            f"no server is called {', '.join(repr(name[:80]) for name in unknown)}",
            hint=f"the servers are: {', '.join(names)}",
            details={"servers": unknown},
        )
    chosen = set(only or names)
    specs = [spec for spec in config.servers if spec.name in chosen]
    return Chosen(specs, [unusable[name] for name in sorted(chosen & unusable.keys())])


@asynccontextmanager
async def open_servers(specs: Sequence[ServerSpec]) -> AsyncIterator[ToolServers]:
    """Start these servers, and stop them at the end."""
    # Imported here: the MCP SDK takes longer to load than a file takes to sync.
    from toolscript.core.mcp_client.servers import McpServers

    servers = McpServers()
    try:
        servers.use(specs)
        yield servers
    finally:
        await servers.close()


@dataclass(frozen=True)
class SyncService:
    """Runs sync jobs. `config_file` lists the servers that may be synced; empty for none.

    `max_items`: of a namespace, by imports; 0 for any number.
    """

    catalog: Catalog
    jobs: SyncJobs
    runner: JobRunner
    config_file: str
    contents: CatalogContents
    max_items: int = 0

    def require_room(self, seen: Namespaces) -> None:
        if seen is None:
            self.runner.require_room()
        else:
            self.runner.require_room(next(iter(seen)) if len(seen) == 1 else None)

    async def take_items(
        self,
        source: str,
        entries: Callable[[], Sequence[Item | RefusedItem]],
        *,
        prune: bool,
        namespace: str,
        by: Actor,
        is_admin: bool,
    ) -> SyncJob:
        """Queue an import. `entries` runs on a thread when the job starts: parsing must not block searches."""

        async def work(on_progress: OnProgress) -> Outcome:
            items = await asyncio.to_thread(entries)
            await self._require_room_for(items, source, namespace, prune=prune)
            report = await import_items(
                self.catalog.of(namespace),
                source,
                items,
                prune=prune,
                empty_hint=f"DELETE {_path_of(source, namespace)} removes it; or leave `prune` out",
                batch_size=GENTLE_BATCH,
                total=len(items),
                on_progress=on_progress,
            )
            return Outcome(asdict(report), count=report.changes)

        client = JobClient(by, "items.import", is_admin=is_admin)
        return await self.runner.submit(own_source(source), work, namespace, client)

    async def _require_room_for(
        self, entries: Sequence[Item | RefusedItem], source: str, namespace: str, *, prune: bool
    ) -> None:
        """Raise where the namespace would have too many items. Imports at once may exceed the limit by theirs."""
        if not self.max_items:
            return
        keys = {entry.key for entry in entries if isinstance(entry, Item)}
        after = await self.contents.count_after(source, list(keys), namespace, prune=prune)
        if after > self.max_items:
            raise InvalidRequest(
                f"the namespace {namespace!r} may have {self.max_items:,} items, and would have {after:,}",
                hint="remove sources, or ask the operator to raise TOOLSCRIPT_MAX_ITEMS_PER_NAMESPACE",
            )

    async def start_server_sync(self, names: Sequence[str], namespace: str, by: Actor) -> SyncJob:
        if not self.config_file:
            raise SetupError(
                "no MCP servers are configured for this service",
                hint="ask the operator to set TOOLSCRIPT_SYNC_CONFIG to the config file that names them",
            )
        place = with_secrets(ConfigPlace(self.config_file), Path(usual_data_dir()))
        chosen = await asyncio.to_thread(choose_servers, place, names)

        async def work(on_progress: OnProgress) -> Outcome:
            async with open_servers(chosen.specs) as servers:
                catalog = self.catalog.of(namespace)
                sync = ServerSync(catalog, servers, on_progress=on_progress, batch_size=GENTLE_BATCH)
                taken = await sync.once(WAIT_SECONDS)
            # Jobs are public; the error output of a server is for its operator only.
            reports = [replace(report, failed=without_server_output(report.failed)) for report in taken]
            return _outcome([*reports, *chosen.left_out], _changes_of(taken))

        servers_in_job = [*(spec.name for spec in chosen.specs), *(report.server for report in chosen.left_out)]
        sources = ", ".join(map(source_of, sorted(servers_in_job)))
        client = JobClient(by, "servers.sync", is_admin=True)
        return await self.runner.submit(sources[:MAX_SOURCE], work, namespace, client)

    async def remove_source(self, name: str, namespace: str, by: Actor, *, is_admin: bool) -> SyncJob:
        """Queue the removal of a source. That of a server comes back with its next sync."""

        async def work(on_progress: OnProgress) -> Outcome:
            removed = await remove_source(
                self.contents, name, namespace, batch_size=GENTLE_BATCH, on_progress=on_progress
            )
            return Outcome({"removed": removed}, count=removed)

        return await self.runner.submit(name, work, namespace, JobClient(by, "source.remove", is_admin=is_admin))


def _removal(source: str, namespace: str) -> str:
    option = "" if namespace == DEFAULT_NAMESPACE else f" --namespace {namespace}"
    return f"toolscript sources remove {quote(source)}{option}"


def _path_of(source: str, namespace: str) -> str:
    query = "" if namespace == DEFAULT_NAMESPACE else f"?namespace={namespace}"
    return f"/api/v1/sources/{quote_path(source)}{query}"


def _changes_of(reports: Sequence[ServerReport]) -> int:
    return sum(report.taken.changes for report in reports if report.taken is not None)


def _outcome(reports: Sequence[ServerReport], count: int) -> Outcome:
    ordered = sorted(reports, key=lambda report: report.server)
    failed = [report.server for report in ordered if report.failed]
    error = f"{len(failed)} of {len(ordered)} servers could not be synced: {', '.join(failed)}" if failed else None
    return Outcome({"servers": [report.as_json() for report in ordered]}, error, count)


def list_changes(
    *, before: int | None, limit: int, state: ChangeState | None, namespaces: Namespaces
) -> Sequence[ItemChange]:
    return _with_pool(lambda pool: PostgresItemChanges(pool).within(namespaces).page(before, limit, state))


def find_change(change_id: int) -> ChangeDetails:
    return _with_pool(lambda pool: PostgresItemChanges(pool).find(change_id))


def decide_change(change_id: int, *, approve: bool, by: str) -> ItemChange:
    async def decide(pool: Pool) -> ItemChange:
        changes = PostgresItemChanges(pool)
        return await (changes.approve if approve else changes.reject)(change_id, by)

    return _with_pool(decide)


def list_item_sources(*, after: tuple[str, str], limit: int, namespaces: Namespaces) -> Sequence[ItemSource]:
    return _with_pool(lambda pool: PostgresCatalogContents(pool).within(namespaces).sources(after, limit))


def find_item_source(name: str, namespace: str) -> ItemSource | None:
    return _with_pool(lambda pool: PostgresCatalogContents(pool).source(name, namespace))


def remove_item_source(name: str, namespace: str, on_progress: OnProgress) -> int:
    with recorded("source.remove", name, namespace) as change:
        progress = change.following(on_progress)
        return _with_pool(
            lambda pool: remove_source(PostgresCatalogContents(pool), name, namespace, on_progress=progress)
        )


def list_items(*, after: int, limit: int, wanted: ItemFilter, namespaces: Namespaces) -> Sequence[CatalogItem]:
    return _with_pool(lambda pool: PostgresCatalogContents(pool).within(namespaces).page(after, limit, wanted))


def find_item(item_id: int) -> CatalogItem:
    return _with_pool(lambda pool: PostgresCatalogContents(pool).find(item_id))


def remove_items(ids: Sequence[int]) -> int:
    """Remove items and return how many existed."""

    async def remove(pool: Pool) -> int:
        contents = PostgresCatalogContents(pool)
        for item_id in dict.fromkeys(ids):
            change.count += await contents.remove(item_id)
        return change.count

    with recorded("tool.remove", ", ".join(map(str, ids[:MAX_IDS_SHOWN]))) as change:
        return _with_pool(remove)


def _with_pool(action: Callable[[Pool], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_catalog_pool(load_settings()) as pool:
            return await action(pool)

    return asyncio.run(run())
