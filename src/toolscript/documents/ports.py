"""Ports of document search: documents of many tenants in one engine, index versions, tenants, query log."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, Total
from toolscript.core.text import TextChunk
from toolscript.core.values import OnProgress, silent
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    ChunkQuery,
    DocumentCard,
    DocumentChange,
    DocumentVersion,
    FillPosition,
    FoundWithContent,
    HitContent,
    IndexedDocument,
    TermStatistics,
)
from toolscript.documents.model.query import LoggedQuery


class TenantDocuments(Protocol):
    """The documents of one tenant in an engine. No method can reach those of another tenant."""

    @property
    def tenant(self) -> Tenant: ...
    async def search(self, ask: ChunkQuery) -> FoundWithContent: ...
    async def statistics(self) -> TermStatistics:
        """Return statistics of the tenant's first chunks ordered by key, which is as good as a random sample."""

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        """Return the headers of those documents that exist."""

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, TextChunk]:
        """Return those chunks that exist."""

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Return the vectors of those chunks that exist."""

    async def shown(self, ids: Sequence[ChunkId]) -> HitContent:
        """Return those chunks that exist, and the headers of their documents, in one request."""

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        """Return the next documents that pass, ordered by key; fewer than `limit` only at the end."""

    async def count(self, filters: Filters) -> Total:
        """Return how many documents pass: exact, or a lower bound where counting would take long.

        Without filters it is always exact, and may take a while.
        """

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        """Store the documents, except where a newer version exists. Keys are distinct, all have one version.

        A writer that is killed leaves incomplete headers, but never chunks without a header.
        """

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        """Store complete documents, each with its own version. There must be no other writer."""

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        """Remove the documents with all chunks; return the keys of those that existed.

        `up_to` maps keys to versions: a newer version of a document stays.
        """

    async def erase(self) -> None:
        """Remove all data of this tenant."""


class DocumentIndex(Protocol):
    """One collection for all tenants. The only way to a chunk is through its tenant."""

    @property
    def name(self) -> str:
        """The name of this index version."""

    @property
    def card(self) -> DocumentCard: ...
    async def passages(self) -> int:
        """Return the approximate number of chunks of all tenants."""

    def of(self, tenant: Tenant) -> TenantDocuments: ...
    async def ready(self) -> None:
        """Return if the engine responds, else raise."""


class DocumentVersions(Protocol):
    """The index versions, at most two, and the changes that were made in one and are missing in the other.

    The live one is on record from the first write on.
    """

    async def all(self) -> Sequence[DocumentVersion]: ...
    async def begin_empty(self, name: str) -> None:
        """Make this version, which has no documents, the only one on record. No tenant holds documents then."""

    async def begin(self, live: str, building: str) -> DocumentVersion:
        """Start recording changes for both versions. Idempotent; raises Conflict if other versions exist."""

    async def advance(self, name: str, position: FillPosition) -> None: ...
    async def switch(self, name: str) -> None:
        """Make this version live, and the other one the previous."""

    async def forget(self, name: str) -> None:
        """Delete the version and its recorded changes."""

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        """Record a change before these documents are written or removed in `source`, for the other version.

        The first write of all puts `source` itself on record, as the live version.
        Return False if `source` is no longer live: then it must not be written to. A switch waits for concurrent
        calls, so every admitted writer is recorded once the switch is done.
        """

    async def written(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> None:
        """Record the end of a write. A writer killed before this call blocks its changes for a while.

        A write that began before there was another version is recorded here.
        """

    async def changes(self, target: str, limit: int) -> Sequence[DocumentChange]:
        """Return the oldest changes that this version may lack, except open writes."""

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        """Return which of these documents this version may lack, with the revision of the last mark."""

    async def pending(self, target: str) -> int:
        """Return the number of recorded changes, open writes included."""

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        """Delete these changes, except where a document was marked again since. All have one target."""

    async def hold(self, holder: str, seconds: float) -> bool:
        """Take or renew the lease for this many seconds. Return False if another holder has it."""

    async def release(self, holder: str) -> None: ...


class TenantShards(Protocol):
    """Placement of tenants: in a shared shard, or, in a cluster, in a shard of their own."""

    async def own_shard(self, tenant: Tenant) -> bool: ...
    async def passages(self, tenant: Tenant) -> int:
        """Return the number of chunks of the tenant, in any shard."""

    async def move_to_own_shard(
        self, tenant: Tenant, on_progress: OnProgress = silent, *, anew: bool = False
    ) -> int:
        """Move the tenant while clients search and write; return the number of chunks. Idempotent.

        `anew`: drop an own shard that is dead, and copy it again from the shared shard.
        """

    async def erase(self, tenant: Tenant, on_progress: OnProgress = silent) -> int:
        """Remove the tenant's chunks from all shards, and its own shard; return how many there were."""


class Tenants(Protocol):
    """The registry of tenants."""

    async def seen(self, tenant: Tenant) -> bool:
        """Register a tenant that writes. Return whether it holds documents."""

    async def holds(self, tenant: Tenant) -> bool:
        """Return whether documents of this tenant are on record; False where that is not known."""

    async def note(self, tenant: Tenant, *, holds: bool) -> bool:
        """Record whether a registered tenant holds documents. Return whether that is news."""

    async def holders(self, *, or_unknown: bool = False) -> int:
        """Return how many tenants hold documents; `or_unknown`: and of how many that is not known."""

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        """Return the next tenants ordered by name; fewer than `limit` only at the end."""

    async def forget(self, tenant: Tenant) -> None:
        """Delete everything about the tenant except its documents: its name and its queries."""


class QueryLog(Protocol):
    """Records searches. It never blocks a search and never fails one."""

    def record(self, query: LoggedQuery) -> None: ...
