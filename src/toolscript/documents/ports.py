"""Documents of many tenants in one engine, and what surrounds them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, FoundChunks, Total
from toolscript.core.text import Passage
from toolscript.core.values import OnProgress, silent
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    ChunkQuery,
    DocumentCard,
    DocumentChange,
    DocumentVersion,
    FillPosition,
    IndexedDocument,
    ShownChunks,
    TermStatistics,
)
from toolscript.documents.model.query import LoggedQuery


class TenantDocuments(Protocol):
    """What one tenant has in an engine. Nothing here can reach what another has."""

    @property
    def tenant(self) -> Tenant: ...
    async def search(self, ask: ChunkQuery) -> FoundChunks: ...
    async def statistics(self) -> TermStatistics:
        """Of the tenant's first passages in the order of their keys, which is as good as a random sample."""

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        """Of those documents that are there."""

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Passage]:
        """Those passages that are there."""

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Of those passages that are there."""

    async def shown(self, ids: Sequence[ChunkId]) -> ShownChunks:
        """These passages with the headers of their documents, as far as they are there: in one go."""

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        """The next documents in the order of their keys that pass; fewer than `limit` only at the end."""

    async def count(self, filters: Filters) -> Total:
        """How many documents pass: exactly, or at least so many where counting would take long.

        Without filters it is always exact, and may take a while.
        """

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        """Stores the documents, except where a newer version of one is there. Keys differ, the version is one.

        Whoever is killed on the way leaves headers that are not complete, and nothing that has none.
        """

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        """Stores complete documents as they are, each with its own version, where nobody else writes."""

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        """Removes the documents with all passages; answers which of them were there.

        `up_to` are versions: of a document what is newer stays.
        """

    async def erase(self) -> None:
        """Removes everything of this tenant."""


class DocumentIndex(Protocol):
    """One collection for all tenants. There is no way to a passage but through its tenant."""

    @property
    def name(self) -> str:
        """Of this version of the index."""

    @property
    def card(self) -> DocumentCard: ...
    async def passages(self) -> int:
        """About how many there are of all tenants."""

    def of(self, tenant: Tenant) -> TenantDocuments: ...
    async def ready(self) -> None:
        """Answers, or says what is wrong."""


class DocumentVersions(Protocol):
    """Which versions of the index there are, and what was changed in one that another lacks. Two at most."""

    async def all(self) -> Sequence[DocumentVersion]: ...
    async def begin(self, live: str, building: str) -> DocumentVersion:
        """From now on changes are recorded for both. Again, it goes on; Conflict where others are known."""

    async def advance(self, name: str, position: FillPosition) -> None: ...
    async def switch(self, name: str) -> None:
        """This one is live, and the other is the previous one."""

    async def forget(self, name: str) -> None:
        """The version and what was recorded for it. Of a single one that is left nothing has to be known."""

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        """Before these documents are written or removed in `source`: the other version will lack it.

        False where `source` is not the live one any more: then nothing may be written to it. A switch waits for
        who marks at the same moment, so whoever was let in is known when it is done.
        """

    async def written(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> None:
        """Afterwards. A writer that is killed in between is waited for, for a while.

        Who began when there was no other version, and ends when there is one, is recorded now.
        """

    async def changes(self, target: str, limit: int) -> Sequence[DocumentChange]:
        """The oldest that this version may lack, except those that are being written."""

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        """Which of these documents this version may lack, with the revision of the last mark of each."""

    async def pending(self, target: str) -> int:
        """How many there are in all."""

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        """They are done, except where a document was marked again since. All are of one target."""

    async def hold(self, holder: str, seconds: float) -> bool:
        """Whether this one may build, for so long from now; asked again, for longer."""

    async def release(self, holder: str) -> None: ...


class TenantShards(Protocol):
    """Where a tenant's documents lie: in a shard with others, or in a cluster in one of its own."""

    async def own_shard(self, tenant: Tenant) -> bool: ...
    async def passages(self, tenant: Tenant) -> int:
        """How many it has, wherever they lie."""

    async def move_to_own_shard(
        self, tenant: Tenant, on_progress: OnProgress = silent, *, anew: bool = False
    ) -> int:
        """Moves them while they are searched and written; answers how many passages. Done twice is done once.

        `anew`: an own shard that is dead is thrown away, and made again of what the shared one has.
        """

    async def erase(self, tenant: Tenant, on_progress: OnProgress = silent) -> int:
        """Removes its passages from wherever they lie, and its own shard; answers how many there were."""


class Tenants(Protocol):
    """Which tenants there are."""

    async def seen(self, tenant: Tenant) -> None:
        """Remembers a tenant that has written."""

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        """The next in the order of their names; fewer than `limit` only at the end."""

    async def forget(self, tenant: Tenant) -> None:
        """Everything that is kept of it beside its documents: its name, its queries."""


class QueryLog(Protocol):
    """Where searches are noted. Never waits, never fails a search."""

    def record(self, query: LoggedQuery) -> None: ...
