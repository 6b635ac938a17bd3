"""One collection of points."""

from collections.abc import Mapping, Sequence

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant, translated
from toolscript.adapters.qdrant.layout import DENSE, WORDS
from toolscript.adapters.qdrant.values import Payload, to_value, unless_newer, where_filter
from toolscript.errors import IndexRejected
from toolscript.model.index import Ask, Candidate, Candidates, Point, PointVersion, Terms
from toolscript.model.models import IndexCard, Vector


class QdrantIndex:
    def __init__(self, qdrant: Qdrant, name: str, card: IndexCard) -> None:
        self._qdrant = qdrant
        self._name = name
        self._card = card

    @property
    def card(self) -> IndexCard:
        return self._card

    async def search(self, ask: Ask) -> Candidates:
        asked = {
            DENSE: None if ask.vector is None else _dense(ask.vector),
            WORDS: _sparse(ask.terms) if ask.terms else None,
        }
        queries = [self._query(arm, given, ask) for arm, given in asked.items() if given is not None]
        answers = iter(await self._query_batch(queries))
        return Candidates(
            dense=_candidates(next(answers)) if asked[DENSE] is not None else None,
            words=_candidates(next(answers)) if asked[WORDS] is not None else _no_words(ask.terms),
        )

    async def put(self, points: Sequence[Point]) -> None:
        if not points:
            return
        request = wire.UpsertPoints(
            collection_name=self._name,
            wait=True,
            points=[self._point(point) for point in points],
            update_filter=unless_newer([PointVersion(point.id, point.version) for point in points]),
        )
        with translated():
            await self._qdrant.points.Upsert(request, timeout=self._qdrant.timeout_seconds)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        if not points:
            return
        selector = wire.PointsSelector(filter=unless_newer(points))
        request = wire.DeletePoints(collection_name=self._name, wait=True, points=selector)
        with translated():
            await self._qdrant.points.Delete(request, timeout=self._qdrant.timeout_seconds)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        request = wire.ScrollPoints(
            collection_name=self._name,
            offset=wire.PointId(num=after + 1),
            limit=limit,
            with_payload=_only(["version"]),
            with_vectors=wire.WithVectorsSelector(enable=False),
        )
        with translated():
            page = await self._qdrant.points.Scroll(request, timeout=self._qdrant.timeout_seconds)
        return [PointVersion(point.id.num, point.payload["version"].integer_value) for point in page.result]

    async def count(self) -> int:
        request = wire.CountPoints(collection_name=self._name, exact=True)
        with translated():
            answer = await self._qdrant.points.Count(request, timeout=self._qdrant.timeout_seconds)
        return int(answer.result.count)

    def _query(self, arm: str, given: wire.VectorInput, ask: Ask) -> wire.QueryPoints:
        return wire.QueryPoints(
            collection_name=self._name,
            query=wire.Query(nearest=given),
            using=arm,
            filter=where_filter(ask.where),
            limit=ask.limit,
            with_payload=wire.WithPayloadSelector(enable=True),
        )

    async def _query_batch(self, queries: Sequence[wire.QueryPoints]) -> Sequence[wire.BatchResult]:
        if not queries:
            return []
        request = wire.QueryBatchPoints(collection_name=self._name, query_points=queries)
        with translated():
            answer = await self._qdrant.points.QueryBatch(request, timeout=self._qdrant.timeout_seconds)
        if len(answer.result) != len(queries):
            raise IndexRejected(f"Qdrant answered {len(answer.result)} of {len(queries)} questions")
        return list(answer.result)

    def _point(self, point: Point) -> wire.PointStruct:
        fields: Mapping[str, object] = {**point.fields, "version": point.version}
        vectors = {
            DENSE: wire.Vector(dense=wire.DenseVector(data=point.vector.tolist())),
            WORDS: wire.Vector(sparse=_sparse_vector(point.terms)),
        }
        return wire.PointStruct(
            id=wire.PointId(num=point.id),
            vectors=wire.Vectors(vectors=wire.NamedVectors(vectors=vectors)),
            payload={name: to_value(value) for name, value in fields.items()},
        )


def _only(fields: Sequence[str]) -> wire.WithPayloadSelector:
    return wire.WithPayloadSelector(include=wire.PayloadIncludeSelector(fields=fields))


def _dense(vector: Vector) -> wire.VectorInput:
    return wire.VectorInput(dense=wire.DenseVector(data=vector.tolist()))


def _sparse(terms: Terms) -> wire.VectorInput:
    return wire.VectorInput(sparse=_sparse_vector(terms))


def _sparse_vector(terms: Terms) -> wire.SparseVector:
    return wire.SparseVector(indices=terms.keys(), values=terms.values())


def _candidates(answer: wire.BatchResult) -> list[Candidate]:
    return [Candidate(hit.id.num, hit.score, Payload(hit.payload)) for hit in answer.result]


def _no_words(terms: Terms | None) -> Sequence[Candidate] | None:
    # A query of punctuation has no words: the arm was asked and knows nothing.
    return None if terms is None else []
