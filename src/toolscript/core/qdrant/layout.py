"""Configuration of a collection. The numbers were measured at 10^4 to 10^6 points: docs/scale.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.core.qdrant import wire
from toolscript.core.qdrant.values import to_value
from toolscript.core.retrieval.model import Condition, IndexCard

DENSE, WORDS = "dense", "words"

# If fewer kilobytes of vectors than this pass a filter, they are scanned: exact, in about the time of the graph
# search. Larger values of a field get their own links in the graph.
SCAN_BELOW_KB = 20_000
# One segment per core of the engine: each query then uses all cores, and no more segments than cores.
MAX_SEGMENT_KB = 20_000_000
INDEX_FROM_KB = 10_000
# During a bulk load, small segments without a graph: inserts into a large growing segment become ever slower.
LOADING_SEGMENT_KB = 60_000


@dataclass(frozen=True)
class Layout:
    """Filterable fields, and the distribution of the collection over a cluster.

    Most points pass a condition in `broad`: dense retrieval checks it on the results, because as a filter it would
    only cut the graph's links. For `counted_fields` the number of points per value is sampled, and for
    `counted_empty` the number of points without a value. `engine_idf`: the engine applies the IDF of this
    collection; without it, terms have the weights of the query, which can be equal in several collections.
    """

    keyword_fields: tuple[str, ...] = ("type", "skill_ids", "type_skill", "server")
    bool_fields: tuple[str, ...] = ("is_active",)
    broad: frozenset[Condition] = frozenset({Condition("is_active", (True,)), Condition("type", ("tool",))})
    counted_fields: tuple[str, ...] = ("skill_ids", "type_skill")
    counted_empty: str = "skill_ids"
    shards: int = 1
    replicas: int = 1
    engine_idf: bool = True


def scanned_vectors(dimensions: int) -> int:
    """Return the number of vectors per segment below which the engine scans."""
    return SCAN_BELOW_KB * 1024 // (4 * dimensions)


def create_request(
    name: str, card: IndexCard, metadata: Mapping[str, object], layout: Layout
) -> wire.CreateCollection:
    dense = wire.VectorParams(size=card.model.dimensions, distance=wire.Distance.Cosine)
    words = wire.SparseVectorParams(modifier=wire.Modifier.Idf if layout.engine_idf else None)
    int8 = wire.ScalarQuantization(type=wire.QuantizationType.Int8, quantile=0.99, always_ram=True)
    return wire.CreateCollection(
        collection_name=name,
        vectors_config=wire.VectorsConfig(params_map=wire.VectorParamsMap(map={DENSE: dense})),
        sparse_vectors_config=wire.SparseVectorConfig(map={WORDS: words}),
        hnsw_config=wire.HnswConfigDiff(m=16, ef_construct=128, full_scan_threshold=SCAN_BELOW_KB),
        quantization_config=wire.QuantizationConfig(scalar=int8),
        optimizers_config=searching_config(),
        shard_number=layout.shards,
        replication_factor=layout.replicas,
        on_disk_payload=True,
        metadata={key: to_value(value) for key, value in metadata.items()},
    )


def searching_config() -> wire.OptimizersConfigDiff:
    return wire.OptimizersConfigDiff(max_segment_size=MAX_SEGMENT_KB, indexing_threshold=INDEX_FROM_KB)


def is_searching(config: wire.OptimizersConfigDiff) -> bool:
    expected = searching_config()
    return (config.max_segment_size, config.indexing_threshold) == (
        expected.max_segment_size,
        expected.indexing_threshold,
    )


def loading_config() -> wire.OptimizersConfigDiff:
    return wire.OptimizersConfigDiff(max_segment_size=LOADING_SEGMENT_KB, indexing_threshold=0)


def field_requests(name: str, layout: Layout) -> list[wire.CreateFieldIndexCollection]:
    """Return requests for payload indexes, created before the first point: the graph then gets links per value."""
    keyword = wire.PayloadIndexParams(keyword_index_params=wire.KeywordIndexParams(enable_hnsw=True))
    boolean = wire.PayloadIndexParams(bool_index_params=wire.BoolIndexParams(enable_hnsw=False))
    kinds = [
        *((field, wire.FieldType.FieldTypeKeyword, keyword) for field in layout.keyword_fields),
        *((field, wire.FieldType.FieldTypeBool, boolean) for field in layout.bool_fields),
    ]
    return [
        wire.CreateFieldIndexCollection(
            collection_name=name, field_name=field, field_type=kind, field_index_params=params, wait=True
        )
        for field, kind, params in kinds
    ]
