"""A separate catalog; every request runs twice: in literal mode, and on the bare engine."""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles

from qdrant_client import QdrantClient

from tests.e2e.literal.bare import Bare, BareSearch
from toolscript.core.items import Item
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, silent
from toolscript.server.stores import connect_qdrant, item_layout, open_embedder, skill_layout
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.query import ToolQuery
from toolscript.tools.search import ToolSearch
from toolscript_eval.dataset import Dataset, DatasetQuery
from toolscript_eval.metrics import DEPTH, ndcg
from toolscript_eval.service import IN_INDEX_ALONE, Collections, DatasetPoints

SAME = 1e-5


@dataclass(frozen=True)
class Pair:
    """One request, and both answers to it."""

    query: DatasetQuery
    literal: ToolAnswer
    bare: Bare

    @property
    def differs(self) -> bool:
        return not (self._same_skills and self._same_hits)

    @property
    def _same_skills(self) -> bool:
        used = self.literal.skill_ids_used
        return (None if used is None else sorted(used)) == (self.bare.skills and sorted(self.bare.skills))

    @property
    def _same_hits(self) -> bool:
        """Return whether scores and ids are equal position by position; ties with the last hit may differ."""
        ours, theirs = [(hit.id, hit.score) for hit in self.literal.hits], self.bare.hits
        if len(ours) != len(theirs):
            return False
        if any(abs(item[1] - other[1]) > SAME for item, other in zip(ours, theirs, strict=True)):
            return False
        return _firm(ours) <= set(dict(theirs)) and _firm(theirs) <= set(dict(ours))


def _firm(hits: list[tuple[int, float]]) -> set[int]:
    return {id_ for id_, score in hits if score > hits[-1][1] + 2 * SAME}


@dataclass
class Compared:
    """Result of a dataset."""

    name: str
    pairs: list[Pair] = field(default_factory=list)
    literal_quality: list[float] = field(default_factory=list)
    default_quality: list[float] = field(default_factory=list)

    @property
    def differing(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.differs]

    def told(self) -> str:
        times = [pair.literal.timings.skill_search for pair in self.pairs]
        p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
        fallen = sum(pair.literal.skill_ids_used is None for pair in self.pairs)
        return (
            f"{self.name}: {len(self.pairs)} requests, {len(self.differing)} answers differ, "
            f"{fallen} fell back, nDCG@10 literal {fmean(self.literal_quality):.4f}, "
            f"default {fmean(self.default_quality):.4f}, "
            f"skill stage p50 {median(times):.2f} ms, p95 {p95:.2f} ms"
        )


@dataclass(frozen=True)
class Catalog:
    """The items of a dataset in separate collections."""

    embedder: Embedder
    points: DatasetPoints
    search: ToolSearch
    bare: BareSearch

    async def asked(self, query: DatasetQuery) -> Pair:
        literal = await self.answer(query.text, SearchType.SEMANTIC)
        vector = await self.embedder.embed_query(query.text)
        return Pair(query, literal, self.bare.ask([float(value) for value in vector], DEPTH))

    async def answer(self, text: str, search_type: SearchType) -> ToolAnswer:
        requests = ToolQuery(text, limit=DEPTH, search_type=search_type, include_schemas=False)
        answer = await self.search.search(requests)
        if answer.degraded:
            raise AssertionError(f"{text!r} was answered without {answer.degraded}")
        return answer

    def quality(self, query: DatasetQuery, answer: ToolAnswer) -> float:
        return ndcg([self.points.key_of(hit.id) for hit in answer.hits], query.relevant)


@asynccontextmanager
async def opened_catalog(
    settings: Settings, items: Sequence[Item], on_progress: OnProgress = silent
) -> AsyncIterator[Catalog]:
    alias = f"literal_{uuid.uuid4().hex[:12]}"
    async with AsyncExitStack() as stack:
        connected = await stack.enter_async_context(connect_qdrant(settings, timeout_seconds=300))
        embedder = await stack.enter_async_context(open_embedder(settings))
        card = IndexCard(embedder.model)
        of_items = QdrantIndexes(connected, alias, item_layout(settings))
        of_skills = QdrantIndexes(connected, f"{alias}__skills", skill_layout(settings))
        for indexes in (of_items, of_skills):
            await indexes.create(card)
            stack.push_async_callback(indexes.drop, card.fingerprint)
        points = DatasetPoints(Collections(of_items, of_skills), embedder, on_progress)
        loaded = await points.load(items)
        client = QdrantClient(url=settings.qdrant_url, timeout=60)
        stack.callback(client.close)
        of_both = DefaultNamespace(loaded.items), DefaultNamespace(loaded.skills)
        search = ToolSearch(embedder, *of_both, IN_INDEX_ALONE, deadline_seconds=120)
        bare = BareSearch(client, f"{alias}__{card.fingerprint}", f"{alias}__skills__{card.fingerprint}")
        yield Catalog(embedder, points, search, bare)


async def compared(settings: Settings, judged: Dataset, on_progress: OnProgress = silent) -> Compared:
    result = Compared(judged.name)
    async with opened_catalog(settings, judged.items, on_progress) as catalog:
        for query in judged.queries:
            pair = await catalog.asked(query)
            result.pairs.append(pair)
            if query.answerable:
                default = await catalog.answer(query.text, SearchType.HYBRID)
                result.literal_quality.append(catalog.quality(query, pair.literal))
                result.default_quality.append(catalog.quality(query, default))
    return result
