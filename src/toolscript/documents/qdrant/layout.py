"""Layout of the document collection. The numbers were measured: docs/scale.md.

There is no HNSW graph over all chunks: each tenant that is large enough has its own, the others are scanned.
The cost of a search depends on its tenant only. IDF is not the engine's, which would count all tenants.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.core.errors import SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.values import to_value
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.tenant_points import GONE, HEAD, META, TENANT, path

DENSE, WORDS = "dense", "words"

# A tenant with fewer kilobytes of vectors is scanned: full recall, in about the time of a graph.
SCAN_BELOW_KB = 100_000
# For a tenant with fewer chunks, sparse vectors are scanned: posting lists of all tenants are long.
READ_BELOW = 20_000
INDEX_FROM_KB = 10_000
MAX_SEGMENT_KB = 20_000_000

RESCORED = wire.QuantizationSearchParams(rescore=True, oversampling=2.0)
# The lowest value with a recall of 99 % in a tenant of 180,000 chunks: some tight clusters of a graph are reached
# from far away only. Other tenants have no graph, and beside the cost of sparse retrieval this is little.
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
    """`shards` 0: no cluster. `fields` maps the metadata fields with an index to their kinds."""

    shards: int = 0
    replicas: int = 1
    fields: Mapping[str, str] | None = None


def declared_fields(text: str) -> dict[str, str]:
    """Parse the setting, such as `lang:keyword,year:number`."""
    declared = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, kind = entry.rpartition(":")
        if not name or kind not in _KINDS:
            raise SetupError(
                f"TOOLSCRIPT_DOCUMENT_FIELDS: {entry!r} is not a field with its kind",
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
    """Return the requests for field indexes. They must precede the first chunk: graphs are linked per tenant."""
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
