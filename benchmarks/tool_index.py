"""`python -m benchmarks tool-index`: indexing and search of `ToolIndex`, and its answers against the gateway's."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateway import FileServers
from benchmarks.measurements import WARM_UP_QUERIES, Latency
from benchmarks.questions import read_queries
from toolscript.core.embedding.cache import DiskCachedEmbedder, VectorStore
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.errors import SetupError
from toolscript.core.item_text import embedded_views
from toolscript.core.items import Item, JsonObject, tool_id
from toolscript.core.mcp_client.listing import ListedItems
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD, LocalAnswer, LocalHit, LocalQuery
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.settings import load_gateway_settings
from toolscript.tool_index import IndexAnswer, IndexHit, ToolIndex
from toolscript.tools.catalog.files import read_items

# Limit and threshold of what both are asked: a person's search, and a ranking without a threshold.
ASKED = ((DEFAULT_LIMIT, DEFAULT_THRESHOLD), (10, 0.0))


@dataclass(frozen=True)
class Difference:
    """A query that the two answer differently, with both answers."""

    query: str
    gateway: object
    tool_index: object


@dataclass(frozen=True)
class IndexingTimes:
    """Seconds to embed the texts of the tools in bulk, and to index the tools with the same embedder."""

    tools: int
    embedding_seconds: float
    indexing_seconds: float

    @property
    def ratio(self) -> float:
        return round(self.indexing_seconds / self.embedding_seconds, 3)


def definitions_by_server(items: Sequence[Item]) -> dict[str, list[JsonObject]]:
    """Return the tools as definitions of OpenAI, both kinds, Anthropic and MCP, in turn.

    Servers are in the order in which a gateway holds them: in another one a product of the same vectors is rounded
    differently in its last digit.
    """
    by_server: dict[str, list[JsonObject]] = {server: [] for server in sorted({item.server for item in items})}
    for number, item in enumerate(items):
        named: JsonObject = {"name": item.name, "description": item.description}
        schema = item.input_schema or {"type": "object"}
        function: JsonObject = {**named, "parameters": schema}
        definitions: Sequence[JsonObject] = (
            {"type": "function", "function": function},
            {"type": "function", **function},
            {**named, "input_schema": schema},
            {**named, "inputSchema": schema},
        )
        by_server[item.server].append(definitions[number % len(definitions)])
    return by_server


def tools_of_file(path: Path, count: int | None = None) -> list[Item]:
    return [item for item in read_items(path) if isinstance(item, Item)][:count]


async def index_of(items: Sequence[Item], embedder: Embedder) -> ToolIndex[JsonObject]:
    """Index the tools on a thread, as a program with an event loop does."""
    tools = definitions_by_server(items)
    return await asyncio.to_thread(lambda: ToolIndex.from_tools(tools, model=embedder))


async def indexing_times(items: Sequence[Item], embedder: Embedder) -> IndexingTimes:
    texts = list(dict.fromkeys(text for item in items for _, text in embedded_views(item)))
    await embedder.embed_texts(texts[:WARM_UP_QUERIES])
    started = time.perf_counter()
    await embedder.embed_texts(texts)
    embedded = time.perf_counter()
    await index_of(items, embedder)
    return IndexingTimes(len(items), embedded - started, time.perf_counter() - embedded)


def beyond_embedding(
    index: ToolIndex[JsonObject], queries: Sequence[str], on_progress: OnProgress = silent
) -> Latency:
    """Measure a whole call of `search`, less the time that it waited for the embedder."""
    milliseconds = []
    for number, query in enumerate([*queries[:WARM_UP_QUERIES], *queries]):
        started = time.perf_counter()
        answer = index.search(query)
        milliseconds.append((time.perf_counter() - started) * 1000 - answer.milliseconds["embedding"])
        on_progress(Progress("search", number, len(queries)))
    return Latency.of("beyond embedding", milliseconds[WARM_UP_QUERIES:])


@asynccontextmanager
async def open_gateway(items: Sequence[Item], embedder: Embedder) -> AsyncIterator[LocalGateway]:
    """Open a gateway whose servers list these tools over MCP."""
    names = sorted({item.server for item in items})
    servers = FileServers([item for name in names for item in _listed(name, items)])
    search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    indexing = Indexing(servers, search, load_embedder=lambda: embedder, cache=None, on_progress=silent)
    indexing.use(())
    working = asyncio.create_task(indexing.run())
    try:
        await indexing.settled()
        yield LocalGateway(servers, search, indexing, embedder.model.name)
    finally:
        working.cancel()


def _listed(server: str, items: Sequence[Item]) -> list[Item]:
    listed = ListedItems(ServerSpec(server, Transport.STDIO))
    entries = [
        {
            "name": item.name,
            "description": item.description,
            "inputSchema": item.input_schema or {"type": "object"},
        }
        for item in items
        if item.server == server
    ]
    listed.add("tool", entries, lambda _: None)
    if listed.refused:
        raise SetupError(f"the gateway refuses {listed.refused[0]} of {server}", hint="leave the tool out")
    return listed.items


async def differences(
    items: Sequence[Item], queries: Sequence[str], embedder: Embedder, on_progress: OnProgress = silent
) -> list[Difference]:
    """Return the queries that a gateway and a `ToolIndex` over the same tools answer differently.

    Hits, scores, confidences, reasons and verdicts are compared. `embedder` must give the same vector for a text
    every time, which a quantized model does not: its vectors depend on the other texts of a batch.
    """
    index = await index_of(items, embedder)
    different = []
    async with open_gateway(items, embedder) as gateway:
        for number, text in enumerate(queries, 1):
            for limit, threshold in ASKED:
                expected = _of_gateway(await gateway.search(LocalQuery(text, limit, threshold)))
                answer = _of_index(await index.asearch(text, limit=limit, threshold=threshold))
                if answer != expected:
                    different.append(Difference(text, expected, answer))
            on_progress(Progress("compare", number, len(queries)))
    return different


def _of_gateway(answer: LocalAnswer) -> tuple[object, ...]:
    def of(hit: LocalHit) -> tuple[object, ...]:
        name, parts = tool_id(hit.item.server, hit.item.name), hit.parts
        scores = (hit.score, hit.confidence, parts.semantic, parts.contributions)
        return (name, *scores, hit.reason, parts.matched, hit.item.input_schema)

    verdict = (answer.good_match, answer.total, answer.unmatched, answer.semantic, answer.hint)
    return ([of(hit) for hit in answer.hits], [of(hit) for hit in answer.near_misses], verdict)


def _of_index(answer: IndexAnswer[JsonObject]) -> tuple[object, ...]:
    def of(hit: IndexHit[JsonObject]) -> tuple[object, ...]:
        scores = (hit.score, hit.confidence, hit.similarity, hit.contributions)
        return (hit.name, *scores, hit.reason, hit.matched, hit.input_schema)

    verdict = (answer.good_match, answer.total, answer.unmatched, answer.semantic, answer.hint)
    return ([of(hit) for hit in answer.hits], [of(hit) for hit in answer.near_misses], verdict)


def bench_tool_index(
    tools: Path, queries: Path, *, count: int, limit: int, model: str | None, on_progress: OnProgress
) -> dict[str, object]:
    """Index the first `count` tools of a file, search them, and compare every answer with the gateway's."""

    async def run() -> dict[str, object]:
        settings = load_gateway_settings({"search_model": model})
        downloads = settings.data_folder / "models"
        bare = await asyncio.to_thread(LocalEmbedder, settings.search_model, downloads=downloads)
        items, texts = tools_of_file(tools, count), read_queries(queries, limit)
        times = await indexing_times(items, bare)
        with tempfile.TemporaryDirectory() as folder:
            shared = DiskCachedEmbedder(bare, VectorStore(Path(folder), bare.model), on_progress)
            different = await differences(items, texts, shared, on_progress)
            index = await index_of(items, shared)
            beyond = await asyncio.to_thread(beyond_embedding, index, texts, on_progress)
        return {
            "tools": times.tools,
            "embedding_seconds": round(times.embedding_seconds, 2),
            "indexing_seconds": round(times.indexing_seconds, 2),
            "indexing_ratio": times.ratio,
            "beyond_embedding_p50_ms": beyond.p50_ms,
            "beyond_embedding_p95_ms": beyond.p95_ms,
            "queries": len(texts),
            "answers_unlike_the_gateway": len(different),
        }

    return asyncio.run(run())
