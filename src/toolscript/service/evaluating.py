"""eval: the service's search over a judged set, in a collection of its own that is dropped afterwards."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import copy

from toolscript.adapters import postgres, qdrant
from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.judged_sets import read_judged_set
from toolscript.adapters.vector_store import RememberingEmbedder, VectorStore
from toolscript.errors import SetupError
from toolscript.evaluation.baselines import baselines_of
from toolscript.evaluation.judging import evenly_spread, judge
from toolscript.evaluation.metrics import DEPTH
from toolscript.evaluation.results import earlier_report, recipe_of, result_of
from toolscript.evaluation.tokens import answer_tokens, count_if_possible
from toolscript.model.index import PointVersion
from toolscript.model.items import Item, StoredItem
from toolscript.model.judged import EvalReport, EvalRequest, EvalResult, Given, JudgedSet
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.queries import Strategy, ToolQuery
from toolscript.model.results import ToolAnswer
from toolscript.model.tool_ids import tool_id
from toolscript.ports import Catalog, Embedder, Index, Indexes
from toolscript.search.ranking import DEFAULT_RECIPE, Recipe
from toolscript.search.ranking.recipe import PARTS
from toolscript.search.ranking.request import MOST_TEXTS
from toolscript.search.tools import ToolSearch
from toolscript.service.parts import open_embedder
from toolscript.settings import Settings, load_gateway_settings, load_settings
from toolscript.sync.item_vectors import embed_items
from toolscript.sync.points import point_of

SERVICE = "service"
BATCH = 500
VERSION = 1


def evaluate(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = _settings(request)
        judged = evenly_spread(read_judged_set(request.dataset, distractors=request.distractors), request.count)
        async with _open_remembering(settings, on_progress) as embedder, _catalog(settings) as catalog:
            report = await _judged(judged, request, settings, embedder, catalog, on_progress)
        return result_of(report, request, before)

    return asyncio.run(run())


def _settings(request: EvalRequest) -> Settings:
    settings = load_settings()
    return settings if request.model is None else settings.model_copy(update={"embedding_model": request.model})


async def _judged(
    judged: JudgedSet,
    request: EvalRequest,
    settings: Settings,
    embedder: Embedder,
    catalog: Catalog,
    on_progress: OnProgress,
) -> EvalReport:
    shared = CachedEmbedder(embedder, size=len(judged.queries) * MOST_TEXTS)
    recipe = recipe_of(request, DEFAULT_RECIPE)
    async with (
        _connected(settings) as indexes,
        service_engine(indexes, embedder, catalog, recipe, on_progress) as engine,
    ):
        off = {part: engine.with_recipe(recipe.without(part)) for part in PARTS} if request.ablate else {}
        return await judge(
            engine,
            judged,
            ablated=off,
            model=embedder.model.name,
            baselines=await baselines_of(judged, shared, on_progress),
            seed=request.seed,
            without_gold=request.without_gold,
            on_progress=on_progress,
        )


@asynccontextmanager
async def _open_remembering(settings: Settings, on_progress: OnProgress) -> AsyncIterator[Embedder]:
    """The service's model. What is remembered lies with the person who measures, as a gateway's caches do."""
    own = load_gateway_settings()
    async with open_embedder(settings) as model:
        if own.search_no_cache:
            yield model
        else:
            store = VectorStore(own.data_folder / "cache" / "eval", model.model)
            yield RememberingEmbedder(model, store, on_progress)


@asynccontextmanager
async def _catalog(settings: Settings) -> AsyncIterator[Catalog]:
    """Never asked, for no schemas are: PostgreSQL may be down."""
    async with postgres.open_pool(settings.postgres_url.get_secret_value(), size=1) as pool:
        yield postgres.PostgresCatalog(pool)


@asynccontextmanager
async def _connected(settings: Settings) -> AsyncIterator[Indexes]:
    """Under a name that nobody else uses: two measurements at once must not meet."""
    layout = qdrant.Layout(shards=settings.qdrant_shards, replicas=settings.qdrant_replicas)
    key = settings.qdrant_api_key.get_secret_value()
    async with qdrant.connect(
        settings.qdrant_url, settings.qdrant_grpc_port, api_key=key, timeout_seconds=300
    ) as connected:
        yield qdrant.QdrantIndexes(connected, f"eval_{uuid.uuid4().hex[:12]}", layout)


@asynccontextmanager
async def service_engine(
    indexes: Indexes,
    embedder: Embedder,
    catalog: Catalog,
    recipe: Recipe = DEFAULT_RECIPE,
    on_progress: OnProgress = silent,
) -> AsyncIterator["ServiceEngine"]:
    card = IndexCard(embedder.model)
    await indexes.create(card)
    try:
        yield ServiceEngine(indexes, embedder, catalog, recipe, on_progress)
    finally:
        await indexes.drop(card.fingerprint)


class ServiceEngine:
    """The items as points of a collection; what is loaded next is put and removed, not built anew."""

    name = SERVICE

    def __init__(
        self, indexes: Indexes, embedder: Embedder, catalog: Catalog, recipe: Recipe, on_progress: OnProgress
    ) -> None:
        self._indexes = indexes
        self._embedder = embedder
        self._catalog = catalog
        self._recipe = recipe
        self._count = count_if_possible()
        self._on_progress = on_progress
        self._search: ToolSearch | None = None
        self._ids: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._loaded: set[str] = set()

    def with_recipe(self, recipe: Recipe) -> "ServiceEngine":
        """Another ranking of the same points."""
        other = copy(self)
        vars(other).update(_recipe=recipe, _search=None)
        return other

    async def load(self, items: Sequence[Item]) -> None:
        for item in items:
            self._keys[self._ids.setdefault(item.key, len(self._ids) + 1)] = item.key
        card = IndexCard(self._embedder.model)
        if not self._loaded:
            async with self._indexes.loading(card):
                await self._follow(await self._indexes.open(card), items)
        else:
            await self._follow(await self._indexes.open(card), items)
        # Opened when all is in it: an index looks at its points then.
        opened = await self._indexes.open(card)
        self._search = ToolSearch(self._embedder, opened, opened, self._catalog, recipe=self._recipe)

    async def _follow(self, index: Index, items: Sequence[Item]) -> None:
        wanted = {item.key for item in items}
        gone = [PointVersion(self._ids[key], VERSION) for key in sorted(self._loaded - wanted)]
        for start in range(0, len(gone), BATCH):
            await index.remove(gone[start : start + BATCH])
        new = [item for item in items if item.key not in self._loaded]
        for start in range(0, len(new), BATCH):
            await self._put(index, new[start : start + BATCH])
            if not self._loaded:
                self._on_progress(Progress("fill", min(start + BATCH, len(new)), len(new)))
        self._loaded.clear()
        self._loaded.update(wanted)

    async def _put(self, index: Index, items: Sequence[Item]) -> None:
        vectors = await embed_items(self._embedder, items)
        stored = [StoredItem(self._ids[item.key], VERSION, item) for item in items]
        await index.put([point_of(one, vector) for one, vector in zip(stored, vectors, strict=True)])

    async def answer(self, query: str) -> Given:
        if self._search is None:
            raise SetupError("nothing is loaded yet")
        asked = ToolQuery(query, limit=DEPTH, threshold=0.0, strategy=Strategy.DIRECT, include_schemas=False)
        answer = await self._search.search(asked)
        if answer.degraded:
            raise SetupError(
                f"a part failed while it was measured: {', '.join(answer.degraded)}", hint="try again"
            )
        return self._given(answer)

    def _given(self, answer: ToolAnswer) -> Given:
        """What the service's answer says, in the judge's words."""
        confidence = answer.hits[0].confidence if answer.hits else None
        spent = answer.timings
        stages = {
            "embedding": spent.query_embedding,
            "engine": spent.tool_search - spent.ranking,
            "ranking": spent.ranking,
            "total": spent.total,
        }
        shown = [
            {"tool": tool_id(hit.server, hit.name), "description": hit.description}
            for hit in answer.hits[: ToolQuery.limit]
        ]
        keys = tuple(self._keys[hit.id] for hit in answer.hits)
        return Given(keys, confidence, answer.good_match, stages, answer_tokens(shown, self._count))
