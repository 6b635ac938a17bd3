"""eval: the service's search over a judged set."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from toolscript.adapters import postgres, qdrant
from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.judged_sets import read_judged_set
from toolscript.adapters.vector_store import RememberingEmbedder, VectorStore
from toolscript.evaluation.baselines import baselines_of
from toolscript.evaluation.judging import evenly_spread, judge
from toolscript.evaluation.results import earlier_report, recipe_of, result_of
from toolscript.model.judged import EvalReport, EvalRequest, EvalResult, JudgedSet
from toolscript.model.progress import OnProgress
from toolscript.model.queries import Strategy
from toolscript.ports import Catalog, Embedder
from toolscript.search.ranking import DEFAULT_RECIPE
from toolscript.search.ranking.recipe import PARTS
from toolscript.search.ranking.request import MOST_TEXTS
from toolscript.service.judged_engine import Asking, service_engine
from toolscript.service.judged_points import Collections
from toolscript.service.parts import connect_qdrant, item_layout, open_embedder, skill_layout
from toolscript.settings.gateway import load_gateway_settings
from toolscript.settings.service import Settings, load_settings


def evaluate(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = settings_for(request)
        judged = evenly_spread(read_judged_set(request.dataset, distractors=request.distractors), request.count)
        async with open_remembering(settings, on_progress) as embedder, _catalog(settings) as catalog:
            report = await _judged(judged, request, settings, embedder, catalog, on_progress)
        return result_of(replace(report, strategy=request.strategy), request, before)

    return asyncio.run(run())


def settings_for(request: EvalRequest) -> Settings:
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
        _connected(settings, request.strategy) as collections,
        service_engine(collections, embedder, catalog, Asking(request.strategy, recipe), on_progress) as engine,
    ):
        off = {part: engine.with_recipe(recipe.without(part)) for part in PARTS} if request.ablate else {}
        if request.strategy is not Strategy.DIRECT:
            off = {"skills": engine.with_strategy(Strategy.DIRECT), **off}
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
async def open_remembering(settings: Settings, on_progress: OnProgress) -> AsyncIterator[Embedder]:
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
async def _connected(settings: Settings, strategy: Strategy) -> AsyncIterator[Collections]:
    """Under a name that nobody else uses: two measurements at once must not meet."""
    alias = f"eval_{uuid.uuid4().hex[:12]}"
    async with connect_qdrant(settings, timeout_seconds=300) as connected:
        items = qdrant.QdrantIndexes(connected, alias, item_layout(settings))
        skills = qdrant.QdrantIndexes(connected, f"{alias}__skills", skill_layout(settings))
        yield Collections(items, None if strategy is Strategy.DIRECT else skills)
