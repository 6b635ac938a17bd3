"""toolscript restore: everything into empty engines, or one tenant into a running service.

The whole folder is verified before anything is touched. Then, for everything:

    Qdrant's collections -> MongoDB -> PostgreSQL, in one transaction -> what the parts have beyond the moment

The alias of the documents is the last step: after an interruption the service says that they are not there, and
the command can be run again with `--replace`.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from toolscript.core.auth.model import Tenant
from toolscript.core.backup_folder import BackupReader
from toolscript.core.errors import CatalogRejected, Conflict, InvalidRequest, ModelMismatch, NotFound, SetupError
from toolscript.core.postgres.copying import Table, advance_sequences, clear, copy_in, merge_in, one_write
from toolscript.core.postgres.pool import Connection, Pool, connection, open_pool
from toolscript.core.postgres.schema import BASELINE, REVISION
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.collections import list_collections
from toolscript.core.qdrant.connection import Qdrant, call_collections
from toolscript.core.qdrant.snapshots import QdrantSnapshots
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants
from toolscript.documents.qdrant.collection import (
    QdrantDocuments,
    create_documents,
    documents_of,
    make_documents_live,
)
from toolscript.documents.reindex import lease
from toolscript.knowledge.mongo.backup import NAMES, has_sources, load_library
from toolscript.knowledge.mongo.connection import MongoLibrary, open_mongo
from toolscript.server.audit import recorded
from toolscript.server.backup import MAX_NAMED, ONE_TENANT, aliases_of, snapshots_of, summary
from toolscript.server.document_index import document_layout
from toolscript.server.library_stores import knowledge_indexes, writer_url
from toolscript.server.settings import load_settings
from toolscript.server.settling import SettledDocuments, settle_documents, settle_library, settle_tools
from toolscript.server.stores import Stores, connect_qdrant, open_stores
from toolscript.tools.postgres.search_log import PostgresSearchLog
from toolscript.tools.skills.importing import LOADER

REPLACE_HINT = "name engines without data, or add --replace to delete what is there"
# Tables that are empty in an installation that nobody has used.
USED_TABLES = ("mcp.items", "mcp.sources", "mcp.curation_rules", "documents.tenants")


def check_backup(folder: str, on_progress: OnProgress) -> dict[str, object]:
    reader = BackupReader(Path(folder))
    size = reader.verify(on_progress)
    return {**summary(reader.manifest["scope"], dict(reader.manifest)), "bytes": size, "folder": folder}


def restore(
    folder: str, *, tenant: str | None, documents: bool, replace: bool, on_progress: OnProgress
) -> dict[str, object]:
    """Restore everything, the documents of all tenants alone, or one tenant."""
    reader, settings = BackupReader(Path(folder)), load_settings()
    _require_readable(reader)
    with recorded("backup.restore", tenant or ("documents" if documents else "everything")) as change:
        done = _restored(settings, reader, tenant, documents=documents, replace=replace, on_progress=on_progress)
        change.count = 1
        change.details["folder"] = folder
    return done


def _restored(
    settings: Settings,
    reader: BackupReader,
    tenant: str | None,
    *,
    documents: bool,
    replace: bool,
    on_progress: OnProgress,
) -> dict[str, object]:
    own = reader.manifest.get("tenant")
    if reader.manifest["scope"] == ONE_TENANT and tenant not in (None, own):
        raise InvalidRequest(f"the backup is of tenant {own}, not of {tenant}", hint="leave --tenant out")
    if tenant or own:
        from toolscript.server.restore_tenant import restore_tenant

        return restore_tenant(
            settings, reader, str(tenant or own), replace_tenant=replace, on_progress=on_progress
        )
    job = _Restore(settings, reader, on_progress)
    return asyncio.run(job.documents_alone(replace=replace) if documents else job.run(replace=replace))


def _require_readable(reader: BackupReader) -> None:
    manifest = reader.manifest
    if manifest["schema"] < BASELINE:
        raise InvalidRequest(
            f"the backup has the schema {manifest['schema']}, and this version upgrades from {BASELINE} on",
            hint=f"restore it with toolscript {manifest['toolscript']}, upgrade that, and make another backup",
        )
    if manifest["schema"] > REVISION:
        raise SetupError(
            f"the backup has the database schema {manifest['schema']}, and this version knows {REVISION}",
            hint=f"restore it with toolscript {manifest['toolscript']}, or a later one",
        )


@dataclass(frozen=True)
class _Restore:
    settings: Settings
    reader: BackupReader
    on_progress: OnProgress

    @property
    def manifest(self) -> Mapping[str, Any]:
        return self.reader.manifest

    @property
    def url(self) -> str:
        return self.settings.postgres_url.get_secret_value()

    async def run(self, *, replace: bool) -> dict[str, object]:
        documents_card(self.manifest)
        async with (
            open_pool(self.url, size=2) as pool,
            connect_qdrant(self.settings) as qdrant,
            snapshots_of(self.settings) as snapshots,
            self._library() as library,
        ):
            await self._require_target(pool, qdrant, snapshots, library, replace=replace)
            await asyncio.to_thread(self.reader.verify, self.on_progress)
            await self._collections(qdrant, snapshots)
            if library is not None:
                with self._library_files() as files:
                    await load_library(library, files, self.on_progress)
        await asyncio.to_thread(self._schema)
        async with open_pool(self.url, size=2) as pool:
            await self._rows(pool)
        await asyncio.to_thread(self._newest_schema)
        return await self._settled()

    async def documents_alone(self, *, replace: bool) -> dict[str, object]:
        """Restore the documents of all tenants, and nothing else: for a lost volume of Qdrant.

        `serve` may run. It looks for the collection on record, so these go into another one until they are whole.
        """
        if documents_card(self.manifest) is None:
            raise NotFound("the backup has no documents", hint="name a backup of everything")
        async with AsyncExitStack() as stack:
            stores = await stack.enter_async_context(open_stores(self.settings))
            snapshots = await stack.enter_async_context(snapshots_of(self.settings))
            await stack.enter_async_context(lease(PostgresDocumentVersions(stores.pool)))
            await self._require_no_points(stores.qdrant, snapshots, ("documents",), replace=replace)
            await asyncio.to_thread(self.reader.verify, self.on_progress)
            name = self._name("documents", f"__{secrets.token_hex(6)}")
            await self._collections(stores.qdrant, snapshots, ("documents",), documents=name)
            async with one_write(stores.pool) as conn:
                await self._merge_tenants(conn)
            settled = await self._settled_documents(stores, name)
        return {
            **summary(self.manifest["scope"], dict(self.manifest)),
            "documents_alone": True,
            "half_written_dropped": settled.dropped,
            "tenants_without": list(settled.without[:MAX_NAMED]),
        }

    async def _require_target(
        self,
        pool: Pool,
        qdrant: Qdrant,
        snapshots: QdrantSnapshots,
        library: MongoLibrary | None,
        *,
        replace: bool,
    ) -> None:
        used = await _used_tables(pool)
        used += ["the library"] if library is not None and await has_sources(library) else []
        if used and not replace:
            raise Conflict(f"there is data already: {', '.join(used)}", hint=REPLACE_HINT)
        kinds = ("documents", "tools", "chunks", "extractions")
        await self._require_no_points(qdrant, snapshots, kinds, replace=replace)

    async def _require_no_points(
        self, qdrant: Qdrant, snapshots: QdrantSnapshots, kinds: Sequence[str], *, replace: bool
    ) -> None:
        if self.manifest["indexes"] and await snapshots.is_cluster():
            raise SetupError(
                "snapshots of a single Qdrant cannot be restored into a cluster",
                hint="restore into a single Qdrant, or from a backup of each tenant",
            )
        used = [
            f"{collection.origin.collection} ({collection.points:,} points)"
            for kind in kinds
            for collection in await list_collections(qdrant, aliases_of(self.settings)[kind])
            if collection.points
        ]
        if used and not replace:
            raise Conflict(f"there is data already: {', '.join(used)}", hint=REPLACE_HINT)

    async def _collections(
        self, qdrant: Qdrant, snapshots: QdrantSnapshots, kinds: Sequence[str] = (), documents: str = ""
    ) -> None:
        """Recover the collections of these kinds, of all by default, in place of those that are there.

        `documents`: the name of that of the documents, if it is another one.
        """
        kinds = kinds or list(aliases_of(self.settings))
        for kind in kinds:
            for collection in await list_collections(qdrant, aliases_of(self.settings)[kind]):
                name = collection.origin.collection
                await call_collections(qdrant, "Delete", wire.DeleteCollection(collection_name=name))
        indexes = [index for index in self.manifest["indexes"] if index["kind"] in kinds]
        for done, index in enumerate(indexes):
            self.on_progress(Progress("indexes", done, len(indexes)))
            file, name = index["file"], self._name(index["kind"], index["suffix"])
            name = documents or name if index["kind"] == "documents" else name
            await snapshots.recover(name, self.reader.path(file), self.manifest["files"][file]["sha256"])
        self.on_progress(Progress("indexes", len(indexes), len(indexes)))

    def _name(self, kind: str, suffix: str) -> str:
        """Return the name of a collection in the target, whose aliases may be others."""
        return f"{aliases_of(self.settings)[kind]}{suffix}"

    @asynccontextmanager
    async def _library(self) -> AsyncIterator[MongoLibrary | None]:
        if self.manifest["library"] is None:
            yield None
            return
        async with open_mongo(writer_url(self.settings), self.settings.mongo_database) as library:
            yield library

    @contextmanager
    def _library_files(self) -> Iterator[Mapping[str, Any]]:
        with ExitStack() as stack:
            names = self.manifest["library"]["files"]
            yield {name: stack.enter_context(self.reader.file(names[name])) for name in NAMES}

    def _schema(self) -> None:
        """Make an empty schema of the backup's revision."""
        from toolscript.core.postgres.migrate import NOTHING, downgrade, schema_status, upgrade

        if schema_status(self.url).current is not None:
            downgrade(self.url, NOTHING)
        upgrade(self.url, self.manifest["schema"])

    def _newest_schema(self) -> None:
        from toolscript.core.postgres.migrate import upgrade

        upgrade(self.url)

    async def _rows(self, pool: Pool) -> None:
        days = [date.fromisoformat(day) for day in self.manifest["search_log_days"]]
        await PostgresSearchLog(pool).make_days(days)
        total, done = sum(table["rows"] for table in self.manifest["tables"]), 0
        async with one_write(pool) as conn:
            await clear(conn, [table_of(entry) for entry in self.manifest["tables"]])
            for entry in self.manifest["tables"]:
                with self.reader.file(entry["file"]) as file:
                    rows = await copy_in(conn, table_of(entry), file)
                if rows != entry["rows"]:
                    raise CatalogRejected(f"{entry['table']} has {rows} rows, and {entry['rows']} were saved")
                done += rows
                self.on_progress(Progress("rows", done, total))
            await self._merge_tenants(conn)
            await advance_sequences(conn, self.manifest["sequences"])

    async def _merge_tenants(self, conn: Connection) -> None:
        """Add the tenants of the documents: those of the moment, and those that came during the backup."""
        saved = [entry for entry in self.manifest["tables"] if entry["table"] == "documents.tenants"]
        for entry in (*saved, self.manifest["later_tenants"]):
            with self.reader.file(entry["file"]) as file:
                await merge_in(conn, table_of(entry), file)

    async def _settled_documents(self, stores: Stores, name: str = "") -> SettledDocuments:
        """Complete or drop what was half written, and make the index live."""
        saved, tenants = self.manifest["documents"], PostgresTenants(stores.pool)
        if saved is None:
            return SettledDocuments()
        index = await self._documents_index(stores.qdrant, name or self._name("documents", saved["suffix"]))
        with self.reader.file(saved["file"]) as lines:
            settled = await settle_documents(index, lines, tenants, saved["since"], self.on_progress)
        await PostgresDocumentVersions(stores.pool).keep_live(index.name)
        await make_documents_live(stores.qdrant, self.settings.qdrant_documents_alias, index.name)
        return settled

    async def _settled(self) -> dict[str, object]:
        async with open_stores(self.settings) as stores:
            for kind, indexes in (("skills", stores.indexes.skills), ("tools", stores.indexes.items)):
                for fingerprint in self._fingerprints(kind):
                    await indexes.make_live(fingerprint)
            report = await settle_tools(stores, self.on_progress)
            library = await self._settled_library(stores.qdrant)
            settled = await self._settled_documents(stores)
            for tenant in settled.without:
                await PostgresTenants(stores.pool).note(Tenant(tenant), holds=False)
        return {
            **summary(self.manifest["scope"], dict(self.manifest)),
            "half_written_dropped": settled.dropped,
            "doctor": None if report is None else asdict(report),
            "library": library,
        }

    async def _settled_library(self, qdrant: Qdrant) -> dict[str, object] | None:
        for kind, indexes in zip(("chunks", "extractions"), knowledge_indexes(qdrant, self.settings), strict=True):
            for fingerprint in self._fingerprints(kind):
                await indexes.make_live(fingerprint)
        async with self._library() as library:
            if library is None:
                return None
            settled = await settle_library(self.settings, qdrant, library, self.on_progress)
        return None if settled is None else asdict(settled)

    async def _documents_index(self, qdrant: Qdrant, name: str) -> QdrantDocuments:
        """Open the restored collection, or create one for the documents that were saved one by one."""
        layout, card = document_layout(self.settings), documents_card(self.manifest)
        if any(index["kind"] == "documents" for index in self.manifest["indexes"]) or card is None:
            return await documents_of(qdrant, name, layout)
        return await create_documents(qdrant, name, card, layout, self.manifest["documents"]["source"])

    def _fingerprints(self, kind: str) -> list[str]:
        """Return the fingerprint of the saved index of a kind, that of its default namespace."""
        saved = (index for index in self.manifest["indexes"] if index["kind"] == kind)
        return [index["suffix"].removeprefix("__") for index in saved if index["namespace"] == "default"]


