"""The points of one tenant: ids, payloads, and the only code that queries the engine for documents.

Every request gets its tenant here, in its filter, and in a cluster its shard. Requests by id get the filter as
well: an id of another tenant matches nothing. Every written point carries its tenant; if a chunk of another tenant
ever comes back, the request fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import IndexRejected
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, translated
from toolscript.core.qdrant.values import to_value
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.documents.qdrant.shards import only, shard_selector

LETTERS_OF_KEY = 24

TENANT = "tenant"
# Marks a point that is about to be removed. It has nothing else but its tenant and version.
GONE = "gone"
HEAD = "head"
VERSION = "version"
TEXT, START, END = "text", "start", "end"
META, MOMENTS = "meta", "moments"
ID, METADATA, HASH, CHUNKS, COMPLETE = "doc_id", "metadata", "hash", "passages", "complete"
HEADER_FIELDS = (TENANT, VERSION, ID, METADATA, HASH, CHUNKS, COMPLETE)
CHUNK_FIELDS = (TENANT, TEXT, START, END)
SHOWN_FIELDS = tuple(dict.fromkeys((*HEADER_FIELDS, *CHUNK_FIELDS)))

EVERYTHING = wire.Filter()
NO_PAYLOAD = wire.WithPayloadSelector(enable=False)
IS_GONE = wire.Condition(field=wire.FieldCondition(key=GONE, match=wire.Match(boolean=True)))


def point_id(id_: ChunkId) -> wire.PointId:
    key, number = id_
    return wire.PointId(uuid=f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}{number:08x}")


def chunk_id_of(point: wire.PointId) -> ChunkId:
    letters = point.uuid.replace("-", "")
    return ChunkId(letters[:LETTERS_OF_KEY], int(letters[LETTERS_OF_KEY:], 16))


def head_ids(keys: Iterable[DocumentKey]) -> list[ChunkId]:
    return [ChunkId(key, 0) for key in keys]


def field_name(name: str) -> str:
    """Escape a metadata name for the engine's paths, where dots and brackets have a meaning."""
    return "f" + "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-" for letter in name
    )


def path(kind: str, name: str) -> str:
    """Return the payload path of a metadata field; `kind` is META or MOMENTS."""
    return f"{kind}.{field_name(name)}"


@dataclass(frozen=True)
class Query:
    """One query to one retriever."""

    using: str
    nearest: wire.VectorInput
    where: wire.Filter
    limit: int
    params: wire.SearchParams | None = None


@dataclass(frozen=True)
class Span:
    """Points, and a range of their versions."""

    ids: Sequence[ChunkId]
    minimum: int
    maximum: int


