"""`python -m benchmarks knowledge`: a large library beside the bare engines, and at a steady rate."""

import random
import re
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bson import ObjectId

from benchmarks.at_scale import PairedTimes, Row
from benchmarks.baseline import BaselineKnowledge
from benchmarks.documents import originals_for
from benchmarks.measurements import recall_at, stats_of
from benchmarks.open_loop import Answer, OpenLoop, Schedule
from benchmarks.search import HttpLine, post_request, run_bench, search_server
from benchmarks.synthetic import Originals, SyntheticSource, run_bounded, sources_of
from toolscript.core.chunking import terms_of_chunk_query
from toolscript.core.errors import NotFound, SetupError
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.retrieval.model import IndexQuery, ModelCard
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.knowledge.model.query import KnowledgeQuery
from toolscript.knowledge.mongo.connection import Document, MongoLibrary, open_mongo
from toolscript.knowledge.mongo.documents import chunk_document, extraction_document, source_document
from toolscript.knowledge.mongo.library import MongoLibraryWriter
from toolscript.server.knowledge import open_knowledge
from toolscript.server.library_stores import knowledge_card, knowledge_indexes, writer_url
from toolscript.server.settings import load_settings
from toolscript.server.stores import connect_qdrant, open_embedder

NAME = "bench_knowledge"
PATIENCE_SECONDS = 600.0

CONNECTIONS = 64
WARM_UP = Schedule(rate=20.0, seconds=3.0)
DIFFERENT_QUESTIONS = 20_000
# Length of a query: consecutive words of the texts that chunks are derived from, so that several chunks match.
MIN_WORDS, MAX_WORDS = 5, 12
DEPTH = 10
MAX_EXACT = 50
TIMEOUT_SECONDS = 600.0
TOOK = re.compile(rb'"took_ms":([0-9.]+),"degraded":\[(.*?)\]')


@dataclass(frozen=True)
class BenchLibrary:
    """A synthetic library. `settings` are those of the server for it."""

    name: str
    settings: Settings
    engine: Qdrant
    model: ModelCard
    mongo: MongoLibrary

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TOOLSCRIPT_MONGO_DATABASE": self.settings.mongo_database,
            "TOOLSCRIPT_QDRANT_CHUNKS_ALIAS": self.settings.qdrant_chunks_alias,
            "TOOLSCRIPT_QDRANT_EXTRACTIONS_ALIAS": self.settings.qdrant_extractions_alias,
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
        }

    @property
    def collections(self) -> tuple[str, str]:
        return self.settings.qdrant_chunks_alias, self.settings.qdrant_extractions_alias

    async def fill(self, originals: Originals, chunks: int, seed: int, on_progress: OnProgress) -> None:
        """Fill the library, and build the graphs afterwards."""
        card = knowledge_card(self.model)
        both = knowledge_indexes(self.engine, self.settings)
        await MongoLibraryWriter(self.mongo).prepare()
        for indexes in both:
            await indexes.create(card)
            await indexes.make_live(card.fingerprint)
        async with both[0].loading(card), both[1].loading(card):
            opened = await both[0].open(card), await both[1].open(card)
            await self._put_all(originals, chunks, seed, opened, on_progress)
            on_progress(Progress("build graphs", 0))

    async def remove(self) -> None:
        for indexes in knowledge_indexes(self.engine, self.settings):
            if (live := await indexes.live()) is not None:
                await indexes.drop(live)
        for collection in (self.mongo.sources, self.mongo.chunks, self.mongo.extractions):
            await collection.drop()

    async def _put_all(
        self, originals: Originals, chunks: int, seed: int, indexes: tuple[Index, Index], on_progress: OnProgress
    ) -> None:
        def puts() -> Iterator[Coroutine[Any, Any, None]]:
            done = 0
            for source in sources_of(originals, chunks, seed):
                yield self._put(source, indexes)
                done += len(source.chunks)
                on_progress(Progress(f"fill {chunks:,}", done, chunks))

        await run_bounded(puts())

    async def _put(self, made: SyntheticSource, indexes: tuple[Index, Index]) -> None:
        """Insert a source. Nothing is replaced, because the library is new."""
        extractions = [extraction for several in made.extractions.values() for extraction in several]
        await self.mongo.sources.insert_one(_with_id(made.source.id, source_document(made.source)))
        await self.mongo.chunks.insert_many([_with_id(chunk.id, chunk_document(chunk)) for chunk in made.chunks])
        await self.mongo.extractions.insert_many(
            [_with_id(each.id, extraction_document(each)) for each in extractions]
        )
        await indexes[0].put(made.chunk_points)
        await indexes[1].put(made.extraction_points)


@asynccontextmanager
async def bench_library(
    settings: Settings, engine: Qdrant, model: ModelCard, keep: bool, use: str
) -> AsyncIterator[BenchLibrary]:
    """Create a library with a unique name and drop it at the end; or use a kept one, which stays."""
    name = use or f"{NAME}_{uuid.uuid4().hex[:8]}"
    named = {
        "mongo_database": name,
        "qdrant_chunks_alias": f"{name}_chunks",
        "qdrant_extractions_alias": f"{name}_extractions",
    }
    own = settings.model_copy(update=named)
    async with open_mongo(writer_url(own), name, answer_seconds=PATIENCE_SECONDS) as connected:
        library = BenchLibrary(name, own, engine, model, connected)
        if use and await knowledge_indexes(engine, own)[0].live() is None:
            raise NotFound(f"there is no kept library {use}", hint="a run with --keep prints its name")
        try:
            yield library
        finally:
            if not keep and not use:
                await library.remove()