def documents_card(manifest: Mapping[str, Any]) -> DocumentCard | None:
    """Return the card of the saved documents. Raise if this program would cut their texts in another way."""
    if manifest["documents"] is None:
        return None
    saved = manifest["documents"]["card"]
    card = DocumentCard(ModelCard(**saved["model"]), saved["words_version"], saved["passages_version"])
    if card != DocumentCard(card.model) and manifest["scope"] != ONE_TENANT:
        raise ModelMismatch(
            "the documents were chunked and analyzed by another version of this program",
            hint=f"restore them with toolscript {manifest['toolscript']}, and then upgrade",
        )
    return card


def table_of(entry: Mapping[str, Any]) -> Table:
    schema, _, name = entry["table"].partition(".")
    return Table(schema, name, tuple(entry["columns"]))


async def _used_tables(pool: Pool) -> list[str]:
    used: list[str] = []
    async with connection(pool) as conn:
        conditions: Iterable[tuple[str, str]] = (
            *((table, "true") for table in USED_TABLES),
            ("mcp.audit", f"actor <> '{LOADER}' AND action NOT IN ('schema.migrate', 'backup.restore')"),
        )
        for table, condition in conditions:
            row = await (await conn.execute("SELECT to_regclass(%s) IS NOT NULL", (table,))).fetchone()
            if row != (True,):
                continue
            query = f"SELECT EXISTS (SELECT FROM {table} WHERE {condition})"  # noqa: S608 - constants
            row = await (await conn.execute(query.encode())).fetchone()
            used += [table] if row == (True,) else []
    return used
