"""The indexes of a library: one of its chunks and one of what was extracted from them, alike in everything."""

from toolscript.adapters import qdrant
from toolscript.model.models import IndexCard, ModelCard
from toolscript.service.parts import model_source
from toolscript.settings.service import Settings
from toolscript.sync.chunking import CHUNKS_VERSION


def knowledge_layout(settings: Settings) -> qdrant.Layout:
    """Words weigh what a question says, the same in both: what the two find is put into one order."""
    filtered = ("source_id", "type", "topics")
    return qdrant.Layout(
        keyword_fields=filtered,
        bool_fields=(),
        broad=frozenset(),
        counted_fields=filtered,
        counted_empty="",
        shards=settings.qdrant_shards,
        replicas=settings.qdrant_replicas,
        engine_rarity=False,
    )


def knowledge_indexes(
    engine: qdrant.Qdrant, settings: Settings
) -> tuple[qdrant.QdrantIndexes, qdrant.QdrantIndexes]:
    """Of chunks, and of extractions."""
    layout, source = knowledge_layout(settings), model_source(settings)
    return (
        qdrant.QdrantIndexes(engine, settings.qdrant_chunks_alias, layout, source),
        qdrant.QdrantIndexes(engine, settings.qdrant_extractions_alias, layout, source),
    )


def knowledge_card(model: ModelCard) -> IndexCard:
    return IndexCard(model, text_version=CHUNKS_VERSION)
