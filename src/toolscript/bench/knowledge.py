"""bench knowledge: a library made for it, searched one at a time beside the bare engines, and at a steady rate."""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolscript.adapters import mongo, qdrant
from toolscript.errors import SetupError
from toolscript.evaluation.documents_at_scale import InTurn, Row
from toolscript.evaluation.load_figures import figures_of
from toolscript.evaluation.many_documents import Originals
from toolscript.evaluation.nearest import recall_at
from toolscript.evaluation.open_loop import Answer, OpenLoop, Schedule
from toolscript.model.index import Ask
from toolscript.model.knowledge import KnowledgeQuery
from toolscript.model.passages import passage_query_terms
from toolscript.model.progress import OnProgress
from toolscript.ports import Embedder, Index
from toolscript.service.bare_knowledge import BareKnowledge
from toolscript.service.bench_documents import originals_for
from toolscript.service.bench_knowledge_library import BenchLibrary, bench_library
from toolscript.service.bench_processes import run_bench, search_server
from toolscript.service.knowledge import open_knowledge
from toolscript.service.knowledge_indexes import knowledge_card, knowledge_indexes
from toolscript.service.parts import connect_qdrant, open_embedder
from toolscript.service.search_over_http import HttpLine, post_request
from toolscript.settings.service import load_settings

CONNECTIONS = 64
WARM_UP = Schedule(rate=20.0, seconds=3.0)
DIFFERENT_QUESTIONS = 20_000
# As many words as questions have, in their order, of what chunks were made of: something fits, and is not alone.
FEWEST_ASKED, MOST_ASKED = 5, 12
DEPTH = 10
MOST_EXACT = 50
TIMEOUT_SECONDS = 600.0
TOOK = re.compile(rb'"took_ms":([0-9.]+),"degraded":\[(.*?)\]')


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
    """Tables by name. Chunks look like `texts`, or else like texts that are made up."""

    async def run() -> dict[str, list[Row]]:
        settings = load_settings()
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(connect_qdrant(settings, TIMEOUT_SECONDS))
            async with open_embedder(settings, parallel=1) as embedder:
                originals = await originals_for(embedder, texts, chunks, seed, on_progress)
                made = bench_library(settings, engine, embedder.model, keep, use)
                library = await stack.enter_async_context(made)
                if not use:
                    await library.fill(originals, chunks, seed, on_progress)
                bench = _Bench(library, engine, list(_questions(originals, seed)), on_progress)
                told = await bench.one_at_a_time(embedder, count)
            told["at a steady rate"] = await bench.steady(rate, seconds)
        kept: list[Row] = [{"kept": library.name, "use it with": f"--use {library.name}"}] if keep or use else []
        return {**told, "kept": kept}

    return run_bench(run())


@dataclass(frozen=True)
class _Bench:
    library: BenchLibrary
    engine: qdrant.Qdrant
    questions: Sequence[str]
    on_progress: OnProgress

    async def one_at_a_time(self, embedder: Embedder, count: int) -> dict[str, list[Row]]:
        settings = self.library.settings
        card = knowledge_card(embedder.model)
        chunks, extractions = [await one.open(card) for one in knowledge_indexes(self.engine, settings)]
        shape: list[Row] = [
            {"collection": name, "points": await index.count()}
            for name, index in (("chunks", chunks), ("extractions", extractions))
        ]
        times = InTurn(("search",), ("ours", "bare"))
        async with (
            mongo.connect(settings.mongo_url.get_secret_value(), settings.mongo_database) as library,
            open_knowledge(settings, self.engine, embedder) as knowledge,
        ):
            if knowledge is None:
                raise SetupError("there is no library here", hint="TOOLSCRIPT_MONGO_URL says where it is")
            bare = BareKnowledge(self.engine, self.library.collections, library, embedder, await chunks.count())
            for text in self.questions[:count]:
                terms = await chunks.rarities(passage_query_terms(text))
                ours, plain = partial(knowledge.search, KnowledgeQuery(text)), partial(bare.run, text, terms)
                await times.ask(("hybrid",), ours, plain)
            shares = [await _recall(embedder, chunks, text) for text in self.questions[:MOST_EXACT]]
        return {
            "library": shape,
            "against the bare engines": times.rows(),
            "recall of the dense arm": [
                {f"recall@{DEPTH}": round(sum(shares) / len(shares), 4), "of": len(shares)}
            ],
        }

    async def steady(self, rate: float, seconds: float) -> list[Row]:
        requests = [post_request("/search_knowledge", {"query": text}) for text in self.questions]
        async with search_server(cached=False, extra=self.library.environment) as child:
            lines = [HttpLine(child.port, read_answer) for _ in range(CONNECTIONS)]
            try:
                await OpenLoop(lines, requests, on_progress=self.on_progress).run(WARM_UP, "warm up")
                loop = OpenLoop(lines, requests[::-1], on_progress=self.on_progress)
                before = child.cpu_seconds()
                figures = figures_of(await loop.run(Schedule(rate, seconds), f"{rate:g} a second"))
                spent = (child.cpu_seconds() - before) * 1000 / figures.requests
            finally:
                for line in lines:
                    line.close()
        return [
            {
                "offered": figures.offered,
                "answered": round(figures.achieved, 1),
                "requests": figures.requests,
                "p50": round(figures.p50_ms, 1),
                "p95": round(figures.p95_ms, 1),
                "p99": round(figures.p99_ms, 1),
                "max": round(figures.max_ms, 1),
                "faults": dict(figures.errors),
                "CPU ms a request": round(spent, 1),
            }
        ]


def read_answer(message: bytes) -> Answer:
    status = message[9:12].decode("ascii", "replace")
    if status != "200":
        return Answer(f"status {status}")
    told = TOOK.search(message, max(0, message.rfind(b'"metadata":')))
    if told is None:
        return Answer("not understood")
    if told[2]:
        return Answer("degraded")
    return Answer("empty") if b'"result_count":0,' in message else Answer("", "", {"total": float(told[1])})


async def _recall(embedder: Embedder, chunks: Index, text: str) -> float:
    vector = await embedder.embed_query(text)
    found = (await chunks.search(Ask(vector, limit=DEPTH))).dense or ()
    exact = (await chunks.search(Ask(vector, limit=DEPTH, exact=True))).dense or ()
    return recall_at(found, exact, DEPTH)


def _questions(originals: Originals, seed: int) -> Iterator[str]:
    chance = random.Random(seed)  # noqa: S311
    for _ in range(DIFFERENT_QUESTIONS):
        words = originals.words[chance.randrange(len(originals.words))]
        length = chance.randint(FEWEST_ASKED, MOST_ASKED)
        start = chance.randrange(max(1, len(words) - length + 1))
        yield " ".join(originals.vocabulary.words[at] for at in words[start : start + length].tolist())
