"""Sync of items into the catalog, from a file or from MCP servers, once or continuously. No change, no writes."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import InvalidRequest, Rejected, Unavailable
from toolscript.core.items import Item, RefusedItem, StoreReport
from toolscript.core.mcp_client.model import Offer, ServerState, ServerStatus, ToolServers
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.values import OnProgress, Progress, in_batches, silent
from toolscript.tools.ports import Catalog, CatalogContents

BATCH = 1_000
# For a process that also serves searches: they wait while a batch occupies the event loop.
GENTLE_BATCH = 100
MAX_REFUSALS_SHOWN = 20
PREFIX = "mcp:"
AGAIN_SECONDS = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ImportReport:
    stored: StoreReport
    removed: int
    refused_count: int
    refused: tuple[RefusedItem, ...]
    pruned: bool

    @property
    def changes(self) -> int:
        """How many items are not what they were; a held change is one of a person, later."""
        return self.stored.added + self.stored.changed + self.removed


async def import_items(
    catalog: Catalog,
    source: str,
    entries: Iterable[Item | RefusedItem],
    *,
    prune: bool = False,
    may_be_empty: bool = False,
    empty_hint: str = "",
    batch_size: int = BATCH,
    total: int | None = None,
    on_progress: OnProgress = silent,
) -> ImportReport:
    """Store the items of a source. `prune` removes absent items of the source, unless an entry could not be read.

    When pruning, a source without items is an error unless it `may_be_empty`; `empty_hint` becomes the hint.
    """
    stored, refused, keys, done = StoreReport(), list[RefusedItem](), list[str](), 0
    for batch in in_batches(entries, batch_size):
        items = {entry.key: entry for entry in batch if isinstance(entry, Item)}
        refused += [entry for entry in batch if isinstance(entry, RefusedItem)]
        stored += await catalog.store(source, list(items.values()))
        keys += items if prune else ()
        done += len(batch)
        on_progress(Progress("sync", done, total))
    if prune and not keys and not may_be_empty:
        raise InvalidRequest(
            f"no item could be read, and nothing of source {source!r} was removed",
            hint=empty_hint,
        )
    pruned = prune and not refused
    removed = await catalog.keep_only(source, keys) if pruned else 0
    return ImportReport(stored, removed, len(refused), tuple(refused[:MAX_REFUSALS_SHOWN]), pruned)


async def remove_source(
    contents: CatalogContents,
    name: str,
    namespace: str = DEFAULT_NAMESPACE,
    *,
    batch_size: int = BATCH,
    on_progress: OnProgress = silent,
) -> int:
    """Remove all items of a source; return how many. Resumable and idempotent."""
    source = await contents.source(name, namespace)
    removed = 0
    while True:
        count = await contents.remove_source(name, batch_size, namespace)
        removed += count
        if count:
            on_progress(Progress("remove", removed, None if source is None else max(removed, source.items)))
        if count < batch_size:
            return removed
        raise_if_cancelled()


def source_of(server: str) -> str:
    return f"{PREFIX}{server}"


def own_source(name: str) -> str:
    """Return the name of a client's source. Raise for sources of MCP servers: clients must not change those."""
    if name.startswith(PREFIX):
        raise InvalidRequest(
            f"the source {name[:80]!r} belongs to an MCP server",
            hint=f"choose a name that does not begin with {PREFIX}",
            details={"field": "source"},
        )
    return name


@dataclass(frozen=True)
class ServerReport:
    """The result of importing a server's items, or why it failed: then the items stored before stay."""

    server: str
    taken: ImportReport | None = None
    failed: str = ""

    @property
    def has_news(self) -> bool:
        """True if the catalog changed, or a person has something to do."""
        if self.taken is None:
            return True
        stored = self.taken.stored
        return any((stored.added, stored.changed, stored.held, self.taken.removed, self.taken.refused_count))

    def as_json(self) -> Mapping[str, object]:
        taken = {} if self.taken is None else asdict(self.taken)
        return {"server": self.server, "failed": self.failed or None, **taken}


