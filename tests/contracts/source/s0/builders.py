"""Expected answers by the source document: cosines computed from the vectors in Qdrant."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from qdrant_client import QdrantClient

from tests.conftest import Installation
from tests.unit.tools.search_http.builders import Json
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.server.stores import open_embedder

LITERAL = {"search_type": "semantic"}
SAME = 2e-5
PAGE = 1_000

Scored = list[tuple[str, float]]


@dataclass(frozen=True)
class Stored:
    """A point in the engine."""

    fields: Mapping[str, Any]
    vector: Vector


@dataclass(frozen=True)
class Truth:
    """All points of both collections. Everything below is arithmetic."""

    embedder: Embedder
    items: list[Stored]
    skills: list[Stored]

    async def skills_for(self, query: str, limit: int = 3, threshold: float = 0.4) -> Scored:
        active = [skill for skill in self.skills if skill.fields["is_active"]]
        return await self._best(active, "id", query, limit, threshold)

    async def items_for(
        self,
        query: str,
        skills: Collection[str] | None,
        limit: int = 5,
        threshold: float = 0.3,
        kind: str | None = None,
    ) -> Scored:
        """Return scores by `db_id`; of all items if `skills` is None."""
        expected = [
            item
            for item in self.items
            if (skills is None or set(skills) & set(item.fields["skill_ids"]))
            and kind in (None, item.fields["type"])
        ]
        return await self._best(expected, "db_id", query, limit, threshold)

    async def _best(self, among: list[Stored], key: str, query: str, limit: int, threshold: float) -> Scored:
        vector = await self.embedder.embed_query(query)
        scored = [(str(item.fields[key]), _cosine(item.vector, vector)) for item in among]
        near = [pair for pair in scored if pair[1] >= threshold]
        return sorted(near, key=lambda pair: -pair[1])[:limit]


def _cosine(one: Vector, other: Vector) -> float:
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@asynccontextmanager
async def opened_truth(installation: Installation) -> AsyncIterator[Truth]:
    settings = installation.settings
    client = QdrantClient(url=settings.qdrant_url, timeout=60)
    items = list(_stored(client, settings.qdrant_alias))
    skills = list(_stored(client, settings.qdrant_skills_alias))
    client.close()
    async with open_embedder(settings) as embedder:
        yield Truth(embedder, items, skills)


def _stored(client: QdrantClient, alias: str) -> Iterator[Stored]:
    result, _ = client.scroll(alias, limit=PAGE, with_payload=True, with_vectors=["dense"])
    for point in result:
        assert isinstance(point.vector, dict)
        yield Stored(point.payload or {}, np.array(point.vector["dense"], dtype=np.float32))


def scored(found: list[Json]) -> Scored:
    return [(str(item["id"]), float(item["score"])) for item in found]


def are_the_same(found: list[Json], expected: Scored) -> None:
    """Return whether scores and ids are equal position by position; only ties may swap."""
    ours = scored(found)
    assert len(ours) == len(expected), (ours, expected)
    assert all(abs(item[1] - other[1]) < SAME for item, other in zip(ours, expected, strict=True)), (
        ours,
        expected,
    )
    by_id = dict(expected)
    lost = [(id_, score) for id_, score in ours if abs(by_id.get(id_, -1.0) - score) >= SAME]
    last = min(by_id.values(), default=0.0)
    assert [pair for pair in lost if pair[1] > last + SAME] == []
