"""A gateway with in-memory servers; the test controls when the model loads and embedding continues."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.doubles import MemoryToolServers
from tests.doubles.tool_servers import Answer, echo
from toolscript.core.embedding.scale import PROBES
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.errors import EmbedderRejected, ToolscriptError
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer, ServerSpec, Transport
from toolscript.core.retrieval.model import Matrix
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.core.values import Progress
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.search import LocalSearch
from toolscript.testing import HashEmbedder

SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}}


def spec(name: str) -> ServerSpec:
    return ServerSpec(name, Transport.STDIO, command=f"run-{name}")


def tool(server: str, name: str, description: str = "", **more: object) -> Item:
    """Build a tool as read from an MCP server."""
    return item_from_json({"server": server, "name": name, "description": description, **more})


def tools(server: str, count: int) -> list[Item]:
    return [tool(server, f"tool_{number}", f"Does thing number {number}") for number in range(count)]


FILES = (
    tool("files", "read_file", "Read the contents of a file", input_schema=SCHEMA),
    tool("files", "write_file", "Write text into a file", input_schema=SCHEMA),
)
MAIL = (tool("mail", "send_mail", "Send an electronic letter"),)


PROBE_TEXTS = tuple(description for *_, description in PROBES)


class GatedEmbedder(HashEmbedder):
    """Records each embedded text. With `permits`, each batch acquires one."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.permits: asyncio.Semaphore | None = None
        self.waiting = asyncio.Event()
        self.failure: ToolscriptError | None = None
        self.refused = ""

    @property
    def items_embedded(self) -> list[str]:
        """The text of each item; the names, which are embedded too, have no full stop. Probes are no items."""
        return [text for text in self.texts if "." in text and not text.endswith(PROBE_TEXTS)]

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        self.waiting.set()
        if self.permits is not None:
            await self.permits.acquire()
        if self.failure is not None:
            raise self.failure
        if self.refused and any(self.refused in text for text in texts):
            raise EmbedderRejected(f"{self.refused} is refused")
        self.texts += texts
        return await super().embed_texts(texts)


class WatchedSearch(LocalSearch):
    """Lets a test wait for a condition on the index."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        super().__init__(default_capabilities(), DEFAULT_WEIGHTS)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in ("index", "embedder"):
            self._news.set()

    async def until(self, holds: Callable[[LocalSearch], bool]) -> None:
        while not holds(self):
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 10)

    async def until_names(self, *expected: str) -> None:
        await self.until(lambda search: sorted(item.name for item in search.index.items) == sorted(expected))


class World:
    def __init__(self, cache: Path | None, answer: Answer, *, builtin: bool = False) -> None:
        self.servers = MemoryToolServers(answer=answer)
        self.search = WatchedSearch()
        self.embedder = GatedEmbedder()
        self.model_may_come = threading.Event()
        self.model_failure: ToolscriptError | None = None
        self.progress: list[Progress] = []
        self.indexing = Indexing(
            self.servers,
            self.search,
            load_embedder=self._load,
            cache=cache,
            on_progress=self.progress.append,
            load_fallback=StaticEmbedder if builtin else None,
            fallback_first=builtin,
        )
        self.gateway = LocalGateway(self.servers, self.search, self.indexing, "hash")

    def _load(self) -> HashEmbedder:
        self.model_may_come.wait(20)
        if self.model_failure is not None:
            raise self.model_failure
        return self.embedder

    def use(self, *names: str, remembered: Iterable[Offer] = ()) -> None:
        specs = [spec(name) for name in names]
        self.indexing.use(specs, tuple(remembered))
        self.servers.use(specs)

    async def settled(self) -> None:
        await asyncio.wait_for(self.indexing.settled(), 20)

    @property
    def found(self) -> list[str]:
        return [item.name for item in self.search.index.items]

    async def names(self, text: str) -> list[str]:
        answer = await self.gateway.search(LocalQuery(text, threshold=0.0))
        return [hit.item.name for hit in answer.hits]


@asynccontextmanager
async def open_world(
    cache: Path | None = None,
    *,
    model: bool = True,
    builtin: bool = False,
    answer: Answer = echo,
    begin: Callable[[World], None] = lambda _: None,
) -> AsyncIterator[World]:
    """Run the indexing, after `begin`. Without `model`, it loads when `model_may_come` is set.

    `builtin`: the built-in model answers until then.
    """
    world = World(cache, answer, builtin=builtin)
    begin(world)
    if model:
        world.model_may_come.set()
    working = asyncio.create_task(world.indexing.run())
    try:
        yield world
    finally:
        world.model_may_come.set()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def details_of(error: Any) -> dict[str, object]:
    return dict(error.value.details)
