"""`python -m benchmarks tokens` and `gateway`: tokens in an agent's context, and latency of a search."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.measurements import Comparison, compare
from benchmarks.questions import read_queries
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.model import CallResult, Check, Offer, ServerSpec, ServerState
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.core.tokens import o200k_tokens
from toolscript.core.values import OnProgress
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.mcp.definitions import DEFINITIONS
from toolscript.gateway.mcp.tools import MetaTools
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.runtime import load_embedder, make_indexing
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.settings import GatewaySettings, load_gateway_settings
from toolscript.tools.catalog.files import read_items
from toolscript_eval.tokens import measure_tokens


class FileServers:
    """Serves the items of a file as if they were those of MCP servers. Tools cannot be called."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._offers = [Offer("file", tuple(items))]

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None: ...

    def states(self) -> Sequence[ServerState]:
        return ()

    def offers(self) -> Sequence[Offer]:
        return self._offers

    async def changed(self, after: int) -> int:
        if after >= 0:
            await asyncio.get_running_loop().create_future()
        return 0

    async def call(
        self,
        server: str,
        tool: str,
        arguments: JsonObject,
        check: Check | None = None,  # noqa: ARG002 - of the port
    ) -> CallResult:
        raise InvalidRequest(f"{server}__{tool} is a line of a file", details={"arguments": len(arguments)})

    async def request(
        self,
        server: str,
        method: str,
        params: JsonObject,
        check: Check | None = None,  # noqa: ARG002 - of the port
    ) -> JsonObject:
        raise InvalidRequest(f"{server} is a file", details={"method": method, "params": len(params)})

    async def watch(self, server: str, uri: str, tell: Callable[[], None]) -> None: ...

    async def close(self) -> None: ...


def bench_tokens(
    tools: Path, queries: Path, *, limit: int, model: str | None, on_progress: OnProgress
) -> dict[str, object]:
    async def run() -> dict[str, object]:
        settings = load_gateway_settings({"search_model": model})
        gateway, items = await open_file_gateway(settings, tools, on_progress)
        texts = read_queries(queries, limit)
        call = MetaTools(gateway).call
        report = await measure_tokens(items, texts, DEFINITIONS, call, o200k_tokens(), on_progress=on_progress)
        return {**asdict(report), "saved": report.saved}

    return asyncio.run(run())


def bench_gateway(
    tools: Path, queries: Path, *, limit: int, model: str | None, on_progress: OnProgress
) -> Comparison:
    """Compare a whole search with the embedding of the texts that it needs; `embedding` is that of one."""

    async def run() -> Comparison:
        settings = load_gateway_settings({"search_model": model})
        gateway, _ = await open_file_gateway(settings, tools, on_progress)
        bare = load_embedder(settings)

        async def embed(text: str) -> dict[str, float]:
            first, *rest = parse_query(text).texts
            started = time.perf_counter()
            await bare.embed_query(first)
            of_first = (time.perf_counter() - started) * 1000
            await asyncio.gather(*map(bare.embed_query, rest))
            return {"embedding": of_first}

        async def search(text: str) -> None:
            await gateway.search(LocalQuery(text))

        return await compare(embed, search, read_queries(queries, limit), on_progress)

    return asyncio.run(run())


async def open_file_gateway(
    settings: GatewaySettings, tools: Path, on_progress: OnProgress
) -> tuple[LocalGateway, Sequence[Item]]:
    """Open a gateway over the items. Server names of public catalogs may contain spaces, which search accepts."""
    items = [item for item in read_items(tools) if isinstance(item, Item)]
    servers = FileServers(items)
    search = LocalSearch(default_capabilities(), RankingWeights(meaning=settings.search_alpha))
    indexing = make_indexing(settings, servers, search, on_progress)
    indexing.use(())
    working = asyncio.create_task(indexing.run())
    await indexing.settled()
    if indexing.model_error is not None:
        raise indexing.model_error
    working.cancel()
    return LocalGateway(servers, search, indexing, settings.search_model), items
