"""eval: a gateway's search over a judged set, asked as a gateway is asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.judged_sets import read_judged_set
from toolscript.adapters.vector_store import RememberingEmbedder, VectorStore
from toolscript.errors import EmbedderUnavailable
from toolscript.evaluation.baselines import baselines_of
from toolscript.evaluation.judging import evenly_spread, judge
from toolscript.evaluation.metrics import DEPTH
from toolscript.evaluation.results import earlier_report, recipe_of, result_of
from toolscript.evaluation.tokens import Count, answer_tokens, count_if_possible
from toolscript.gateway.opening import cache_folder, require_model
from toolscript.model.gateway import DEFAULT_LIMIT, LocalAnswer, LocalQuery
from toolscript.model.items import Item
from toolscript.model.judged import EvalReport, EvalRequest, EvalResult, Given, JudgedSet
from toolscript.model.models import Matrix, Vector
from toolscript.model.progress import OnProgress
from toolscript.model.tool_ids import tool_id
from toolscript.ports import Embedder
from toolscript.search.local import (
    Analysed,
    Capabilities,
    LocalIndex,
    LocalSearch,
    analyse,
    default_capabilities,
)
from toolscript.search.ranking import DEFAULT_RECIPE, Recipe
from toolscript.search.ranking.recipe import PARTS
from toolscript.search.ranking.request import MOST_TEXTS
from toolscript.settings.gateway import GatewaySettings, load_gateway_settings
from toolscript.sync.item_vectors import embed_items

GATEWAY = "gateway"


def evaluate(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = load_gateway_settings({"search_model": request.model})
        judged = evenly_spread(read_judged_set(request.dataset, distractors=request.distractors), request.count)
        async with open_remembering(settings, on_progress) as embedder:
            report = await _judged(judged, request, settings, embedder, on_progress)
            return result_of(report, request, before)

    return asyncio.run(run())


async def _judged(
    judged: JudgedSet,
    request: EvalRequest,
    settings: GatewaySettings,
    embedder: Embedder,
    on_progress: OnProgress,
) -> EvalReport:
    """The engine embeds each query itself, for its time is measured; the others share what was embedded."""
    recipe = recipe_of(request, replace(DEFAULT_RECIPE, meaning=settings.search_alpha))
    prepared = PreparedItems(embedder)
    shared = CachedEmbedder(embedder, size=len(judged.queries) * MOST_TEXTS)
    parts = ablated_searches(recipe) if request.ablate else {}
    return await judge(
        GatewayEngine(gateway_search(recipe), embedder, prepared, count_if_possible()),
        judged,
        model=embedder.model.name,
        baselines=await baselines_of(judged, shared, on_progress),
        ablated={part: GatewayEngine(search, shared, prepared) for part, search in parts.items()},
        seed=request.seed,
        without_gold=request.without_gold,
        on_progress=on_progress,
    )


@asynccontextmanager
async def open_remembering(settings: GatewaySettings, on_progress: OnProgress) -> AsyncIterator[Embedder]:
    """The gateway's model; items are embedded once, unless nothing may be kept on disk."""
    require_model(settings)
    from toolscript.adapters.local_model.embedder import LocalEmbedder
    from toolscript.adapters.local_model.engine import Device

    model = await asyncio.to_thread(
        LocalEmbedder,
        settings.search_model,
        device=Device(settings.search_device),
        downloads=settings.data_folder / "models",
    )
    try:
        if settings.search_no_cache:
            yield model
        else:
            store = VectorStore(cache_folder(settings) / "eval", model.model)
            yield RememberingEmbedder(model, store, on_progress)
    finally:
        model.close()


def gateway_search(recipe: Recipe) -> LocalSearch:
    return LocalSearch(default_capabilities(), recipe)


def ablated_searches(recipe: Recipe) -> Mapping[str, LocalSearch]:
    """The same search with one of its parts off, by the name of the part."""
    off = {part: gateway_search(recipe.without(part)) for part in PARTS}
    return {**off, "general tools": LocalSearch(Capabilities((), {}), recipe)}


class PreparedItems:
    """Words and vectors of items, by key, worked out once for all engines and all slices of a catalog."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, tuple[Analysed, Vector]] = {}

    async def of(self, items: Sequence[Item]) -> tuple[list[Analysed], Matrix]:
        new = [item for item in items if item.key not in self._known]
        vectors = await embed_items(self._embedder, new)
        for item, vector in zip(new, vectors, strict=True):
            self._known[item.key] = (analyse(item), vector)
        known = [self._known[item.key] for item in items]
        rows = np.array([vector for _, vector in known], dtype=np.float32)
        return [words for words, _ in known], rows.reshape(len(known), self._embedder.model.dimensions)


class GatewayEngine:
    """Every item in memory, as in a gateway whose servers have all answered."""

    name = GATEWAY

    def __init__(
        self, search: LocalSearch, embedder: Embedder, prepared: PreparedItems, count: Count | None = None
    ) -> None:
        self._count = count
        self._search = search
        self._prepared = prepared
        search.embedder = embedder

    async def load(self, items: Sequence[Item]) -> None:
        analysed, vectors = await self._prepared.of(items)
        self._search.index = LocalIndex(items, analysed, vectors).warm()

    async def answer(self, query: str) -> Given:
        answer = await self._search.search(LocalQuery(query, limit=DEPTH, threshold=0.0, kind=None))
        if self._search.index.model_is_used and not answer.semantic:
            raise EmbedderUnavailable(f"words alone answered: {self._search.why_words_alone}", hint="try again")
        return given_of(answer, self._count)


def given_of(answer: LocalAnswer, count: Count | None = None) -> Given:
    """What a gateway's answer says, in the judge's words."""
    confidence = answer.hits[0].confidence if answer.hits else None
    shown = [
        {"tool": tool_id(hit.item.server, hit.item.name), "description": hit.item.description}
        for hit in answer.hits[:DEFAULT_LIMIT]
    ]
    return Given(
        tuple(hit.item.key for hit in answer.hits),
        confidence,
        answer.good_match,
        answer.milliseconds,
        answer_tokens(shown, count),
    )
