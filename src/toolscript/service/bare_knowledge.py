"""What a developer would send to the engines for the same answer, and nothing else.

The text is embedded in the same way. Then one request to each collection, with both arms of as many candidates as
ours and the same parameters, words with the same weights, which are looked up before the clock starts; then the
ten nearest chunks and their sources are read from MongoDB.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from bson import ObjectId

from toolscript.adapters import mongo, qdrant
from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import translated
from toolscript.adapters.qdrant.index import BY_GRAPH, BY_LARGE_GRAPH, LARGE
from toolscript.adapters.qdrant.layout import DENSE, WORDS
from toolscript.model.library import chunk_of_point
from toolscript.model.models import Vector
from toolscript.ports import Embedder
from toolscript.search.knowledge.retrieval import CANDIDATES

RETURNED = 10


class BareKnowledge:
    def __init__(
        self,
        engine: qdrant.Qdrant,
        names: tuple[str, str],
        library: mongo.MongoLibrary,
        embedder: Embedder,
        points: int,
    ) -> None:
        self._engine = engine
        self._names = names
        self._library = library
        self._embedder = embedder
        self._params = BY_GRAPH if points < LARGE else BY_LARGE_GRAPH

    async def run(self, text: str, terms: Mapping[int, float]) -> int:
        """How many chunks were found."""
        vector = await self._embedder.embed_query(text)
        found, _ = await asyncio.gather(*(self._asked(name, vector, terms) for name in self._names))
        ids = [ObjectId(chunk_of_point(hit.id.num)) for hit in found[0].result[:RETURNED]]
        chunks = await self._library.chunks.find({"_id": {"$in": ids}}).to_list()
        sources = [ObjectId(one) for one in {chunk["source_id"] for chunk in chunks}]
        await self._library.sources.find({"_id": {"$in": sources}}).to_list()
        return len(chunks)

    async def _asked(self, name: str, vector: Vector, terms: Mapping[int, float]) -> Any:
        dense = wire.VectorInput(dense=wire.DenseVector(data=vector.tolist()))
        sparse = wire.SparseVector(indices=terms.keys(), values=terms.values())
        arms = [
            wire.QueryPoints(
                collection_name=name,
                query=wire.Query(nearest=nearest),
                using=using,
                params=params,
                limit=CANDIDATES,
                with_payload=wire.WithPayloadSelector(enable=False),
            )
            for using, nearest, params in (
                (DENSE, dense, self._params),
                (WORDS, wire.VectorInput(sparse=sparse), None),
            )
        ]
        request = wire.QueryBatchPoints(collection_name=name, query_points=arms)
        with translated():
            answer = await self._engine.points.QueryBatch(request, timeout=self._engine.timeout_seconds)
        return answer.result
