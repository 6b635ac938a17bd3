"""What a restored installation has beyond the moment of its backup is completed or dropped: real engines."""

import asyncio
from io import BytesIO
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run
from toolscript.core.auth.model import Tenant
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.values import silent
from toolscript.documents.backup import DocumentReader, DocumentWriter, SavedDocument
from toolscript.documents.model.document import Document, DocumentHeader, document_key
from toolscript.documents.model.points import IndexedDocument
from toolscript.documents.postgres import PostgresTenants
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.documents.qdrant.tenant_documents import put_documents
from toolscript.documents.qdrant.tenant_points import TenantPoints
from toolscript.documents.service import Indexing, prepared
from toolscript.knowledge.mongo.backup import NAMES, load_library, save_library
from toolscript.knowledge.mongo.connection import open_mongo
from toolscript.server.settling import settle_documents, settle_library
from toolscript.server.stores import connect_qdrant
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("OP-003")

ACME = Tenant("acme")
SINCE = 1_000


def _document(id_: str, words: str) -> Document:
    return Document(id_, " ".join(f"Sentence {number} is about {words}." for number in range(300)), {})


async def _indexed(document: Document, version: int, replaces: int = 0) -> IndexedDocument:
    key = document_key(ACME, document.id)
    existing = {key: DocumentHeader(key, document.id, {}, "", replaces, 1)} if replaces else {}
    ready = await prepared({key: document})
    (indexed,) = await Indexing(HashEmbedder()).as_of({key: version}, ready, existing)
    return indexed


async def _begin_to_write(index: QdrantDocuments, document: IndexedDocument) -> None:
    """Write as a client that is killed before its document is complete."""
    points = TenantPoints(index._qdrant, index.collection, ACME)
    await put_documents(points, [document])


async def _saved(index: QdrantDocuments, since: int = 0) -> dict[str, SavedDocument]:
    reader = DocumentReader(index)
    return {entry.document.id: entry async for batch in reader.documents(ACME, since) for entry in batch}


def _key(id_: str) -> DocumentKey:
    return document_key(ACME, id_)


async def test_documents_are_saved_and_put_again_with_the_same_vectors(qdrant_documents: QdrantDocuments) -> None:
    documents = qdrant_documents.of(ACME)
    await documents.restore([await _indexed(_document("a", "tea"), 5), await _indexed(_document("b", "wine"), 6)])
    saved = await _saved(qdrant_documents)
    assert {id_: entry.version for id_, entry in saved.items()} == {"a": 5, "b": 6}
    headers, ids = await documents.headers([_key("a")]), [ChunkId(_key("a"), number) for number in range(2)]
    vectors = await documents.vectors(ids)
    await documents.erase()
    writer = DocumentWriter(qdrant_documents, HashEmbedder(), same_card=True)
    await writer.put(list(saved.values()))
    assert await documents.headers([_key("a")]) == headers
    again = await documents.vectors(ids)
    assert {id_: vector.tolist() for id_, vector in again.items()} == {
        id_: vector.tolist() for id_, vector in vectors.items()
    }
    assert writer.documents == 2


async def test_a_newer_state_of_a_document_is_kept_where_clients_write(qdrant_documents: QdrantDocuments) -> None:
    old, new = await _indexed(_document("a", "tea"), 5), await _indexed(_document("a", "coffee"), 9)
    await qdrant_documents.of(ACME).restore([old])
    saved = await _saved(qdrant_documents)
    await qdrant_documents.of(ACME).put([new])
    await DocumentWriter(qdrant_documents, HashEmbedder(), same_card=True).put([saved["a"]])
    assert (await _saved(qdrant_documents))["a"].document == _document("a", "coffee")


async def test_half_written_documents_become_whole_or_leave(qdrant_documents: QdrantDocuments, pool: Pool) -> None:
    """Of `a` and `b` a later write is half there, and `a` was saved whole at the end of the backup."""
    for tenant in (ACME, Tenant("empty")):
        await PostgresTenants(pool).seen(tenant)
    await PostgresTenants(pool).note(Tenant("empty"), holds=True)
    documents = qdrant_documents.of(ACME)
    later = await _indexed(_document("a", "coffee"), 2_001)
    await documents.restore([later])
    saved = await _saved(qdrant_documents, SINCE)
    await documents.erase()
    before = [await _indexed(_document(id_, "tea"), 5) for id_ in ("a", "b", "c")]
    await documents.restore(before)
    chunks = len(before[0].passages)
    for id_ in ("a", "b"):
        await _begin_to_write(qdrant_documents, await _indexed(_document(id_, "milk"), 2_000, replaces=chunks))
    # Nobody has finished this one either, but long before the backup.
    await _begin_to_write(qdrant_documents, await _indexed(_document("old", "dust"), 7, replaces=chunks))
    lines = [entry.line() for entry in saved.values()]
    settled = await settle_documents(qdrant_documents, lines, PostgresTenants(pool), SINCE, silent)
    assert (settled.dropped, settled.without) == (1, ("empty",))
    assert await PostgresTenants(pool).holds(ACME)
    now = await documents.headers([_key(id_) for id_ in ("a", "b", "c", "old")])
    assert {header.id: (header.version, header.complete) for header in now.values()} == {
        "a": (2_001, True),
        "c": (5, True),
        "old": (7, False),
    }
    assert (await _saved(qdrant_documents))["a"].document == _document("a", "coffee")


async def test_points_that_the_restored_library_does_not_have_in_this_state_leave(
    installation: Installation, tmp_path: Path
) -> None:
    """The index is that of the end of a backup, and the library that of its beginning."""
    shelf, environment = tmp_path / "shelf", installation.environment
    shelf.mkdir()
    (shelf / "bees.md").write_text("# Bees\n\nA hive needs a dry place.\n", "utf-8")
    await _run(environment, "ingest", str(shelf), "--base", str(shelf))
    settings = installation.settings
    url, files = settings.mongo_writer_url.get_secret_value(), {name: BytesIO() for name in NAMES}
    async with open_mongo(url, settings.mongo_database) as library, connect_qdrant(settings) as qdrant:
        counts = await save_library(library, files, silent)
        assert (counts.sources, counts.unfinished) == (1, 0)
        assert await settle_library(settings, qdrant, library, silent) is not None
        (shelf / "tea.md").write_text("# Tea\n\nWater it in the morning.\n", "utf-8")
        await _run(environment, "ingest", str(shelf), "--base", str(shelf), "--topic", "Nature")
        for file in files.values():
            file.seek(0)
        await load_library(library, files, silent)
        settled = await settle_library(settings, qdrant, library, silent)
        assert settled is not None
        assert (settled.to_index, settled.dropped) == (1, 1)
        await _run(environment, "reindex", "knowledge")
        again = await settle_library(settings, qdrant, library, silent)
        assert again is not None
        assert (again.to_index, again.dropped) == (0, 0)


async def _run(environment: dict[str, str], *arguments: str) -> None:
    await asyncio.to_thread(run, environment, *arguments)
