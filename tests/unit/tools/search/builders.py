"""A small catalog in memory, searched through doubles, any part of which can be made to fail."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.core.embedding.items import embed_items
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, Schemas
from toolscript.core.retrieval.model import Candidates, Fields, IndexCard, IndexQuery, Vector
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights
from toolscript.testing import HashEmbedder, MemoryCatalog, MemoryDirtySet
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.indexing.points import point_of
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.query import ToolQuery
from toolscript.tools.search import ToolSearch

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}

ITEMS = (
    Item("1", ItemKind.TOOL, "fs", "read_file", "Read the contents of a file", input_schema=SCHEMA),
    Item("2", ItemKind.TOOL, "fs", "write_file", "Write contents to a file", input_schema=SCHEMA),
    Item("3", ItemKind.PROMPT, "fs", "file_summary", "Summarise a file"),
    Item("4", ItemKind.RESOURCE, "fs", "file_log", "The log file"),
    Item("5", ItemKind.TOOL, "mail", "send_mail", "Send an electronic letter"),
    Item("6", ItemKind.TOOL, "old", "read_file_old", "Read the contents of a file"),
)
SKILLS: Mapping[str, tuple[str, ...]] = {"1": ("files", "reading"), "2": ("files",), "5": ("mail",)}
INACTIVE = "6"


class FailingEmbedder(HashEmbedder):
    """Fails with this error; None: never answers."""

    def __init__(self, failure: Exception | None) -> None:
        super().__init__()
        self._failure = failure

    async def embed_query(self, text: str) -> Vector:
        await _fail(self._failure)
        return await super().embed_query(text)


class FailingIndex(MemoryIndex):
    def __init__(self, failure: Exception | None) -> None:
        super().__init__(IndexCard(HashEmbedder().model))
        self._failure = failure

    async def search(self, ask: IndexQuery) -> Candidates:
        await _fail(self._failure)
        return await super().search(ask)


class PayloadlessIndex(MemoryIndex):
    """Finds points, but fails to read payloads the first time, when the reranker needs them."""

    def __init__(self, failure: Exception | None) -> None:
        super().__init__(IndexCard(HashEmbedder().model))
        self._failure = failure
        self._has_failed = False

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        if not self._has_failed:
            self._has_failed = True
            await _fail(self._failure)
        return await super().fields(ids, only)


class FailingCatalog(MemoryCatalog):
    def __init__(self, failure: Exception | None) -> None:
        super().__init__(MemoryDirtySet())
        self._failure = failure

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        await _fail(self._failure)
        return await super().schemas(ids)

    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        await _fail(self._failure)
        return await super().removed(ids)


class WatchedIndex(MemoryIndex):
    """Records its requests."""

    def __init__(self) -> None:
        super().__init__(IndexCard(HashEmbedder().model))
        self.asks: list[IndexQuery] = []
        self.looks: list[tuple[int, tuple[str, ...]]] = []

    async def search(self, ask: IndexQuery) -> Candidates:
        self.asks.append(ask)
        return await super().search(ask)

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        self.looks.append((len(ids), tuple(only)))
        return await super().fields(ids, only)


class WatchedCatalog(MemoryCatalog):
    def __init__(self) -> None:
        super().__init__(MemoryDirtySet())
        self.schema_reads: list[list[int]] = []
        self.removed_asks: list[list[int]] = []

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        self.schema_reads.append(list(ids))
        return await super().schemas(ids)

    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        self.removed_asks.append(sorted(ids))
        return await super().removed(ids)


async def _fail(failure: Exception | None) -> None:
    if failure is None:
        await asyncio.Event().wait()
    else:
        raise failure


@dataclass
class Scene:
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    index: MemoryIndex = field(default_factory=WatchedIndex)
    skills: MemoryIndex = field(default_factory=WatchedIndex)
    catalog: MemoryCatalog = field(default_factory=WatchedCatalog)
    deadline_seconds: float = 10.0

    weights: RankingWeights = DEFAULT_WEIGHTS
    scale: CosineScale | None = None

    async def search(self, query: ToolQuery) -> ToolAnswer:
        await self.fill()
        return await self.tools.search(query)

    @property
    def tools(self) -> ToolSearch:
        return ToolSearch(
            self.embedder,
            DefaultNamespace(self.index),
            DefaultNamespace(self.skills),
            self.catalog,
            deadline_seconds=self.deadline_seconds,
            weights=self.weights,
            scale=self.scale,
        )

    async def fill(self) -> None:
        await self.catalog.store("test", ITEMS)
        for stored in await self.catalog.items(range(1, len(ITEMS) + 1)):
            key = stored.item.key
            if key == INACTIVE:
                continue
            skills = SKILLS.get(key, ())
            by_hand = tuple(Assignment(skill, 1.0, AssignedBy.HUMAN) for skill in skills)
            assigned = replace(stored, assignments=by_hand)
            (vector,) = await embed_items(HashEmbedder(), [stored.item])
            await self.index.put([point_of(assigned, vector)])
