"""Takes syncs that are asked for over HTTP. What is started or called for them is never the caller's to say."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import quote

from toolscript.adapters.config_files.here import ConfigPlace
from toolscript.errors import SetupError
from toolscript.model.items import Item, RefusedItem
from toolscript.model.jobs import SyncJob
from toolscript.model.progress import OnProgress
from toolscript.model.servers import without_own_words
from toolscript.ports import Catalog, CatalogContents, SyncJobs
from toolscript.service.syncing import choose_servers, open_servers
from toolscript.sync.import_items import GENTLE_BATCH, import_items
from toolscript.sync.job_runner import JobRunner, Outcome
from toolscript.sync.server_items import ServerReport, ServerSync, own_source, source_of
from toolscript.sync.source_items_removal import remove_source

WAIT_SECONDS = 30.0
MOST_SOURCE = 500


@dataclass(frozen=True)
class SyncDesk:
    """`config_file` is the one whose servers may be asked; empty: none may be."""

    catalog: Catalog
    jobs: SyncJobs
    runner: JobRunner
    config_file: str
    contents: CatalogContents

    def require_room(self) -> None:
        self.runner.require_room()

    async def take_items(
        self, source: str, entries: Callable[[], Sequence[Item | RefusedItem]], *, prune: bool
    ) -> SyncJob:
        """`entries` is called when its turn comes, on a thread: a long catalog must not hold up searches."""

        async def work(on_progress: OnProgress) -> Outcome:
            read = await asyncio.to_thread(entries)
            report = await import_items(
                self.catalog,
                source,
                read,
                prune=prune,
                empty_hint=f"DELETE /api/v1/catalog/sources/{quote(source)} removes it; or leave `prune` out",
                batch_size=GENTLE_BATCH,
                total=len(read),
                on_progress=on_progress,
            )
            return Outcome(asdict(report))

        return await self.runner.submit(own_source(source), work)

    async def ask_servers(self, names: Sequence[str]) -> SyncJob:
        if not self.config_file:
            raise SetupError(
                "this service knows no MCP servers",
                hint="set TOOLSCRIPT_SYNC_CONFIG to the config file that names them",
            )
        chosen = await asyncio.to_thread(choose_servers, ConfigPlace(self.config_file), names)

        async def work(on_progress: OnProgress) -> Outcome:
            async with open_servers(chosen.specs) as servers:
                sync = ServerSync(self.catalog, servers, on_progress=on_progress, batch_size=GENTLE_BATCH)
                taken = await sync.once(WAIT_SECONDS)
            # Anybody may read about a job; what a server wrote when it failed is for who runs it.
            told = [replace(one, failed=without_own_words(one.failed)) for one in taken]
            return _outcome([*told, *chosen.left_out])

        asked = [*(spec.name for spec in chosen.specs), *(one.server for one in chosen.left_out)]
        return await self.runner.submit(", ".join(map(source_of, sorted(asked)))[:MOST_SOURCE], work)

    async def remove_source(self, name: str) -> SyncJob:
        """A server's own, too: until it is asked again."""

        async def work(on_progress: OnProgress) -> Outcome:
            removed = await remove_source(self.contents, name, batch_size=GENTLE_BATCH, on_progress=on_progress)
            return Outcome({"removed": removed})

        return await self.runner.submit(name, work)

    async def find(self, job_id: int) -> SyncJob:
        return await self.jobs.find(job_id)

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        return await self.jobs.page(before, limit)


def _outcome(reports: Sequence[ServerReport]) -> Outcome:
    ordered = sorted(reports, key=lambda one: one.server)
    failed = [one.server for one in ordered if one.failed]
    error = f"{len(failed)} of {len(ordered)} servers could not be taken: {', '.join(failed)}" if failed else None
    return Outcome({"servers": [one.as_json() for one in ordered]}, error)
