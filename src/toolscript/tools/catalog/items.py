"""What MCP servers offer, taken into the catalog. Each server is a source of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from toolscript.errors import InvalidRequest, Rejected
from toolscript.model.items import RefusedItem
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.servers import Offer, ServerState, ServerStatus
from toolscript.ports import Catalog, ToolServers
from toolscript.sync.import_items import BATCH, ImportReport, import_items

PREFIX = "mcp:"


def source_of(server: str) -> str:
    return f"{PREFIX}{server}"


def own_source(name: str) -> str:
    """A name under which somebody keeps a catalog of their own: what a server offers is not theirs to change."""
    if name.startswith(PREFIX):
        raise InvalidRequest(
            f"a source called {name[:80]!r} is that of an MCP server",
            hint=f"choose a name that does not begin with {PREFIX}",
            details={"field": "source"},
        )
    return name


@dataclass(frozen=True)
class ServerReport:
    """What was taken from a server, or why nothing could be: then what it had before stays."""

    server: str
    taken: ImportReport | None = None
    failed: str = ""

    @property
    def says_news(self) -> bool:
        """Whether the catalog is now another, or a person has something to do."""
        if self.taken is None:
            return True
        stored = self.taken.stored
        return any((stored.added, stored.changed, stored.held, self.taken.removed, self.taken.refused_count))

    def as_json(self) -> Mapping[str, object]:
        taken = {} if self.taken is None else asdict(self.taken)
        return {"server": self.server, "failed": self.failed or None, **taken}


@dataclass(frozen=True)
class ServerSync:
    """Takes what servers offer. With `prune`, what a server that answered completely no longer has is removed."""

    catalog: Catalog
    servers: ToolServers
    prune: bool = True
    on_progress: OnProgress = silent
    batch_size: int = BATCH

    async def once(self, wait_seconds: float) -> list[ServerReport]:
        """Every server as soon as it has answered or failed; none is waited for longer than that."""
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
        """Of a server that is ready, what it offers; of another, why it does not."""
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
            # The others' items are no worse for it.
            return ServerReport(state.name, failed=error.message)
        return ServerReport(state.name, taken)

    def offer_of(self, server: str) -> Offer | None:
        return next((offer for offer in self.servers.offers() if offer.server == server), None)
