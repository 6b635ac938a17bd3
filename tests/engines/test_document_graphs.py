"""A tenant that is large enough for a graph: filters find their matches from any entry point."""

import uuid
from collections.abc import AsyncIterator

import numpy as np
import pytest

from benchmarks.documents import BenchDocuments
from tests.conftest import drop_collections
from tests.contracts.document_builders import ANN, CARD, dense, document, must
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.documents.ports import TenantDocuments
from toolscript.documents.qdrant import layout
from toolscript.documents.qdrant.collection import open_documents
from toolscript.documents.qdrant.layout import DocumentLayout

DOCUMENTS, AT_ONCE, HALVES = 3_000, 250, 2


@pytest.fixture
async def large(engines: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TenantDocuments]:
    """A tenant with few dimensions, and a graph from a few kilobytes on."""
    for constant in ("SCAN_BELOW_KB", "INDEX_FROM_KB"):
        monkeypatch.setattr(layout, constant, 10)
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        index = await open_documents(connected, alias, CARD, DocumentLayout(fields={"half": "number"}))
        shelf = index.of(ANN)
        vectors = np.random.default_rng(1).standard_normal((DOCUMENTS, CARD.model.dimensions), dtype=np.float32)
        for start in range(0, DOCUMENTS, AT_ONCE):
            batch = range(start, start + AT_ONCE)
            await shelf.put([document(f"{n}", vectors=[vectors[n]], metadata={"half": n % HALVES}) for n in batch])
        await BenchDocuments(connected, alias, index).settle(silent)
        yield shelf
        await drop_collections(connected, alias)


@pytest.mark.requirement("DOC-002")
async def test_the_nearest_hits_of_either_half_are_found(large: TenantDocuments) -> None:
    query = np.random.default_rng(2).standard_normal(CARD.model.dimensions).astype(np.float32)
    everything = await dense(large, query, limit=DOCUMENTS)
    assert len(everything) > DOCUMENTS * 0.9
    for half in range(HALVES):
        hits = await dense(large, query, filters=must("half", "eq", half), limit=50)
        assert len(hits) == 50
        assert hits[0].score >= 0.5
