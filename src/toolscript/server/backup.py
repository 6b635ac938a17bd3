"""toolscript backup: everything, or the documents of one tenant, to a folder.

The moment of a backup is that of PostgreSQL's snapshot, which is taken first. Every other part is read later, and
so holds whatever was acknowledged until then:

    PostgreSQL, one snapshot -> MongoDB, source by source -> snapshots of Qdrant's collections
      -> documents that were put meanwhile, whole -> numbers that must not be used again -> manifest

What the later parts have beyond the moment is completed or dropped by `restore`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from toolscript.core.auth.model import Tenant
from toolscript.core.backup_folder import BackupWriter
from toolscript.core.errors import Conflict, NotFound, SetupError
from toolscript.core.postgres.copying import Table, copy_out, one_snapshot, sequences_of, tables_of
from toolscript.core.postgres.pool import Connection
from toolscript.core.postgres.schema import FIND_REVISION
from toolscript.core.qdrant.collections import CollectionInfo, list_collections
from toolscript.core.qdrant.connection import Tls, listed_nodes
from toolscript.core.qdrant.snapshots import QdrantSnapshots, open_snapshots
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.core.version import __version__
from toolscript.documents.backup import DocumentReader, SavedDocument, tenants_in_order
from toolscript.documents.postgres import PostgresTenants
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.knowledge.mongo.backup import NAMES, save_library
from toolscript.knowledge.mongo.connection import open_mongo
from toolscript.server.document_index import LiveIndex
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, open_stores
from toolscript.tools.postgres.search_log import PostgresSearchLog

EVERYTHING, ONE_TENANT = "everything", "tenant"
LINES = "documents/lines.gz"
TENANT_TABLES = {"documents.tenants": "name", "documents.queries": "tenant"}
# A write that is half in a snapshot got its version this long before the backup at most: embedding takes a moment,
# and the clocks of two machines differ.
MARGIN_SECONDS = 900
MAX_NAMED = 20


def back_up(folder: str, *, tenant: str | None, on_progress: OnProgress) -> dict[str, object]:
    settings, writer = load_settings(), BackupWriter(Path(folder))

    async def run() -> dict[str, object]:
        async with open_stores(settings) as stores:
            job = _Backup(settings, stores, writer, on_progress)
            return await (job.everything() if tenant is None else job.tenant(Tenant(tenant)))

    try:
        return asyncio.run(run())
    except BaseException:
        writer.discard()
        raise


def aliases_of(settings: Settings) -> dict[str, str]:
    """Return the alias of each index, by what it holds."""
    return {
        "documents": settings.qdrant_documents_alias,
        "tools": settings.qdrant_alias,
        "skills": settings.qdrant_skills_alias,
        "chunks": settings.qdrant_chunks_alias,
        "extractions": settings.qdrant_extractions_alias,
    }


@asynccontextmanager
async def snapshots_of(settings: Settings) -> AsyncIterator[QdrantSnapshots]:
    tls = Tls(settings.qdrant_ca_file, settings.qdrant_client_certificate, settings.qdrant_client_key)
    url = next((node for node in listed_nodes(settings.qdrant_url) if "://" in node), None)
    if url is None:
        raise SetupError(
            "TOOLSCRIPT_QDRANT_URL names no node by its HTTP address, which snapshots need",
            hint="name one of them like http://host:6333",
        )
    key = settings.qdrant_api_key.get_secret_value()
    async with open_snapshots(url, api_key=key, tls=tls) as snapshots:
        yield snapshots


@dataclass
class _Counted:
    """A file that reports how much was written to it, and to those before it."""

    file: BinaryIO
    on_progress: OnProgress
    task: str
    done: int = 0

    def write(self, data: bytes) -> int:
        self.done += len(data)
        self.on_progress(Progress(self.task, self.done >> 20))
        return self.file.write(data)


@dataclass(frozen=True)
class _Backup:
    settings: Settings
    stores: Stores
    writer: BackupWriter
    on_progress: OnProgress

    async def everything(self) -> dict[str, object]:
        async with snapshots_of(self.settings) as snapshots:
            live = await self._live_collections()
            index = await LiveIndex.of(self.settings, self.stores).open()
            is_cluster = await snapshots.is_cluster()
            rows = await self._rows()
            library = await self._library()
            saved = [] if is_cluster else [await self._snapshot(snapshots, *each) for each in enumerate(live)]
            since = 0 if is_cluster else _microseconds(rows["began_at"]) - MARGIN_SECONDS * 1_000_000
            documents = None if index is None else await self._lines(index, self._tenants(), since)
            late = await self._late()
            if _versions(await self._live_collections()) != _versions(live):
                raise Conflict("an index was replaced by another one meanwhile", hint="run the backup again")
        facts = {"indexes": saved, "documents": documents, "library": library, **rows, **late}
        return self._finish(EVERYTHING, facts)

    async def tenant(self, tenant: Tenant) -> dict[str, object]:
        index = await LiveIndex.of(self.settings, self.stores).open()
        rows = await self._rows(tenant)
        if index is None or not rows["tables"][0]["rows"]:
            raise NotFound(f"there is no tenant {tenant}", hint="`toolscript tenants list` lists them")
        documents = await self._lines(index, _only(tenant), 0)
        return self._finish(ONE_TENANT, {"tenant": tenant.name, "documents": documents, **rows})

    def _finish(self, scope: str, facts: dict[str, Any]) -> dict[str, object]:
        ended = datetime.now(UTC).isoformat()
        self.writer.finish({"toolscript": __version__, "scope": scope, "ended_at": ended, **facts})
        size = sum(file.stat().st_size for file in self.writer.folder.rglob("*") if file.is_file())
        return {**summary(scope, facts), "folder": str(self.writer.folder), "bytes": size}

    async def _live_collections(self) -> list[tuple[str, CollectionInfo]]:
        return [
            (kind, collection)
            for kind, alias in aliases_of(self.settings).items()
            for collection in await list_collections(self.stores.qdrant, alias)
            if collection.is_live
        ]

    async def _rows(self, tenant: Tenant | None = None) -> dict[str, Any]:
        written = 0
        async with one_snapshot(self.stores.pool) as conn:
            row = await (await conn.execute("SELECT now()")).fetchone()
            revision = await (await conn.execute(FIND_REVISION)).fetchone()
            began_at = cast("datetime", row[0]).astimezone(UTC).isoformat() if row else ""
            tables = await tables_of(conn)
            if tenant is not None:
                tables = [table for table in tables if table.full_name in TENANT_TABLES]
                tables.sort(key=lambda table: list(TENANT_TABLES).index(table.full_name))
            saved = []
            for table in tables:
                where = {TENANT_TABLES[table.full_name]: tenant.name} if tenant is not None else None
                entry, written = await self._table(conn, table, f"postgres/{table.full_name}.gz", where, written)
                saved.append(entry)
            days = [] if tenant is not None else await PostgresSearchLog(self.stores.pool).days()
        return {
            "began_at": began_at,
            "schema": str(revision[0]) if revision else "",
            "tables": saved,
            "search_log_days": [f"{day:%Y-%m-%d}" for day in days],
        }

    async def _table(
        self, conn: Connection, table: Table, name: str, where: dict[str, str] | None, written: int
    ) -> tuple[dict[str, Any], int]:
        with self.writer.file(name) as file:
            counted = _Counted(file, self.on_progress, "MiB of PostgreSQL", written)
            rows = await copy_out(conn, table, cast("BinaryIO", counted), where)
        entry = {"table": table.full_name, "columns": table.columns, "rows": rows, "file": name}
        return entry, counted.done

    async def _late(self) -> dict[str, Any]:
        """Read what the snapshots need beyond the moment: their tenants, and numbers above all that they use."""
        async with one_snapshot(self.stores.pool) as conn:
            tenants = next(table for table in await tables_of(conn) if table.full_name == "documents.tenants")
            entry, _ = await self._table(conn, tenants, "postgres/documents.tenants.later.gz", None, 0)
            return {"later_tenants": entry, "sequences": await sequences_of(conn)}

    async def _library(self) -> dict[str, Any] | None:
        url = self.settings.mongo_url.get_secret_value() or self.settings.mongo_writer_url.get_secret_value()
        if not url:
            return None
        async with open_mongo(url, self.settings.mongo_database) as library:
            names = {name: f"mongo/{name}.bson.gz" for name in NAMES}
            with ExitStack() as stack:
                files = {name: stack.enter_context(self.writer.file(file)) for name, file in names.items()}
                counts = await save_library(library, files, self.on_progress)
        return {"files": names, **asdict(counts)}

    async def _snapshot(
        self, snapshots: QdrantSnapshots, number: int, collection: tuple[str, CollectionInfo]
    ) -> dict[str, Any]:
        kind, info = collection
        name, alias = f"qdrant/{number:04}.snapshot", aliases_of(self.settings)[kind]
        with self.writer.file(name, compressed=False) as file:
            await snapshots.download(info.origin.collection, file, self.on_progress)
        # The alias is left out: it may be another one where this is restored.
        suffix = info.origin.collection.removeprefix(alias)
        facts = {"kind": kind, "suffix": suffix, "namespace": info.namespace, "points": info.points}
        return {**facts, "model": info.origin.model.name, "file": name}

    async def _lines(self, index: QdrantDocuments, tenants: AsyncIterator[Tenant], since: int) -> dict[str, Any]:
        reader, documents, chunks = DocumentReader(index), 0, 0
        with self.writer.file(LINES) as file:
            async for tenant in tenants:
                async for batch in reader.documents(tenant, since):
                    _write_lines(file, batch)
                    documents += len(batch)
                    chunks += sum(len(saved.vectors) for saved in batch)
                    self.on_progress(Progress("documents", documents))
        return {
            "suffix": index.name.removeprefix(self.settings.qdrant_documents_alias),
            "card": asdict(index.card),
            "source": index.origin.source,
            "file": LINES,
            "since": since,
            "documents": documents,
            "chunks": chunks,
            "left_out": len(reader.left_out),
            "left_out_ids": reader.left_out[:MAX_NAMED],
        }

    def _tenants(self) -> AsyncIterator[Tenant]:
        return tenants_in_order(PostgresTenants(self.stores.pool))


def summary(scope: str, facts: dict[str, Any]) -> dict[str, object]:
    """Return the counts of a manifest, for people and programs."""
    rows = {table["table"]: table["rows"] for table in facts["tables"]}
    documents, indexes = facts["documents"] or {}, facts.get("indexes", [])
    snapshot = next((each for each in indexes if each["kind"] == "documents"), None)
    library = facts.get("library") or {}
    return {
        "scope": scope,
        "tenant": facts.get("tenant"),
        "moment": facts["began_at"],
        "items": rows.get("mcp.items", 0),
        "rows": sum(rows.values()),
        "tenants": rows.get("documents.tenants", 0),
        "chunks": snapshot["points"] if snapshot else documents.get("chunks", 0),
        "sources": library.get("sources", 0),
        "indexes": len(indexes),
        "left_out": documents.get("left_out_ids", []) if not snapshot else [],
        "unfinished_sources": library.get("unfinished", 0),
    }


def _versions(live: Iterable[tuple[str, CollectionInfo]]) -> set[str]:
    return {collection.index_version for _, collection in live}


def _write_lines(file: BinaryIO, batch: Iterable[SavedDocument]) -> None:
    file.writelines(saved.line() for saved in batch)


def _microseconds(moment: str) -> int:
    """Return the earlier of the database's clock and this one, as documents count versions."""
    return int(min(datetime.fromisoformat(moment).timestamp(), time.time()) * 1e6)


async def _only(tenant: Tenant) -> AsyncIterator[Tenant]:
    yield tenant
