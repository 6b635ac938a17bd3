"""What a restored installation has beyond the moment of its backup is completed or dropped.

PostgreSQL and MongoDB are the records, and their indexes were saved later. So an index can have a point that is
newer than its record, and lack one that was removed; it never has an older one without a note of it.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, cast

from toolscript.core.errors import ModelMismatch
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.retrieval.model import IndexCard, PointVersion
from toolscript.core.retrieval.ports import Index
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.backup import DocumentWriter, batches_of
from toolscript.documents.ports import Tenants
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.knowledge.ingest.reindex import sweep
from toolscript.knowledge.model.library import chunk_of_point, extraction_of_point
from toolscript.knowledge.mongo.backup import (
    IndexedState,
    expected_chunks,
    expected_extractions,
    forget_marks,
)
from toolscript.knowledge.mongo.connection import MongoLibrary
from toolscript.knowledge.mongo.library import MongoLibraryReader
from toolscript.server.library_stores import knowledge_card, knowledge_indexes
from toolscript.server.stores import AbsentModel, Stores
from toolscript.tools.indexing.doctor import Doctor, DoctorReport
from toolscript.tools.indexing.versions import open_for_doctor
from toolscript.tools.model.catalog import IndexVersionState


@dataclass(frozen=True)
class SettledLibrary:
    """`to_index` chunks have a point that is missing or too new; `dropped` points have no chunk."""

    to_index: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class SettledDocuments:
    """`dropped` documents were half written; the tenants `without` hold documents on record, and none here."""

    dropped: int = 0
    without: tuple[str, ...] = ()


async def settle_documents(
    index: QdrantDocuments, lines: Iterable[bytes], tenants: Tenants, since: int, on_progress: OnProgress
) -> SettledDocuments:
    """Put the documents that were written during the backup, whole, and drop others that were half written."""
    writer = DocumentWriter(index, AbsentModel(index.card.model), same_card=True)
    for batch in batches_of(lines):
        await writer.replace(batch)
        on_progress(Progress("documents", writer.documents))
    dropped, without = await writer.settle(tenants, since)
    return SettledDocuments(dropped, tuple(without))


async def settle_tools(stores: Stores, on_progress: OnProgress) -> DoctorReport | None:
    """Keep the live index version alone, and repair it; None if there is no index that this program can repair."""
    for index_version in await stores.dirty.index_versions():
        if index_version.state is not IndexVersionState.LIVE:
            await stores.dirty.forget(index_version.id)
    origin = await stores.indexes.items.origin()
    if origin is None:
        return None
    try:
        opened = await open_for_doctor(stores.indexes, stores.dirty, IndexCard(origin.model))
    except ModelMismatch:
        # Indexed by another version of this program: `reindex` is needed in any case.
        return None
    doctor = Doctor(stores.catalog, stores.dirty, stores.skill_vectors, opened)
    await doctor.examine(repair=True, on_progress=on_progress)
    return await doctor.examine()


async def settle_library(
    settings: Settings, qdrant: Qdrant, library: MongoLibrary, on_progress: OnProgress
) -> SettledLibrary | None:
    """Drop the points that the library does not have in this state; None if its index cannot be compared."""
    indexes = knowledge_indexes(qdrant, settings)
    origin = await indexes[0].origin()
    if origin is None:
        return None
    card = knowledge_card(origin.model)
    try:
        chunks, extractions = await indexes[0].open(card), await indexes[1].open(card)
    except ModelMismatch:
        return None
    reader = MongoLibraryReader(library)
    # Of extractions first: they need the marks of their chunks.
    to_index = await _forget_others(library, extractions, expected_extractions(library), on_progress)
    to_index |= await _forget_others(library, chunks, expected_chunks(library), on_progress)
    dropped = await sweep(chunks, reader.chunks, chunk_of_point)
    dropped += await sweep(extractions, reader.extractions, extraction_of_point)
    return SettledLibrary(len(to_index), dropped)


async def _forget_others(
    library: MongoLibrary, index: Index, states: AsyncIterator[IndexedState], on_progress: OnProgress
) -> set[Any]:
    forgotten, done = set[Any](), 0
    async for state in states:
        found = await index.fields(list(state.versions), ["version"]) if state.versions else {}
        versions = {point: cast("int", fields["version"]) for point, fields in found.items()}
        newer = [point for point, version in versions.items() if version > state.versions[point]]
        missing = [point for point in state.versions if point not in versions]
        await index.remove([PointVersion(point, versions[point]) for point in newer])
        chunks = {state.chunk_of[point] for point in (*newer, *missing)}
        await forget_marks(library, chunks)
        forgotten |= chunks
        done += len(state.versions)
        on_progress(Progress("points of the library compared", done))
    return forgotten