@dataclass(frozen=True)
class ServerSync:
    """Imports the items of servers. `prune` removes those that a server with a complete answer no longer has."""

    catalog: Catalog
    servers: ToolServers
    prune: bool = True
    on_progress: OnProgress = silent
    batch_size: int = BATCH

    async def once(self, wait_seconds: float) -> list[ServerReport]:
        """Import each server as soon as it has answered or failed; wait at most `wait_seconds` for all."""
        reports: dict[str, ServerReport] = {}
        ends_at, revision = asyncio.get_running_loop().time() + wait_seconds, -1
        while True:
            for state in self.servers.states():
                if state.status is not ServerStatus.STARTING and state.name not in reports:
                    reports[state.name] = await self.take(state)
                    self.on_progress(Progress("servers", len(reports), len(self.servers.states())))
            names = [state.name for state in self.servers.states()]
            if len(reports) == len(names):
                break
            try:
                async with asyncio.timeout_at(ends_at):
                    revision = await self.servers.changed(revision)
            except TimeoutError:
                break
        late = f"it did not answer within {wait_seconds:g} seconds"
        return [reports.get(name) or ServerReport(name, failed=late) for name in names]

    async def take(self, state: ServerState) -> ServerReport:
        """Import the items of a server that is ready; for any other, report the reason."""
        offer = self.offer_of(state.name)
        if state.status is not ServerStatus.READY or offer is None:
            return ServerReport(state.name, failed=state.error or f"it is {state.status}")
        refused = [RefusedItem(state.name, reason) for reason in offer.refused]
        try:
            taken = await import_items(
                self.catalog,
                source_of(state.name),
                [*offer.items, *refused],
                prune=self.prune,
                may_be_empty=True,
                batch_size=self.batch_size,
            )
        except Rejected as error:
            # The items of other servers are still imported.
            return ServerReport(state.name, failed=error.message)
        return ServerReport(state.name, taken)

    def offer_of(self, server: str) -> Offer | None:
        return next((offer for offer in self.servers.offers() if offer.server == server), None)


class ContinuousSync:
    """Imports the items of a server whenever they change, and passes each report to `on_report`."""

    def __init__(
        self,
        sync: ServerSync,
        on_report: Callable[[ServerReport], None],
        *,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        self._sync = sync
        self._on_report = on_report
        self._again_seconds = again_seconds
        self._taken: dict[str, Offer | None] = {}
        self._failed: dict[str, str] = {}

    async def run(self) -> None:
        revision, all_taken = -1, True
        while True:
            # Items that could not be stored are retried even if no server changes.
            with suppress(TimeoutError):
                async with asyncio.timeout(None if all_taken else self._again_seconds):
                    revision = await self._sync.servers.changed(revision)
            all_taken = await self._take_changed()

    async def _take_changed(self) -> bool:
        try:
            for state in self._sync.servers.states():
                if state.status is ServerStatus.READY:
                    await self._take(state)
                elif state.status is ServerStatus.FAILED:
                    self._report_failure(state)
        except Unavailable as error:
            logger.warning("waiting for the catalog", extra={"reason": error.message})
            return False
        return True

    async def _take(self, state: ServerState) -> None:
        offer, was_down = self._sync.offer_of(state.name), state.name in self._failed
        is_first = state.name not in self._taken
        if not is_first and not was_down and offer == self._taken[state.name]:
            return
        report = await self._sync.take(state)
        self._failed.pop(state.name, None)
        self._taken[state.name] = offer
        if is_first or was_down or report.has_news:
            self._on_report(report)

    def _report_failure(self, state: ServerState) -> None:
        if self._failed.get(state.name) != state.error:
            self._failed[state.name] = state.error
            self._on_report(ServerReport(state.name, failed=state.error))
