"""How a collection is laid out, and how it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.values import to_value
from toolscript.model.models import IndexCard

DENSE, WORDS = "dense", "words"


@dataclass(frozen=True)
class Layout:
    """The fields that are filtered on, and how the collection is spread over a cluster."""

    keyword_fields: tuple[str, ...] = ("type", "skill_ids")
    bool_fields: tuple[str, ...] = ("is_active",)
    shards: int = 1
    replicas: int = 1


def create_request(
    name: str, card: IndexCard, metadata: Mapping[str, object], layout: Layout
) -> wire.CreateCollection:
    dense = wire.VectorParams(size=card.model.dimensions, distance=wire.Distance.Cosine)
    words = wire.SparseVectorParams(modifier=wire.Modifier.Idf)
    return wire.CreateCollection(
        collection_name=name,
        vectors_config=wire.VectorsConfig(params_map=wire.VectorParamsMap(map={DENSE: dense})),
        sparse_vectors_config=wire.SparseVectorConfig(map={WORDS: words}),
        shard_number=layout.shards,
        replication_factor=layout.replicas,
        on_disk_payload=True,
        metadata={key: to_value(value) for key, value in metadata.items()},
    )


def field_requests(name: str, layout: Layout) -> list[wire.CreateFieldIndexCollection]:
    """Made before the first point arrives: the graph is then linked along these fields too."""
    kinds = {
        **dict.fromkeys(layout.keyword_fields, wire.FieldType.FieldTypeKeyword),
        **dict.fromkeys(layout.bool_fields, wire.FieldType.FieldTypeBool),
    }
    return [
        wire.CreateFieldIndexCollection(collection_name=name, field_name=field, field_type=kind, wait=True)
        for field, kind in kinds.items()
    ]
