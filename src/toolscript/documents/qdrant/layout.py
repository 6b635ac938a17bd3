"""How the collection of documents is laid out. The numbers were measured: docs/scale.md.

There is no graph over all passages: each tenant that is large enough has one of its own, the others are scanned.
A search costs what its tenant has. Rarity of words is not the engine's, which would count everybody's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.core.errors import SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.values import to_value
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.tenant_points import GONE, HEAD, META, TENANT, path

DENSE, WORDS = "dense", "words"

# A tenant with fewer kilobytes of vectors than this is scanned: nothing is missed, in about a graph's time.
SCAN_BELOW_KB = 100_000
# A tenant with fewer passages than this: their words are read one by one. The lists of the others' words are long.
READ_BELOW = 20_000
INDEX_FROM_KB = 10_000
MAX_SEGMENT_KB = 20_000_000

RESCORED = wire.QuantizationSearchParams(rescore=True, oversampling=2.0)
# The least that finds 99 % of what an exact search finds in a tenant of 180,000 passages: some tight groups of a
# graph are found from far away only. The others have no graph, and beside what words cost this is little.
SEARCHED = wire.SearchParams(hnsw_ef=2_000, quantization=RESCORED)
SEARCHED_EXACTLY = wire.SearchParams(exact=True)

_KINDS: Mapping[str, tuple["wire.FieldType.ValueType", wire.PayloadIndexParams]] = {
    "keyword": (
        wire.FieldType.FieldTypeKeyword,
        wire.PayloadIndexParams(keyword_index_params=wire.KeywordIndexParams(enable_hnsw=False)),
    ),
    "number": (
        wire.FieldType.FieldTypeFloat,
        wire.PayloadIndexParams(float_index_params=wire.FloatIndexParams(enable_hnsw=False)),
    ),
    "bool": (
        wire.FieldType.FieldTypeBool,
        wire.PayloadIndexParams(bool_index_params=wire.BoolIndexParams(enable_hnsw=False)),
    ),
}


@dataclass(frozen=True)
class DocumentLayout:
    """`shards` 0: no cluster. `fields` are those of metadata that have an index, with their kinds."""

    shards: int = 0
    replicas: int = 1
    fields: Mapping[str, str] | None = None


def declared_fields(text: str) -> dict[str, str]:
    """`lang:keyword,year:number` as the settings have it."""
    declared = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, _, kind = one.rpartition(":")
        if not name or kind not in _KINDS:
            raise SetupError(
                f"TOOLSCRIPT_DOCUMENT_FIELDS: {one!r} is no field with its kind",
                hint=f"write name:kind with commas between; kinds are {', '.join(_KINDS)}",
            )
        declared[name] = kind
    return declared


def create_request(
    name: str, card: DocumentCard, metadata: Mapping[str, object], layout: DocumentLayout
) -> wire.CreateCollection:
    graphs = wire.HnswConfigDiff(m=0, payload_m=16, ef_construct=128, full_scan_threshold=SCAN_BELOW_KB)
    dense = wire.VectorParams(size=card.model.dimensions, distance=wire.Distance.Cosine, on_disk=True)
    words = wire.SparseVectorParams(index=wire.SparseIndexConfig(full_scan_threshold=READ_BELOW))
    int8 = wire.ScalarQuantization(type=wire.QuantizationType.Int8, quantile=0.99, always_ram=True)
    return wire.CreateCollection(
        collection_name=name,
        vectors_config=wire.VectorsConfig(params_map=wire.VectorParamsMap(map={DENSE: dense})),
        sparse_vectors_config=wire.SparseVectorConfig(map={WORDS: words}),
        hnsw_config=graphs,
        quantization_config=wire.QuantizationConfig(scalar=int8),
        optimizers_config=wire.OptimizersConfigDiff(
            max_segment_size=MAX_SEGMENT_KB, indexing_threshold=INDEX_FROM_KB
        ),
        sharding_method=wire.ShardingMethod.Custom if layout.shards else wire.ShardingMethod.Auto,
        shard_number=1,
        replication_factor=layout.replicas,
        on_disk_payload=True,
        metadata={key: to_value(value) for key, value in metadata.items()},
    )


def field_requests(
    name: str, layout: DocumentLayout, *, wait: bool = True
) -> list[wire.CreateFieldIndexCollection]:
    """Made before the first passage arrives: graphs are linked along the tenants."""
    tenant = wire.PayloadIndexParams(keyword_index_params=wire.KeywordIndexParams(is_tenant=True))
    fields = [
        (TENANT, wire.FieldType.FieldTypeKeyword, tenant),
        (HEAD, *_KINDS["bool"]),
        (GONE, *_KINDS["bool"]),
        *((path(META, field), *_KINDS[kind]) for field, kind in (layout.fields or {}).items()),
    ]
    return [
        wire.CreateFieldIndexCollection(
            collection_name=name, field_name=field, field_type=kind, field_index_params=params, wait=wait
        )
        for field, kind, params in fields
    ]
