"""What a developer would send to the engine for the same answer, and nothing else.

The text is embedded in the same way. Then one request: both arms with the best 100 each, joined by the engine,
with everything the ten best passages carry. That is the documented way to a hybrid search of one tenant. Arms have
the same parameters and filters as ours, and words the same weights, which are looked up before the clock starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.adapters import qdrant
from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import translated
from toolscript.adapters.qdrant.documents.filters import compiled
from toolscript.adapters.qdrant.documents.layout import DENSE, SEARCHED, SEARCHED_EXACTLY, WORDS
from toolscript.adapters.qdrant.documents.payload import TENANT
from toolscript.model.filters import Filters
from toolscript.model.models import Vector
from toolscript.model.queries import SearchType
from toolscript.model.tenancy import Tenant
from toolscript.ports import Embedder

CANDIDATES = 100
RETURNED = 10
Arm = tuple[str, wire.VectorInput, wire.SearchParams | None]

_JOINED = wire.Query(fusion=wire.Fusion.RRF)
_EVERYTHING = wire.WithPayloadSelector(enable=True)


@dataclass(frozen=True)
class BareQuestion:
    text: str
    terms: Mapping[int, float]
    search_type: SearchType
    where: wire.Filter
    dense: wire.SearchParams

    @classmethod
    def of(
        cls, tenant: Tenant, text: str, terms: Mapping[int, float], search_type: SearchType, filters: Filters
    ) -> "BareQuestion":
        where = compiled(filters)
        own = wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant.name))
        where.must.append(wire.Condition(field=own))
        dense = SEARCHED_EXACTLY if filters else SEARCHED
        return cls(text, terms, search_type, where, dense)


class BareDocuments:
    def __init__(self, connected: qdrant.Qdrant, collection: str, embedder: Embedder) -> None:
        self._qdrant = connected
        self._collection = collection
        self._embedder = embedder

    async def run(self, question: BareQuestion) -> int:
        """How many passages were found."""
        vector = None
        if question.search_type is not SearchType.KEYWORD:
            vector = await self._embedder.embed_query(question.text)
        with translated():
            answer = await self._qdrant.points.Query(
                self._request(question, vector), timeout=self._qdrant.timeout_seconds
            )
        return len(answer.result)

    def _request(self, question: BareQuestion, vector: Vector | None) -> wire.QueryPoints:
        arms: list[Arm] = []
        if vector is not None:
            arms.append((DENSE, wire.VectorInput(dense=wire.DenseVector(data=vector.tolist())), question.dense))
        if question.search_type is not SearchType.SEMANTIC:
            words = wire.SparseVector(indices=question.terms.keys(), values=question.terms.values())
            arms.append((WORDS, wire.VectorInput(sparse=words), None))
        return self._joined(question, arms) if len(arms) > 1 else self._of_one(question, *arms[0])

    def _joined(self, question: BareQuestion, arms: list[Arm]) -> wire.QueryPoints:
        prefetch = [
            wire.PrefetchQuery(
                query=wire.Query(nearest=nearest),
                using=using,
                filter=question.where,
                params=params,
                limit=CANDIDATES,
            )
            for using, nearest, params in arms
        ]
        return wire.QueryPoints(
            collection_name=self._collection,
            prefetch=prefetch,
            query=_JOINED,
            limit=RETURNED,
            with_payload=_EVERYTHING,
        )

    def _of_one(
        self, question: BareQuestion, using: str, nearest: wire.VectorInput, params: wire.SearchParams | None
    ) -> wire.QueryPoints:
        return wire.QueryPoints(
            collection_name=self._collection,
            query=wire.Query(nearest=nearest),
            using=using,
            filter=question.where,
            params=params,
            limit=RETURNED,
            with_payload=_EVERYTHING,
        )
