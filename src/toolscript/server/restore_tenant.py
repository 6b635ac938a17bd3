"""toolscript restore --tenant: into a running service, from a backup of the tenant or of everything."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from toolscript.core.auth.model import Tenant
from toolscript.core.backup_folder import BackupReader
from toolscript.core.errors import Conflict, NotFound, SetupError
from toolscript.core.postgres.copying import merge_in, one_write
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.backup import DocumentReader, DocumentWriter, SavedDocument, batches_of
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants, tenant_lock
from toolscript.documents.qdrant.collection import (
    QdrantDocuments,
    documents_of,
    drop_documents,
)
from toolscript.server.backup import TENANT_TABLES, snapshots_of, summary
from toolscript.server.document_index import LiveIndex, document_layout
from toolscript.server.restore import documents_card, table_of
from toolscript.server.stores import AbsentModel, Stores, embedder_of, open_embedder, open_stores


def restore_tenant(
    settings: Settings, reader: BackupReader, name: str, *, replace_tenant: bool, on_progress: OnProgress
) -> dict[str, object]:
    job = _RestoreTenant(settings, reader, Tenant(name), on_progress)
    reader.verify(on_progress)
    job.require_saved()
    asyncio.run(job.require_target(replace_tenant=replace_tenant))
    if replace_tenant:
        from toolscript.server.tenants import erase

        erase(name, on_progress)
    return asyncio.run(job.run())


@dataclass(frozen=True)
class _RestoreTenant:
    settings: Settings
    reader: BackupReader
    name: Tenant
    on_progress: OnProgress

    @property
    def manifest(self) -> Mapping[str, Any]:
        return self.reader.manifest

    def require_saved(self) -> None:
        if not any(self._has_tenant(entry) for entry in self._tables("documents.tenants")):
            raise NotFound(
                f"tenant {self.name} is not in the backup",
                hint="`toolscript restore FOLDER --check` shows what is",
            )

    async def require_target(self, *, replace_tenant: bool) -> None:
        """Refuse what cannot be restored here, before anything is deleted for it."""
        if self._snapshot() is not None:
            async with snapshots_of(self.settings) as snapshots:
                if await snapshots.is_cluster():
                    raise SetupError(
                        "a snapshot of a single Qdrant cannot be restored into a cluster",
                        hint="restore from a backup of the tenant: `toolscript backup FOLDER --tenant NAME`",
                    )
        async with open_stores(self.settings) as stores:
            live = await self._live(stores)
            held = await live.places().passages(self.name)
            if held and not replace_tenant:
                raise Conflict(
                    f"tenant {self.name} has {held:,} chunks already",
                    hint="add --replace to delete them first; other tenants are not touched",
                )

    async def run(self) -> dict[str, object]:
        async with AsyncExitStack() as stack:
            stores = await stack.enter_async_context(open_stores(self.settings))
            await stack.enter_async_context(tenant_lock(stores.pool, self.name))
            live = await self._live(stores)
            same_card = documents_card(self.manifest) == live.card
            embedder = await stack.enter_async_context(self._embedder(live, same_card=same_card))
            versions = PostgresDocumentVersions(stores.pool)
            writer = DocumentWriter(live, embedder, same_card=same_card, versions=versions)
            searches = await self._rows(stores)
            async for batch in self._saved(stores):
                await writer.put(batch)
                self.on_progress(Progress("documents", writer.documents))
            documents = await live.of(self.name).count(NO_FILTERS)
            await PostgresTenants(stores.pool).note(self.name, holds=bool(documents.value))
            chunks = await live.places().passages(self.name)
        moment = summary(self.manifest["scope"], dict(self.manifest))["moment"]
        return {
            "scope": "tenant",
            "tenant": self.name.name,
            "moment": moment,
            "documents": documents.value,
            "chunks": chunks,
            "logged_searches": searches,
            "embedded_anew": not same_card,
        }

    async def _live(self, stores: Stores) -> QdrantDocuments:
        live = await LiveIndex.of(self.settings, stores).open()
        if live is None:
            raise NotFound(
                "there is no index of documents to restore into",
                hint="`toolscript serve` creates it; a restore of everything brings its own",
            )
        return live

    @asynccontextmanager
    async def _embedder(self, live: QdrantDocuments, *, same_card: bool) -> AsyncIterator[Embedder]:
        """Open the model of the live index where the saved vectors are not of it."""
        if same_card:
            yield AbsentModel(live.card.model)
            return
        async with (
            open_embedder(self.settings, parallel=1) as configured,
            embedder_of(live.origin, self.settings, configured, "documents") as embedder,
        ):
            yield embedder

    async def _rows(self, stores: Stores) -> int:
        searches = 0
        async with one_write(stores.pool) as conn:
            for full_name, column in TENANT_TABLES.items():
                for entry in self._tables(full_name):
                    with self.reader.file(entry["file"]) as file:
                        rows = await merge_in(
                            conn,
                            table_of(entry),
                            file,
                            where={column: self.name.name},
                            left_out=["id"],
                        )
                    searches += rows if full_name == "documents.queries" else 0
        return searches

    async def _saved(self, stores: Stores) -> AsyncIterator[list[SavedDocument]]:
        """Yield the tenant's documents: those of a snapshot first, then those that were put during the backup."""
        if snapshot := self._snapshot():
            async with self._recovered(stores, snapshot["file"]) as index:
                async for batch in DocumentReader(index).documents(self.name):
                    if batch:
                        yield batch
        with self.reader.file(self.manifest["documents"]["file"]) as lines:
            for batch in batches_of(lines, self.name):
                yield batch

    @asynccontextmanager
    async def _recovered(self, stores: Stores, file: str) -> AsyncIterator[QdrantDocuments]:
        """Open a snapshot beside the live index, under a name of its own."""
        name = f"restoring_{secrets.token_hex(6)}"
        async with snapshots_of(self.settings) as snapshots:
            try:
                await snapshots.recover(name, self.reader.path(file), self.manifest["files"][file]["sha256"])
                yield await documents_of(stores.qdrant, name, document_layout(self.settings))
            finally:
                await drop_documents(stores.qdrant, name)

    def _snapshot(self) -> Mapping[str, Any] | None:
        """Return the snapshot of all tenants' documents; None in a backup of one tenant."""
        return next((each for each in self.manifest.get("indexes", []) if each["kind"] == "documents"), None)

    def _tables(self, full_name: str) -> list[Mapping[str, Any]]:
        later = self.manifest.get("later_tenants")
        entries = [*self.manifest["tables"], *([later] if later else [])]
        return [entry for entry in entries if entry["table"] == full_name]

    def _has_tenant(self, entry: Mapping[str, Any]) -> bool:
        """Names of tenants have no characters that COPY escapes."""
        column = list(entry["columns"]).index("name")
        with self.reader.file(entry["file"]) as file:
            return any(line.rstrip(b"\n").split(b"\t")[column] == self.name.name.encode() for line in file)
