"""Baseline pipelines: the same calls to the model and the engines as a search, and nothing else."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from bson import ObjectId

from benchmarks.search import body_of, message_length
from toolscript.core.auth.model import Tenant
from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.errors import ToolscriptError
from toolscript.core.qdrant import layout, wire
from toolscript.core.qdrant.connection import Qdrant, translated
from toolscript.core.qdrant.index import BY_GRAPH, BY_LARGE_GRAPH, LARGE
from toolscript.core.retrieval.fusion import CANDIDATES_PER_RETRIEVER
from toolscript.core.retrieval.model import Candidates, IndexCard, IndexQuery, Vector, Where
from toolscript.core.retrieval.namespaced import DEFAULT_ONLY
from toolscript.core.retrieval.ports import Embedder, IndexReader
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.request import Request, parse_query
from toolscript.core.retrieval.rerank import RERANK_DEPTH
from toolscript.core.retrieval.timings import Stages
from toolscript.documents.model.filters import Filters
from toolscript.documents.qdrant.filters import compiled
from toolscript.documents.qdrant.layout import DENSE, SEARCHED, SEARCHED_EXACTLY, WORDS
from toolscript.documents.qdrant.tenant_points import TENANT
from toolscript.knowledge.model.library import chunk_of_point
from toolscript.knowledge.mongo.connection import MongoLibrary
from toolscript.knowledge.retrieval import CANDIDATES as CHUNK_CANDIDATES
from toolscript.server.processes import raise_gc_thresholds, run
from toolscript.server.serve import CACHED_QUERIES
from toolscript.server.settings import load_settings
from toolscript.server.stores import open_embedder, open_stores
from toolscript.tools.hydration import SchemaCache
from toolscript.tools.indexing.versions import open_for_reading
from toolscript.tools.item_stage import where_of
from toolscript.tools.model.query import USUAL, Strategy, ToolQuery
from toolscript.tools.payload_cache import CACHE_SIZE, PayloadCache, Revisions, revisions_of
from toolscript.tools.ports import ItemLookup
from toolscript.tools.skill_stage import SkillMatching, SkillsOfItems

TOOLS_RETURNED = ToolQuery.limit
SKILL_LIMIT = ToolQuery.skill_limit

Results = Sequence[Candidates]

STAGE_NAMES = {
    "embedding": "query_embedding",
    "skills": "skill_search",
    "index": "tool_search",
    "details": "schema_load",
}

DOCUMENT_CANDIDATES = 100
DOCUMENTS_RETURNED = 10
RetrieverQuery = tuple[str, wire.VectorInput, wire.SearchParams | None]

_RRF = wire.Query(fusion=wire.Fusion.RRF)
_EVERYTHING = wire.WithPayloadSelector(enable=True)
CHUNKS_RETURNED = 10


@dataclass(frozen=True)
class BaselineAnswer:
    ids: Sequence[int]
    stages: Mapping[str, float]


@dataclass
class BaselinePipeline:
    """`prepare` parses the requests in advance, so that parsing is not measured.

    It caches payloads and matches skills as a search does: it must not send requests that a search avoids, and the
    matching skills decide what the engine does next.
    """

    embedder: Embedder
    items: IndexReader
    skills: IndexReader
    catalog: ItemLookup
    strategy: Strategy
    _requests: dict[str, Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._payloads = PayloadCache(self.items)
        self._schemas = SchemaCache(self.catalog, CACHE_SIZE)
        self._matching = SkillMatching(self.skills, self.items)

    def prepare(self, texts: Sequence[str]) -> None:
        self._requests.update((text, parse_query(ToolQuery(text).text)) for text in texts)

    async def run(self, text: str) -> BaselineAnswer:
        request = self._requests[text]
        stages = Stages()
        matches = (
            None
            if self.strategy is Strategy.DIRECT
            else asyncio.ensure_future(self._matching.by_words(request, ()))
        )
        vectors = request.vectors(np.array(await asyncio.gather(*map(self.embedder.embed_query, request.texts))))
        stages.end("embedding")
        if matches is None:
            results = await self._search(request, vectors)
        else:
            results = await self._by_skills(request, vectors, matches, stages)
        await self.catalog.removed(list(_revisions(results)))
        top = _candidates(results)
        await self._payloads.read(top)
        stages.end("index")
        ids = list(top)[:TOOLS_RETURNED]
        returned = {id_: top[id_] for id_ in ids}
        await asyncio.gather(self._payloads.read(returned), self._schemas.read(returned))
        stages.end("details")
        return BaselineAnswer(ids, stages.spent)

    async def _by_skills(
        self, request: Request, vectors: Sequence[Vector], matches: "asyncio.Future[SkillsOfItems]", stages: Stages
    ) -> Results:
        is_hybrid = self.strategy is Strategy.HYBRID
        direct = asyncio.ensure_future(self._search(request, vectors)) if is_hybrid else None
        matched = await self._matching.match(vectors[0], await matches, SKILL_LIMIT, USUAL.skill)
        skills = [skill.id for skill in matched]
        stages.end("skills")
        routed = await self._search(request, vectors, where_of(None, skills)) if skills or not is_hybrid else ()
        return [*(await direct if direct else ()), *routed]

    async def _search(self, request: Request, vectors: Sequence[Vector], where: Where = ()) -> Results:
        parts = zip(vectors, request.parts, strict=True)
        queries = [IndexQuery(vector, part.terms, where, CANDIDATES_PER_RETRIEVER) for vector, part in parts]
        return await self.items.search_all(queries)


def _revisions(results: Results) -> dict[int, int]:
    return revisions_of(hit for each in results for hits in (each.dense, each.words) for hit in hits or ())


def _candidates(results: Results) -> Revisions:
    """Return candidates to load. Which ones does not matter: the cost to the engine is the same."""
    best: dict[int, int] = {}
    for candidates in results:
        for hits in (candidates.dense, candidates.words):
            best.update(revisions_of(hits or ()))
            if len(best) >= RERANK_DEPTH:
                return dict(list(best.items())[:RERANK_DEPTH])
    return best


class _Connection(asyncio.Protocol):
    """HTTP connection with one request at a time, as the generator sends them."""

    def __init__(self, pipeline: BaselinePipeline) -> None:
        self._pipeline = pipeline
        self._received = b""
        self._running: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Transports of uvloop do not inherit from asyncio's classes.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            body, self._received = body_of(self._received[:length]), self._received[length:]
            self._running = asyncio.ensure_future(self._answer(json.loads(body)["query"]))

    async def _answer(self, text: str) -> None:
        try:
            message = _message("200 OK", _body(await self._pipeline.run(text)))
        except ToolscriptError as error:
            message = _message("500 Internal Server Error", json.dumps({"error": error.message}).encode())
        self._transport.write(message)


def _message(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def _body(answer: BaselineAnswer) -> bytes:
    times = "".join(f',"{STAGE_NAMES[name]}_time_ms":{spent:.3f}' for name, spent in answer.stages.items())
    total = sum(answer.stages.values())
    return f'{{"metadata":{{"final_count":{len(answer.ids)}{times},"total_time_ms":{total:.3f}}}}}'.encode()


async def _serve(port: int, strategy: Strategy, cached_queries: int, texts: list[str]) -> None:
    """Serve until SIGTERM, or until the parent process is gone."""
    settings, loop, ended = load_settings(), asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_reader(sys.stdin.fileno(), ended.set)
    cores = os.cpu_count() or 1
    async with open_stores(settings) as stores, open_embedder(settings, parallel=cores) as embedder:
        opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
        cached = CachedEmbedder(embedder, cached_queries)
        items, skills = opened.items.within(DEFAULT_ONLY), opened.skills.within(DEFAULT_ONLY)
        pipeline = BaselinePipeline(cached, items, skills, stores.catalog, strategy)
        pipeline.prepare(texts)
        raise_gc_thresholds()
        server = await loop.create_server(lambda: _Connection(pipeline), "127.0.0.1", port, backlog=256)
        await ended.wait()
        server.close()


@dataclass(frozen=True)
class BaselineQuestion:
    text: str
    terms: Mapping[int, float]
    search_type: SearchType
    where: wire.Filter
    dense: wire.SearchParams

    @classmethod
    def of(
        cls, tenant: Tenant, text: str, terms: Mapping[int, float], search_type: SearchType, filters: Filters
    ) -> "BaselineQuestion":
        where = compiled(filters)
        own = wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant.name))
        where.must.append(wire.Condition(field=own))
        dense = SEARCHED_EXACTLY if filters else SEARCHED
        return cls(text, terms, search_type, where, dense)


class BaselineDocuments:
    def __init__(self, connected: Qdrant, collection: str, embedder: Embedder) -> None:
        self._qdrant = connected
        self._collection = collection
        self._embedder = embedder

    async def run(self, question: BaselineQuestion) -> int:
        """Return the number of chunks found."""
        vector = None
        if question.search_type is not SearchType.KEYWORD:
            vector = await self._embedder.embed_query(question.text)
        with translated():
            answer = await self._qdrant.points.Query(
                self._request(question, vector), timeout=self._qdrant.timeout_seconds
            )
        return len(answer.result)

    def _request(self, question: BaselineQuestion, vector: Vector | None) -> wire.QueryPoints:
        retrievers: list[RetrieverQuery] = []
        if vector is not None:
            retrievers.append(
                (DENSE, wire.VectorInput(dense=wire.DenseVector(data=vector.tolist())), question.dense)
            )
        if question.search_type is not SearchType.SEMANTIC:
            words = wire.SparseVector(indices=question.terms.keys(), values=question.terms.values())
            retrievers.append((WORDS, wire.VectorInput(sparse=words), None))
        return (
            self._fused_request(question, retrievers)
            if len(retrievers) > 1
            else self._single_request(question, *retrievers[0])
        )

    def _fused_request(self, question: BaselineQuestion, retrievers: list[RetrieverQuery]) -> wire.QueryPoints:
        prefetch = [
            wire.PrefetchQuery(
                query=wire.Query(nearest=nearest),
                using=using,
                filter=question.where,
                params=params,
                limit=DOCUMENT_CANDIDATES,
            )
            for using, nearest, params in retrievers
        ]
        return wire.QueryPoints(
            collection_name=self._collection,
            prefetch=prefetch,
            query=_RRF,
            limit=DOCUMENTS_RETURNED,
            with_payload=_EVERYTHING,
        )

    def _single_request(
        self, question: BaselineQuestion, using: str, nearest: wire.VectorInput, params: wire.SearchParams | None
    ) -> wire.QueryPoints:
        return wire.QueryPoints(
            collection_name=self._collection,
            query=wire.Query(nearest=nearest),
            using=using,
            filter=question.where,
            params=params,
            limit=DOCUMENTS_RETURNED,
            with_payload=_EVERYTHING,
        )


class BaselineKnowledge:
    def __init__(
        self,
        engine: Qdrant,
        names: tuple[str, str],
        library: MongoLibrary,
        embedder: Embedder,
        points: int,
    ) -> None:
        self._engine = engine
        self._names = names
        self._library = library
        self._embedder = embedder
        self._params = BY_GRAPH if points < LARGE else BY_LARGE_GRAPH

    async def run(self, text: str, terms: Mapping[int, float]) -> int:
        """Return the number of chunks found."""
        vector = await self._embedder.embed_query(text)
        results, _ = await asyncio.gather(*(self._query(name, vector, terms) for name in self._names))
        ids = [ObjectId(chunk_of_point(hit.id.num)) for hit in results[0].result[:CHUNKS_RETURNED]]
        chunks = await self._library.chunks.find({"_id": {"$in": ids}}).to_list()
        sources = [ObjectId(source_id) for source_id in {chunk["source_id"] for chunk in chunks}]
        await self._library.sources.find({"_id": {"$in": sources}}).to_list()
        return len(chunks)

    async def _query(self, name: str, vector: Vector, terms: Mapping[int, float]) -> Any:
        dense = wire.VectorInput(dense=wire.DenseVector(data=vector.tolist()))
        sparse = wire.SparseVector(indices=terms.keys(), values=terms.values())
        queries = [
            wire.QueryPoints(
                collection_name=name,
                query=wire.Query(nearest=nearest),
                using=using,
                params=params,
                limit=CHUNK_CANDIDATES,
                with_payload=wire.WithPayloadSelector(enable=False),
            )
            for using, nearest, params in (
                (layout.DENSE, dense, self._params),
                (layout.WORDS, wire.VectorInput(sparse=sparse), None),
            )
        ]
        request = wire.QueryBatchPoints(collection_name=name, query_points=queries)
        with translated():
            answer = await self._engine.points.QueryBatch(request, timeout=self._engine.timeout_seconds)
        return answer.result


if __name__ == "__main__":
    try:
        port, strategy = int(sys.argv[1]), Strategy(sys.argv[2])
        cached_queries = CACHED_QUERIES if sys.argv[3] == "cached" else 1
        run(_serve(port, strategy, cached_queries, json.loads(sys.stdin.buffer.readline())))
    except ToolscriptError as error:
        sys.stderr.write(f"{error.message}: {error.hint}\n")
        sys.exit(2)
