"""Contents of the demo: a small catalog, documents of one tenant and a library, all in memory."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.documents.model.document import Document, document_from_json
from toolscript.knowledge.ingest.file import LEASE_SECONDS, FileIngest, FileInspection, FoundFile
from toolscript.knowledge.ingest.indexes import LibraryIndexes
from toolscript.knowledge.ingest.report import IngestProgress
from toolscript.knowledge.ingest.run import IngestRun
from toolscript.knowledge.model.ingest import Reading
from toolscript.knowledge.readers.blocks import ReadingLimits
from toolscript.knowledge.readers.reading import read_bytes
from toolscript.server.indexing import worker_of
from toolscript.server.ingest import LibraryResources, prepare_write_context
from toolscript.server.skills import default_skills
from toolscript.server.stores import CatalogStores
from toolscript.testing import (
    MemoryAssignments,
    MemoryCatalog,
    MemoryCatalogContents,
    MemoryCurationRules,
    MemoryDirtySet,
    MemoryIndexes,
    MemoryLibrary,
    MemorySearchLog,
    MemorySkillVectors,
    MemorySuggestions,
    MemorySyncJobs,
    MemoryTaxonomy,
)
from toolscript.tools.catalog.items import import_items
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing.versions import IndexPair, Readable, open_for_writing
from toolscript.tools.skills.importing import load_defaults

SOURCE = "demo"
# Id of the only index version: the demo never reindexes.
FIRST_GENERATION = 1


@dataclass(frozen=True)
class DemoContents:
    """`library` maps each path to the content of the file."""

    items: Sequence[Item]
    documents: Sequence[Document]
    library: Mapping[str, bytes]


def read_contents() -> DemoContents:
    text = resources.files("toolscript.server").joinpath("demo_data.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return DemoContents(
        [item_from_json(entry) for entry in data["tools"]],
        [document_from_json(entry) for entry in data["documents"]],
        {path: "\n".join(lines).encode() for path, lines in data["library"].items()},
    )


def memory_stores() -> CatalogStores:
    dirty = MemoryDirtySet()
    catalog = MemoryCatalog(dirty)
    taxonomy = MemoryTaxonomy(catalog)
    suggestions = MemorySuggestions(catalog, taxonomy)
    skill_vectors = MemorySkillVectors(dirty, taxonomy.skills)
    taxonomy.count_tools = partial(skill_vectors.members, FIRST_GENERATION)
    return CatalogStores(
        catalog,
        MemoryCatalogContents(catalog),
        catalog.changes,
        MemorySyncJobs(),
        dirty,
        taxonomy,
        MemoryAssignments(catalog, taxonomy, suggestions),
        suggestions,
        skill_vectors,
        MemoryCurationRules(catalog, taxonomy),
        MemorySearchLog(catalog),
        IndexPair(MemoryIndexes(), MemoryIndexes(), skill_vectors),
    )


async def fill_catalog(stores: CatalogStores, embedder: Embedder, items: Sequence[Item]) -> Readable:
    """Fill the catalog as `migrate`, `sync` and `worker` fill the engines."""
    await load_defaults(stores.taxonomy, default_skills())
    await import_items(stores.catalog, SOURCE, items)
    opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(embedder.model))
    await worker_of(stores, embedder, RulesClassifier(embedder), opened).drain()
    return Readable(opened.index, opened.skills)


async def fill_library(embedder: Embedder, files: Mapping[str, bytes]) -> LibraryResources:
    """Fill the library as `ingest` does."""
    library = MemoryLibrary()
    indexes = LibraryIndexes(MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False))
    opened = LibraryResources(library, library, embedder, indexes)
    inspection = FileInspection(FilesInMemory(files), opened.card.fingerprint, tokens=opened.tokens)
    ingest = FileIngest(await prepare_write_context(opened), inspection)
    run = IngestRun(ingest, opened.writer, IngestProgress(), lease_seconds=LEASE_SECONDS)
    await run.run([FoundFile(path, path) for path in files])
    return opened


class FilesInMemory:
    """Source files in memory. They ship with the package, so they are read without the sandbox."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    async def content_hash(self, path: str) -> str:
        return hashlib.sha256(self._files[path]).hexdigest()

    async def read(self, path: str) -> Reading:
        return read_bytes(path, self._files[path], ReadingLimits())