class TenantPoints:
    def __init__(
        self,
        qdrant: Qdrant,
        collection: str,
        tenant: Tenant,
        shards: int = 0,
        shard: wire.ShardKeySelector | None = None,
    ) -> None:
        self._qdrant = qdrant
        self._collection = collection
        self.tenant = tenant
        self._shard = shard or shard_selector(tenant, shards)

    def in_shard(self, key: wire.ShardKey) -> "TenantPoints":
        """Return the tenant's points in this shard only, for a migration."""
        return TenantPoints(self._qdrant, self._collection, self.tenant, shard=only(key))

    async def query(self, queries: Sequence[Query], fields: Sequence[str] = ()) -> list[Sequence[Any]]:
        """Return the points that each query finds; those of the first one with these fields of their payload."""
        selected = wire.PayloadIncludeSelector(fields=fields)
        shown = wire.WithPayloadSelector(include=selected) if fields else NO_PAYLOAD
        requests = [
            wire.QueryPoints(
                collection_name=self._collection,
                query=wire.Query(nearest=query.nearest),
                using=query.using,
                filter=self._tenant_filter(query.where),
                limit=query.limit,
                params=query.params,
                with_payload=NO_PAYLOAD if number else shown,
                shard_key_selector=self._shard,
            )
            for number, query in enumerate(queries)
        ]
        request = wire.QueryBatchPoints(collection_name=self._collection, query_points=requests)
        answer = await self._call("QueryBatch", request)
        if len(answer.result) != len(requests):
            raise IndexRejected(f"Qdrant answered {len(answer.result)} of {len(requests)} queries")
        found = [batch.result for batch in answer.result]
        if fields:
            # One that was removed while it was found may have no payload.
            self._require_own([point for point in found[0] if point.payload])
        return found

    async def scroll(
        self,
        where: wire.Filter,
        limit: int,
        *,
        fields: Sequence[str] = (),
        vector: str = "",
        since: ChunkId | None = None,
    ) -> Sequence[Any]:
        """Return the next points ordered by id, with these payload fields, or with a vector."""
        request = wire.ScrollPoints(
            collection_name=self._collection,
            filter=self._not_marked(where),
            limit=limit,
            offset=None if since is None else point_id(since),
            with_payload=wire.WithPayloadSelector(include=wire.PayloadIncludeSelector(fields=[TENANT, *fields])),
            with_vectors=_with_vector(vector),
            shard_key_selector=self._shard,
        )
        return await self._scroll_checked(request)

    async def whole(self, where: wire.Filter, limit: int) -> list[wire.PointStruct]:
        """Return points with payloads and vectors, ready to be put again."""
        request = wire.ScrollPoints(
            collection_name=self._collection,
            filter=self._not_marked(where),
            limit=limit,
            with_payload=wire.WithPayloadSelector(enable=True),
            with_vectors=wire.WithVectorsSelector(enable=True),
            shard_key_selector=self._shard,
        )
        return [_as_put(point) for point in await self._scroll_checked(request)]

    async def _scroll_checked(self, request: wire.ScrollPoints) -> Sequence[Any]:
        points: Sequence[Any] = (await self._call("Scroll", request)).result
        self._require_own(points)
        return points

    def _require_own(self, points: Sequence[Any]) -> None:
        if any(point.payload[TENANT].string_value != self.tenant.name for point in points):
            raise IndexRejected("Qdrant answered with points of another tenant")

    async def count(self, where: wire.Filter, *, exact: bool) -> int:
        request = wire.CountPoints(
            collection_name=self._collection,
            filter=self._tenant_filter(where),
            exact=exact,
            shard_key_selector=self._shard,
        )
        return int((await self._call("Count", request)).result.count)

    async def put(self, points: Sequence[wire.PointStruct], version: int) -> None:
        """Write the points, except where a newer version exists."""
        await self._upsert([(point, version) for point in points], wire.Filter(must=[version_between(0, version)]))

    async def restore(self, points: Sequence[tuple[wire.PointStruct, int]]) -> None:
        """Write the points, each with its own version, over any other version of this tenant."""
        await self._upsert(points, wire.Filter())

    async def replace(self, points: Sequence[wire.PointStruct], version: int, same: wire.Condition) -> None:
        """Overwrite points that have exactly this version and match `same`."""
        where = wire.Filter(must=[version_between(version, version), same])
        await self._upsert([(point, version) for point in points], where, update_mode=wire.UpdateMode.UpdateOnly)

    async def _upsert(
        self, points: Sequence[tuple[wire.PointStruct, int]], where: wire.Filter, **options: Any
    ) -> None:
        for point, version in points:
            point.payload[TENANT].CopyFrom(to_value(self.tenant.name))
            point.payload[VERSION].CopyFrom(to_value(version))
        request = wire.UpsertPoints(
            collection_name=self._collection,
            wait=True,
            points=[point for point, _ in points],
            update_filter=self._tenant_filter(where),
            shard_key_selector=self._shard,
            **options,
        )
        await self._call("Upsert", request)

    async def remove_versions(self, spans: Sequence[Span]) -> None:
        """Remove these points in these ranges of versions.

        It marks them, then removes the marked points: a write that combines ids with a filter leaves a record that
        the engine cannot read when it restarts after a crash.
        """
        marks = [wire.PointsUpdateOperation(upsert=self._mark(span)) for span in spans]
        marked = wire.PointsSelector(filter=self._tenant_filter(wire.Filter(must=[IS_GONE])))
        away = wire.PointsUpdateOperation.DeletePoints(points=marked, shard_key_selector=self._shard)
        operations = [*marks, wire.PointsUpdateOperation(delete_points=away)]
        request = wire.UpdateBatchPoints(collection_name=self._collection, wait=True, operations=operations)
        await self._call("UpdateBatch", request)

    def _mark(self, span: Span) -> wire.PointsUpdateOperation.PointStructList:
        payload = {TENANT: to_value(self.tenant.name), VERSION: to_value(span.maximum), GONE: to_value(True)}
        nothing = wire.Vectors(vectors=wire.NamedVectors(vectors={}))
        return wire.PointsUpdateOperation.PointStructList(
            points=[wire.PointStruct(id=point_id(id_), vectors=nothing, payload=payload) for id_ in span.ids],
            update_filter=self._tenant_filter(wire.Filter(must=[version_between(span.minimum, span.maximum)])),
            update_mode=wire.UpdateMode.UpdateOnly,
            shard_key_selector=self._shard,
        )

    async def remove(self, where: wire.Filter) -> None:
        """Remove the points that match. `where` must not select by ids: see `remove_versions`."""
        request = wire.DeletePoints(
            collection_name=self._collection,
            wait=True,
            points=wire.PointsSelector(filter=self._tenant_filter(where)),
            shard_key_selector=self._shard,
        )
        await self._call("Delete", request)

    def _tenant_filter(self, where: wire.Filter) -> wire.Filter:
        own = wire.Filter()
        own.CopyFrom(where)
        tenant = wire.FieldCondition(key=TENANT, match=wire.Match(keyword=self.tenant.name))
        own.must.append(wire.Condition(field=tenant))
        return own

    def _not_marked(self, where: wire.Filter) -> wire.Filter:
        """Return the tenant's filter without points that are marked for removal."""
        own = self._tenant_filter(where)
        own.must_not.append(IS_GONE)
        return own

    async def _call(self, method: str, request: object) -> Any:
        with translated():
            return await getattr(self._qdrant.points, method)(request, timeout=self._qdrant.timeout_seconds)


def _with_vector(name: str) -> wire.WithVectorsSelector | None:
    return wire.WithVectorsSelector(include=wire.VectorsSelector(names=[name])) if name else None


def among(ids: Iterable[ChunkId]) -> wire.Condition:
    return wire.Condition(has_id=wire.HasIdCondition(has_id=[point_id(id_) for id_ in ids]))


def version_between(minimum: int, maximum: int) -> wire.Condition:
    return wire.Condition(field=wire.FieldCondition(key=VERSION, range=wire.Range(gte=minimum, lte=maximum)))


def _as_put(point: Any) -> wire.PointStruct:
    """Convert a point for an upsert: the engine returns vectors of another type than it accepts."""
    vectors = {
        name: wire.Vector(dense=wire.DenseVector(data=vector.dense.data))
        if vector.HasField("dense")
        else wire.Vector(sparse=wire.SparseVector(indices=vector.sparse.indices, values=vector.sparse.values))
        for name, vector in point.vectors.vectors.vectors.items()
    }
    named = wire.Vectors(vectors=wire.NamedVectors(vectors=vectors))
    return wire.PointStruct(id=point.id, vectors=named, payload=dict(point.payload))
