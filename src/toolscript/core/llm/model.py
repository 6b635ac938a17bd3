"""What the core asks of the world, in our own words. Every port has a contract suite in tests/contracts."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from toolscript.model.dirty import Claim, Generation, GenerationState, Pending
from toolscript.model.gateway import GatewayHealth, LocalAnswer, LocalQuery
from toolscript.model.index import Ask, Candidates, Fields, KeptPoint, Point, PointVersion
from toolscript.model.items import Item, JsonObject, Schemas, StoredItem, StoreReport
from toolscript.model.models import IndexCard, IndexOrigin, Matrix, ModelCard, Vector
from toolscript.model.servers import CallResult, Offer, ServerSpec, ServerState
from toolscript.model.text_usage import TextUsage
from toolscript.ports.documents import (
    Callers,
    DocumentIndex,
    DocumentVersions,
    QueryLog,
    RequestBudget,
    Reranker,
    Spans,
    TenantDocuments,
    TenantPlaces,
    Tenants,
)
from toolscript.ports.library import LibraryReader, LibraryWriter, SourceFiles
from toolscript.ports.skills import Assignments, Classifier, SkillsBehind, SkillVectors, Suggestions, Taxonomy
from toolscript.ports.sources import CatalogContents, ItemChanges, SyncJobs

__all__ = [
    "Assignments",
    "Callers",
    "Catalog",
    "CatalogContents",
    "Classifier",
    "DirtySet",
    "DocumentIndex",
    "DocumentVersions",
    "Embedder",
    "Gateway",
    "Index",
    "Indexes",
    "ItemChanges",
    "LibraryReader",
    "LibraryWriter",
    "QueryLog",
    "RequestBudget",
    "Reranker",
    "SkillVectors",
    "SkillsBehind",
    "SourceFiles",
    "Spans",
    "Suggestions",
    "SyncJobs",
    "Taxonomy",
    "TenantDocuments",
    "TenantPlaces",
    "Tenants",
    "TextModel",
    "ToolServers",
    "VectorMemory",
]


class Embedder(Protocol):
    """Text to unit vectors. Never blocks the event loop."""

    @property
    def model(self) -> ModelCard: ...
    async def embed_query(self, text: str) -> Vector: ...
    async def embed_passages(self, texts: Sequence[str]) -> Matrix: ...


class Index(Protocol):
    """One collection of points, made by one model in one layout."""

    @property
    def card(self) -> IndexCard: ...
    async def search(self, ask: Ask) -> Candidates: ...
    async def search_all(self, asks: Sequence[Ask]) -> Sequence[Candidates]:
        """Several questions in one go, answered in order: all of them or none."""

    async def rarities(self, terms: Collection[int]) -> Mapping[int, float]:
        """How much each of these terms says among all points, as far as a sample of them can tell."""

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        """What the points carry, all of it or only some fields, for those that are still there."""

    async def put(self, points: Sequence[Point]) -> None:
        """Stores the points, except where a newer version of one is already there."""

    async def remove(self, points: Sequence[PointVersion]) -> None:
        """Removes the points, except where a newer version of one is there."""

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """The next points in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...
    async def whole(self, most: int) -> Sequence[KeptPoint] | None:
        """Every point there is; None where they are more than so many."""


class Indexes(Protocol):
    """The collections an engine holds, by the fingerprint of their card; one of them is live."""

    async def live(self) -> str | None: ...
    async def origin(self) -> IndexOrigin | None:
        """Which model made the live one; None where none is live."""

    async def size(self, card: IndexCard) -> int | None:
        """How many points the collection of this card has; None where there is none."""

    async def create(self, card: IndexCard) -> None:
        """Makes the collection unless it is there."""

    async def open(self, card: IndexCard) -> Index:
        """The collection of this card; refused when it is absent or says it was made with another."""

    def loading(self, card: IndexCard) -> AbstractAsyncContextManager[None]:
        """While many points are put: the engine builds its structures once, at the end, and is then ready."""

    async def make_live(self, fingerprint: str) -> None: ...
    async def drop(self, fingerprint: str) -> None:
        """Removes the collection if it is there."""


