"""Literal mode over the bare engine in a few lines, from the source document alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from qdrant_client import QdrantClient
from qdrant_client.models import (
    FieldCondition,
    Filter,
    MatchAny,
    MatchValue,
    QuantizationSearchParams,
    ScoredPoint,
    SearchParams,
)

ACTIVE = FieldCondition(key="is_active", match=MatchValue(value=True))
# Exact search in full precision.
EXACTLY = SearchParams(exact=True, quantization=QuantizationSearchParams(ignore=True))


@dataclass(frozen=True)
class Bare:
    """`skills` is None if none matched and all items were searched; `hits` are ids with cosines."""

    skills: list[str] | None
    hits: list[tuple[int, float]]


@dataclass(frozen=True)
class BareSearch:
    client: QdrantClient
    items: str
    skills: str
    skill_limit: int = 3
    skill_threshold: float = 0.4
    threshold: float = 0.3

    def ask(self, vector: Sequence[float], limit: int) -> Bare:
        near = self._points(self.skills, vector, [ACTIVE], self.skill_limit, self.skill_threshold)
        ids = [str((point.payload or {})["id"]) for point in near]
        must = [ACTIVE, *([FieldCondition(key="skill_ids", match=MatchAny(any=ids))] if ids else [])]
        result = self._points(self.items, vector, must, limit, self.threshold)
        return Bare(ids or None, [(int(point.id), point.score) for point in result])

    def _points(
        self, collection: str, vector: Sequence[float], must: list[FieldCondition], limit: int, threshold: float
    ) -> list[ScoredPoint]:
        result = self.client.query_points(
            collection,
            query=list(vector),
            using="dense",
            query_filter=Filter(must=list(must)),
            search_params=EXACTLY,
            score_threshold=threshold,
            limit=limit,
            with_payload=True,
        )
        return result.points