def _with_id(id_: str, document: Document) -> Document:
    return {"_id": ObjectId(id_), **document}


def bench_knowledge(
    *,
    chunks: int,
    count: int,
    rate: float,
    seconds: float,
    texts: Path | None,
    seed: int,
    keep: bool,
    use: str,
    on_progress: OnProgress,
) -> dict[str, list[Row]]:
    """Return tables by name. Chunks are derived from `texts`, or from synthetic texts."""

    async def run() -> dict[str, list[Row]]:
        settings = load_settings()
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(connect_qdrant(settings, TIMEOUT_SECONDS))
            async with open_embedder(settings, parallel=1) as embedder:
                originals = await originals_for(embedder, texts, chunks, seed, on_progress)
                opening = bench_library(settings, engine, embedder.model, keep, use)
                library = await stack.enter_async_context(opening)
                if not use:
                    await library.fill(originals, chunks, seed, on_progress)
                bench = _Bench(library, engine, list(_questions(originals, seed)), on_progress)
                tables = await bench.one_at_a_time(embedder, count)
            tables["at a steady rate"] = await bench.steady(rate, seconds)
        kept: list[Row] = [{"kept": library.name, "use it with": f"--use {library.name}"}] if keep or use else []
        return {**tables, "kept": kept}

    return run_bench(run())


@dataclass(frozen=True)
class _Bench:
    library: BenchLibrary
    engine: Qdrant
    questions: Sequence[str]
    on_progress: OnProgress

    async def one_at_a_time(self, embedder: Embedder, count: int) -> dict[str, list[Row]]:
        settings = self.library.settings
        card = knowledge_card(embedder.model)
        chunks, extractions = [await indexes.open(card) for indexes in knowledge_indexes(self.engine, settings)]
        shape: list[Row] = [
            {"collection": name, "points": await index.count()}
            for name, index in (("chunks", chunks), ("extractions", extractions))
        ]
        times = PairedTimes(("search",), ("ours", "bare"))
        async with (
            open_mongo(settings.mongo_url.get_secret_value(), settings.mongo_database) as library,
            open_knowledge(settings, self.engine, embedder) as knowledge,
        ):
            if knowledge is None:
                raise SetupError("there is no library here", hint="set TOOLSCRIPT_MONGO_URL to its address")
            bare = BaselineKnowledge(
                self.engine, self.library.collections, library, embedder, await chunks.count()
            )
            for text in self.questions[:count]:
                terms = await chunks.idfs(terms_of_chunk_query(text))
                ours, plain = partial(knowledge.search, KnowledgeQuery(text)), partial(bare.run, text, terms)
                await times.measure(("hybrid",), ours, plain)
            shares = [await _recall(embedder, chunks, text) for text in self.questions[:MAX_EXACT]]
        return {
            "library": shape,
            "against the bare engines": times.rows(),
            "recall of dense retrieval": [
                {f"recall@{DEPTH}": round(sum(shares) / len(shares), 4), "of": len(shares)}
            ],
        }

    async def steady(self, rate: float, seconds: float) -> list[Row]:
        requests = [post_request("/api/v1/knowledge/search", {"query": text}) for text in self.questions]
        async with search_server(cached=False, extra=self.library.environment) as child:
            lines = [HttpLine(child.port, read_answer) for _ in range(CONNECTIONS)]
            try:
                await OpenLoop(lines, requests, on_progress=self.on_progress).run(WARM_UP, "warm up")
                loop = OpenLoop(lines, requests[::-1], on_progress=self.on_progress)
                before = child.cpu_seconds()
                stats = stats_of(await loop.run(Schedule(rate, seconds), f"{rate:g} a second"))
                spent = (child.cpu_seconds() - before) * 1000 / stats.requests
            finally:
                for line in lines:
                    line.close()
        return [
            {
                "offered": stats.offered,
                "answered": round(stats.achieved, 1),
                "requests": stats.requests,
                "p50": round(stats.p50_ms, 1),
                "p95": round(stats.p95_ms, 1),
                "p99": round(stats.p99_ms, 1),
                "max": round(stats.max_ms, 1),
                "faults": dict(stats.errors),
                "CPU ms a request": round(spent, 1),
            }
        ]


def read_answer(message: bytes) -> Answer:
    status = message[9:12].decode("ascii", "replace")
    if status != "200":
        return Answer(f"status {status}")
    match = TOOK.search(message, max(0, message.rfind(b'"metadata":')))
    if match is None:
        return Answer("not understood")
    if match[2]:
        return Answer("degraded")
    return Answer("empty") if b'"result_count":0,' in message else Answer("", "", {"total": float(match[1])})


async def _recall(embedder: Embedder, chunks: Index, text: str) -> float:
    vector = await embedder.embed_query(text)
    hits = (await chunks.search(IndexQuery(vector, limit=DEPTH))).dense or ()
    exact = (await chunks.search(IndexQuery(vector, limit=DEPTH, exact=True))).dense or ()
    return recall_at(hits, exact, DEPTH)


def _questions(originals: Originals, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(DIFFERENT_QUESTIONS):
        words = originals.words[rng.randrange(len(originals.words))]
        length = rng.randint(MIN_WORDS, MAX_WORDS)
        start = rng.randrange(max(1, len(words) - length + 1))
        yield " ".join(originals.vocabulary.words[position] for position in words[start : start + length].tolist())