class Catalog(Protocol):
    """The items of record."""

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        """Stores what is new or changed and marks it dirty, in one transaction. Keys are distinct.

        Every change of a known item is recorded, see `ItemChanges`. A catalog that holds changes does not make
        them: each waits for a person, unless it was rejected before, and the definition in force stays.
        """

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        """Removes the items of a source whose keys are not given; answers how many."""

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        """Removes these items of a source, where it has them; answers how many."""

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]: ...
    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]: ...
    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """The next active items' ids and versions in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...


class DirtySet(Protocol):
    """Which items each index generation has yet to follow, and who is at work on them."""

    async def generations(self) -> Sequence[Generation]: ...
    async def adopt(self, fingerprint: str) -> Generation:
        """Names the model of the first generation; whoever comes second gets what the first has named."""

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        """Starts a generation that follows every change from now on; the same one when it was begun before.

        `afresh` has it filled from the first item again.
        """

    async def fill(self, generation: int, limit: int) -> int:
        """Marks the next items of the catalog dirty for a generation; 0 when all have been.

        An item that somebody holds is done once more after that.
        """

    async def set_state(self, generation: int, state: GenerationState) -> None:
        """LIVE makes the generation that was live PREVIOUS."""

    async def forget(self, generation: int) -> None: ...
    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        """`abandoned_first`: where others have let leases run out, what they held and nothing else."""

    def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AbstractAsyncContextManager[None]:
        """Renews what of a claim is still held while the work within is done, however busy the process is."""

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        """The part of a claim that is still held, held for longer."""

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        """Forgets what was followed; frees what changed meanwhile; marks again what was lost to another.

        Those that are to be looked at `again` stay dirty, and are free after a while.
        """

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        """Gives the items back, to be tried again later and ever later."""

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        """Makes these items dirty, whether the catalog has them or not."""

    async def pending(self, generation: int) -> Pending: ...
    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]: ...
    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        """Items that were postponed, with the reason of the last time."""


class TextModel(Protocol):
    """A language model: instructions and data in, an object out. The data is fenced as data."""

    @property
    def usage(self) -> TextUsage:
        """What has been asked so far, and how many tokens that took."""

    async def reply(self, instructions: str, data: str, schema: JsonObject) -> JsonObject:
        """What the model answers, an object with what the JSON schema requires; refused when it is none."""


class VectorMemory(Protocol):
    """Vectors that were made once, by the hash of what they were made from. Failing to remember is no error."""

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]: ...
    def remember(self, tools: Mapping[str, tuple[str, Vector]], absent: Collection[str] = ()) -> None:
        """These tools, by name with hash and vector; of other tools, only those of absent servers stay."""


class ToolServers(Protocol):
    """MCP servers, each connected and kept connected by itself; none waits for another."""

    def use(self, specs: Sequence[ServerSpec]) -> None:
        """Starts what is new, ends what is gone, restarts what changed, leaves alone what did not. Never waits."""

    def states(self) -> Sequence[ServerState]: ...
    def offers(self) -> Sequence[Offer]:
        """What the servers that are ready have, in the order of their names."""

    async def changed(self, after: int) -> int:
        """Waits until states or offers are newer than revision `after`; answers the revision they have now."""

    async def call(self, server: str, tool: str, arguments: JsonObject) -> CallResult: ...
    async def close(self) -> None: ...


class Gateway(Protocol):
    """A gateway, in this process or in another."""

    async def search(self, query: LocalQuery) -> LocalAnswer: ...
    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        """What can be found now; `wanted` names servers and `server__tool`s, none means all."""

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        """The TypeScript module of these tools."""

    async def call(self, tool: str, arguments: JsonObject) -> CallResult: ...
    async def servers(self) -> Sequence[ServerState]: ...
    async def health(self) -> GatewayHealth: ...
