"""What an answer has to be by the source document: cosines taken by hand from the vectors that Qdrant holds."""

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
    """One point as the engine has it."""

    fields: Mapping[str, Any]
    vector: Vector


@dataclass(frozen=True)
class Truth:
    """All points of both collections. Everything below is arithmetic."""

    embedder: Embedder
    items: list[Stored]
    skills: list[Stored]

    async def skills_for(self, query: str, limit: int = 3, threshold: float = 0.4) -> Scored:
        active = [one for one in self.skills if one.fields["is_active"]]
        return await self._best(active, "id", query, limit, threshold)

    async def items_for(
        self,
        query: str,
        skills: Collection[str] | None,
        limit: int = 5,
        threshold: float = 0.3,
        kind: str | None = None,
    ) -> Scored:
        """By `db_id`; of all items where `skills` is None."""
        wanted = [
            one
            for one in self.items
            if (skills is None or set(skills) & set(one.fields["skill_ids"]))
            and kind in (None, one.fields["type"])
        ]
        return await self._best(wanted, "db_id", query, limit, threshold)

    async def _best(self, among: list[Stored], key: str, query: str, limit: int, threshold: float) -> Scored:
        vector = await self.embedder.embed_query(query)
        scored = [(str(one.fields[key]), _cosine(one.vector, vector)) for one in among]
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
    found, _ = client.scroll(alias, limit=PAGE, with_payload=True, with_vectors=["dense"])
    for point in found:
        assert isinstance(point.vector, dict)
        yield Stored(point.payload or {}, np.array(point.vector["dense"], dtype=np.float32))


def scored(found: list[Json]) -> Scored:
    return [(str(one["id"]), float(one["score"])) for one in found]


def are_the_same(found: list[Json], expected: Scored) -> None:
    """Place by place the same score, and the same ids; only equal scores may change places."""
    ours = scored(found)
    assert len(ours) == len(expected), (ours, expected)
    assert all(abs(one[1] - other[1]) < SAME for one, other in zip(ours, expected, strict=True)), (ours, expected)
    by_id = dict(expected)
    lost = [(id_, score) for id_, score in ours if abs(by_id.get(id_, -1.0) - score) >= SAME]
    last = min(by_id.values(), default=0.0)
    assert [pair for pair in lost if pair[1] > last + SAME] == []
