"""A complete collection is not updated: Qdrant interrupts an optimization for every update."""

from dataclasses import dataclass, field, replace
from typing import Any

from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.retrieval.model import IndexCard
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.testing import HashEmbedder

CHANGES = {"Update", "CreateFieldIndex"}


@dataclass
class Recorder:
    """Forwards every call, and records the names of methods."""

    stub: Any
    called: list[str] = field(default_factory=list)

    def __getattr__(self, method: str) -> Any:
        self.called.append(method)
        return getattr(self.stub, method)


async def test_a_complete_collection_is_not_changed_by_the_next_start(
    indexes: QdrantIndexes,
) -> None:
    card = IndexCard(HashEmbedder().model)
    await indexes.create(card)
    points, collections = Recorder(indexes._qdrant.points), Recorder(indexes._qdrant.collections)
    engine = replace(indexes._qdrant, points=points, collections=collections)
    await QdrantIndexes(engine, indexes._alias, indexes._layout).create(card)
    assert "Get" in collections.called
    assert not CHANGES & {*points.called, *collections.called}


async def test_documents_that_are_opened_again_are_not_changed(qdrant_documents: QdrantDocuments) -> None:
    points, collections = Recorder(qdrant_documents._qdrant.points), Recorder(qdrant_documents._qdrant.collections)
    engine = replace(qdrant_documents._qdrant, points=points, collections=collections)
    alias = qdrant_documents.collection.partition("__")[0]
    await open_documents(engine, alias, qdrant_documents.card, DocumentLayout())
    assert "Get" in collections.called
    assert not CHANGES & {*points.called, *collections.called}
