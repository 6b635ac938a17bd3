"""`eval` of the service: its search over a dataset, in collections of its own."""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from toolscript.core.embedding.cache import CachedEmbedder, DiskCachedEmbedder, VectorStore
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import scale_of
from toolscript.core.errors import SetupError
from toolscript.core.items import Assignment, Item, Schemas, StoredItem, tool_id
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.retrieval.model import IndexCard, Matrix, PointVersion, Vector
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.ports import Embedder, Index, Indexes
from toolscript.core.retrieval.request import MAX_TEXTS
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, PARTS, RankingWeights, probability_of
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill, Unclassified
from toolscript.core.tokens import count_if_possible
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.gateway.model import DEFAULT_LIMIT
from toolscript.gateway.settings import load_gateway_settings
from toolscript.server.settings import load_settings
from toolscript.server.skills import default_skills
from toolscript.server.stores import connect_qdrant, item_layout, open_embedder, skill_layout
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing.points import SkillPoints, point_of
from toolscript.tools.model.answer import Timings, ToolAnswer
from toolscript.tools.model.centroids import Centroid, Counted, SkillState, differences, sum_by_skill
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import ToolSearch
from toolscript_eval.baselines import baselines_of
from toolscript_eval.dataset import (
    Dataset,
    EngineAnswer,
    EvalReport,
    EvalRequest,
    EvalResult,
    Route,
    Shown,
    SkillSet,
    read_dataset,
)
from toolscript_eval.judging import evenly_spread, judge
from toolscript_eval.metrics import DEPTH
from toolscript_eval.report import earlier_report, result_of, weights_of
from toolscript_eval.skills import assigned_skills
from toolscript_eval.tokens import answer_tokens

# There is one index of skills, built once.
INDEX_VERSION = 1
BATCH = 500
VERSION = 1
SERVICE = "service"
# Quality is measured, also on a busy machine: what answers late is no part that failed.
DEADLINE_SECONDS = 120.0

logger = logging.getLogger(__name__)


class DatasetSkills:
    """Skills with centroids of the loaded items; a removed item is subtracted, and the skill points follow."""

    def __init__(
        self,
        embedder: Embedder,
        skills: Sequence[Skill],
        assigned: Mapping[int, tuple[Assignment, ...]] | None = None,
    ) -> None:
        self._embedder = embedder
        self._classifier = RulesClassifier(embedder)
        self._skills = {skill.id: skill for skill in skills}
        self._assignments: dict[int, tuple[Assignment, ...]] = dict(assigned or {})
        self._counted: dict[int, Counted] = {}
        self._sums: dict[str, Centroid] = {}
        self._versions = dict.fromkeys(self._skills, 1)
        self._written: dict[tuple[int, str], int] = {}

    async def settled(self, items: Sequence[StoredItem], vectors: Matrix) -> list[StoredItem]:
        """Classify items, add them to the centroids, and return them with skills. Reloaded items keep theirs."""
        new = [
            (stored, vector)
            for stored, vector in zip(items, vectors, strict=True)
            if stored.id not in self._assignments
        ]
        unclassifieds = [Unclassified(stored.item, vector) for stored, vector in new]
        classifications = await self._classifier.classify(unclassifieds, tuple(self._skills.values()))
        self._assignments |= {
            stored.id: classification.assignments
            for (stored, _), classification in zip(new, classifications, strict=True)
        }
        settled = [replace(stored, assignments=self._assignments[stored.id]) for stored in items]
        counted = [_counted(stored, vector) for stored, vector in zip(settled, vectors, strict=True)]
        self._counted |= {stored.item_id: stored for stored in counted}
        self._move(differences({}, sum_by_skill(counted)))
        return settled

    def forget(self, ids: Sequence[int]) -> None:
        """Subtract removed items from the centroids."""
        self._move(differences(sum_by_skill([self._counted.pop(id_) for id_ in ids]), {}))

    async def index_skills(self, index: Index) -> None:
        """Write the points of the moved skills, as a worker does."""
        points = SkillPoints(self, self._embedder, index, INDEX_VERSION)
        while await points.index_stale():
            pass

    def of_items(self) -> dict[int, frozenset[str]]:
        """Return the skills of every loaded item."""
        return {id_: frozenset(counted.weights) for id_, counted in self._counted.items()}

    async def behind(self, index_version: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        written = self._written
        waiting = [
            id_ for id_, version in self._versions.items() if written.get((index_version, id_), 0) < version
        ]
        selected = [id_ for id_ in waiting if not only or id_ in only]
        return [
            SkillState(self._skills[id_], self._sums.get(id_, Centroid.nothing()), self._versions[id_])
            for id_ in selected[:limit]
        ]

    async def mark_indexed(self, index_version: int, states: Sequence[SkillState]) -> None:
        self._written |= {(index_version, state.skill.id): state.version for state in states}

    def _move(self, moves: Mapping[str, Centroid]) -> None:
        for skill, move in moves.items():
            self._sums[skill] = self._sums.get(skill, Centroid.nothing()) + move
            self._versions[skill] += 1


class ItemsBySkill:
    """The skills of items by key. Few sets of skills are distinct, so that counting by set is fast."""

    def __init__(self, skills: Mapping[str, frozenset[str]]) -> None:
        self.skills = skills
        self._counts = Counter(skills.values())

    def share(self, any_of: Collection[str]) -> float:
        """Return the share of items that have any of these skills."""
        matching = sum(count for skills, count in self._counts.items() if not skills.isdisjoint(any_of))
        return matching / len(self.skills) if self.skills else 0.0


def _counted(stored: StoredItem, vector: Vector) -> Counted:
    """Return the item for its centroids, without a text hash: vectors are not looked up here."""
    return Counted(
        stored.id, "", vector, {assignment.skill_id: assignment.weight for assignment in stored.assignments}
    )


@dataclass(frozen=True)
class Collections:
    """The indexes of items and of skills; without routing `skills` is None, and nothing is classified."""

    items: Indexes
    skills: Indexes | None = None


@dataclass(frozen=True)
class Loaded:
    """The loaded indexes, and the items by skill; without routing the index of skills is unused."""

    items: Index
    skills: Index
    by_skill: ItemsBySkill | None


class DatasetPoints:
    """Loads a dataset by putting and removing points, without a rebuild."""

    def __init__(
        self,
        collections: Collections,
        embedder: Embedder,
        on_progress: OnProgress,
        skill_set: SkillSet = SkillSet.DEFAULT,
    ) -> None:
        self._collections = collections
        self._embedder = embedder
        self._on_progress = on_progress
        self._skill_set = skill_set
        self._card = IndexCard(embedder.model)
        self._skills: DatasetSkills | None = None
        self._ids: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._loaded_keys: set[str] = set()
        self._loaded: Loaded | None = None

    def key_of(self, id_: int) -> str:
        return self._keys[id_]

    async def load(self, items: Sequence[Item]) -> Loaded:
        """Load items. The same items are not reopened: an index samples its IDFs, each time differently."""
        keys = {item.key for item in items}
        if self._loaded is None or keys != self._loaded_keys:
            for item in items:
                self._keys[self._ids.setdefault(item.key, len(self._ids) + 1)] = item.key
            if self._skills is None and self._collections.skills is not None:
                self._skills = await self._first_skills(items)
            await self._fill(items)
            self._loaded_keys = keys
            self._loaded = await self._open()
        return self._loaded

    async def _first_skills(self, items: Sequence[Item]) -> DatasetSkills:
        """Return the skills of the whole dataset, which is loaded first: later loads leave items out."""
        if self._skill_set is SkillSet.DEFAULT:
            return DatasetSkills(self._embedder, default_skills())
        stored = [StoredItem(self._ids[item.key], VERSION, item) for item in items]
        given = () if self._skill_set is SkillSet.PROPOSED else default_skills()
        found = await assigned_skills(stored, self._embedder, given, self._on_progress)
        logger.info(
            "%d skills; the largest holds %.1f %%, %.1f %% of the items are in none",
            len(found.skills),
            100 * found.largest_share,
            100 * found.unassigned_share,
        )
        return DatasetSkills(self._embedder, found.skills, found.assignments)

    async def _fill(self, items: Sequence[Item]) -> None:
        indexes = self._collections.items
        if self._loaded_keys:
            await self._index_items(await indexes.open(self._card), items)
            return
        async with indexes.loading(self._card):
            await self._index_items(await indexes.open(self._card), items)

    async def _open(self) -> Loaded:
        """Open the indexes after they are filled: opening samples their points."""
        items = await self._collections.items.open(self._card)
        if self._skills is None or self._collections.skills is None:
            return Loaded(items, items, None)
        await self._skills.index_skills(await self._collections.skills.open(self._card))
        by_skill = ItemsBySkill({self._keys[id_]: skills for id_, skills in self._skills.of_items().items()})
        return Loaded(items, await self._collections.skills.open(self._card), by_skill)

    async def _index_items(self, index: Index, items: Sequence[Item]) -> None:
        keys = {item.key for item in items}
        gone = [self._ids[key] for key in sorted(self._loaded_keys - keys)]
        for start in range(0, len(gone), BATCH):
            await index.remove([PointVersion(id_, VERSION) for id_ in gone[start : start + BATCH]])
        if self._skills is not None:
            self._skills.forget(gone)
        new = [item for item in items if item.key not in self._loaded_keys]
        for start in range(0, len(new), BATCH):
            await self._put(index, new[start : start + BATCH])
            if not self._loaded_keys:
                self._on_progress(Progress("fill", min(start + BATCH, len(new)), len(new)))

    async def _put(self, index: Index, items: Sequence[Item]) -> None:
        vectors = await embed_items(self._embedder, items)
        stored = [StoredItem(self._ids[item.key], VERSION, item) for item in items]
        if self._skills is not None:
            stored = await self._skills.settled(stored, vectors)
        await index.put(
            [point_of(stored_item, vector) for stored_item, vector in zip(stored, vectors, strict=True)]
        )


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search."""

    strategy: Strategy = Strategy.DIRECT
    weights: RankingWeights = DEFAULT_WEIGHTS
    skills: SkillSet = SkillSet.DEFAULT


class DatasetItems:
    """Stands in for the catalog of points that no catalog has: none is removed, and none has schemas."""

    async def schemas(self, _ids: Sequence[int]) -> Mapping[int, Schemas]:
        return {}

    async def removed(self, _ids: Sequence[int]) -> frozenset[int]:
        return frozenset()


IN_INDEX_ALONE = DatasetItems()


@asynccontextmanager
async def service_engine(
    collections: Collections,
    embedder: Embedder,
    options: SearchOptions | None = None,
    on_progress: OnProgress = silent,
) -> AsyncIterator["ServiceEngine"]:
    card = IndexCard(embedder.model)
    async with AsyncExitStack() as stack:
        for indexes in filter(None, (collections.items, collections.skills)):
            await indexes.create(card)
            stack.push_async_callback(indexes.drop, card.fingerprint)
        options = options or SearchOptions()
        points = DatasetPoints(collections, embedder, on_progress, options.skills)
        yield ServiceEngine(points, embedder, options)


class ServiceEngine:
    name = SERVICE

    def __init__(self, points: DatasetPoints, embedder: Embedder, options: SearchOptions) -> None:
        self._points = points
        self._embedder = embedder
        self._options = options
        self._count = count_if_possible()
        self._search: ToolSearch | None = None
        self._scale: CosineScale | None = None
        self._by_skill: ItemsBySkill | None = None

    def with_weights(self, weights: RankingWeights) -> "ServiceEngine":
        """Return an engine with other weights on the same points."""
        return self._with_options(replace(self._options, weights=weights))

    def with_strategy(self, strategy: Strategy) -> "ServiceEngine":
        """Return an engine with another strategy on the same points."""
        return self._with_options(replace(self._options, strategy=strategy))

    def _with_options(self, options: SearchOptions) -> "ServiceEngine":
        return ServiceEngine(self._points, self._embedder, options)

    async def load(self, items: Sequence[Item]) -> None:
        loaded = await self._points.load(items)
        weights, self._by_skill = self._options.weights, loaded.by_skill
        both = DefaultNamespace(loaded.items), DefaultNamespace(loaded.skills)
        self._scale = self._scale or await scale_of(self._embedder, None)
        self._search = ToolSearch(
            self._embedder,
            *both,
            IN_INDEX_ALONE,
            weights=weights,
            scale=self._scale,
            deadline_seconds=DEADLINE_SECONDS,
        )

    async def answer(self, query: str) -> EngineAnswer:
        if self._search is None:
            raise SetupError("nothing is loaded yet")
        strategy = self._options.strategy
        tool_query = ToolQuery(query, limit=DEPTH, threshold=0.0, strategy=strategy, include_schemas=False)
        answer = await self._search.search(tool_query)
        if answer.degraded:
            raise SetupError(
                f"a part failed while it was measured: {', '.join(answer.degraded)}", hint="try again"
            )
        usual = ToolQuery(query, limit=DEFAULT_LIMIT, strategy=strategy, include_schemas=False)
        return self._engine_answer(answer, await self._search.search(usual))

    def _engine_answer(self, answer: ToolAnswer, shown: ToolAnswer | None = None) -> EngineAnswer:
        """Convert the service's answer; `shown` is that at default settings, but for the limit of a gateway."""
        tools = [
            {"tool": tool_id(hit.server, hit.name), "description": hit.description}
            for hit in answer.hits[: ToolQuery.limit]
        ]
        route = None if self._by_skill is None else _route(answer, self._by_skill)
        return EngineAnswer(
            tuple(self._points.key_of(hit.id) for hit in answer.hits),
            _probability(answer),
            answer.good_match,
            _stages(answer.timings, with_skills=route is not None),
            answer_tokens(tools, self._count),
            route,
            answer.fit,
            None if shown is None else self._shown(shown),
        )

    def _shown(self, answer: ToolAnswer) -> Shown:
        of_steps = [hit for step in answer.steps for hit in step.hits or step.near_misses]
        guesses = () if answer.all_hits else answer.near_misses
        best = max((hit.confidence or 0.0 for hit in (*answer.hits, *answer.near_misses)), default=0.0)
        keys = frozenset(self._points.key_of(hit.id) for hit in (*answer.hits, *of_steps, *guesses))
        return Shown(keys, bool(answer.good_match), best)


def _probability(answer: ToolAnswer) -> float | None:
    """Return the probability that the confidence of the first hit was made of."""
    confidence = answer.hits[0].confidence if answer.hits else None
    return None if confidence is None else probability_of(confidence, good_match=bool(answer.good_match))


def _route(answer: ToolAnswer, by_skill: ItemsBySkill) -> Route:
    """Return the route. `hybrid` uses skills, too, and also searches all items."""
    skills = answer.skill_ids_used or ()
    share = by_skill.share(skills) if answer.strategy_used is Strategy.HIERARCHICAL else 1.0
    return Route(answer.strategy_used, skills, share, by_skill.skills)


def _stages(spent: Timings, *, with_skills: bool) -> dict[str, float]:
    return {
        "embedding": spent.query_embedding,
        **({"skills": spent.skill_search} if with_skills else {}),
        "engine": spent.tool_search - spent.ranking,
        "ranking": spent.ranking,
        "total": spent.total,
    }


def evaluate(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = settings_for(request)
        dataset = evenly_spread(read_dataset(request.dataset, distractors=request.distractors), request.count)
        async with open_disk_cached(settings, on_progress) as embedder:
            report = await _judged(dataset, request, settings, embedder, on_progress)
        return result_of(replace(report, strategy=request.strategy), request, before)

    return asyncio.run(run())


def settings_for(request: EvalRequest) -> Settings:
    settings = load_settings()
    return settings if request.model is None else settings.model_copy(update={"embedding_model": request.model})


async def _judged(
    dataset: Dataset,
    request: EvalRequest,
    settings: Settings,
    embedder: Embedder,
    on_progress: OnProgress,
) -> EvalReport:
    shared = CachedEmbedder(embedder, size=len(dataset.queries) * MAX_TEXTS)
    weights = weights_of(request, DEFAULT_WEIGHTS)
    async with (
        _connected(settings, request.strategy) as collections,
        service_engine(
            collections, embedder, SearchOptions(request.strategy, weights, request.skills), on_progress
        ) as engine,
    ):
        off = {part: engine.with_weights(weights.without(part)) for part in PARTS} if request.ablate else {}
        if request.strategy is not Strategy.DIRECT:
            off = {"skills": engine.with_strategy(Strategy.DIRECT), **off}
        return await judge(
            engine,
            dataset,
            ablated=off,
            model=embedder.model.name,
            baselines=await baselines_of(dataset, shared, on_progress),
            seed=request.seed,
            by=request.by,
            without_gold=request.without_gold,
            on_progress=on_progress,
        )


@asynccontextmanager
async def open_disk_cached(settings: Settings, on_progress: OnProgress) -> AsyncIterator[Embedder]:
    """Open the service's model. Vectors are cached in the user's data folder, as those of a gateway."""
    own = load_gateway_settings()
    async with open_embedder(settings) as model:
        if own.search_no_cache:
            yield model
        else:
            store = VectorStore(own.data_folder / "cache" / "eval", model.model)
            yield DiskCachedEmbedder(model, store, on_progress)


@asynccontextmanager
async def _connected(settings: Settings, strategy: Strategy) -> AsyncIterator[Collections]:
    """Open collections under a unique alias: concurrent evaluations must not share them."""
    alias = f"eval_{uuid.uuid4().hex[:12]}"
    async with connect_qdrant(settings, timeout_seconds=300) as connected:
        items = QdrantIndexes(connected, alias, item_layout(settings))
        skills = QdrantIndexes(connected, f"{alias}__skills", skill_layout(settings))
        yield Collections(items, None if strategy is Strategy.DIRECT else skills)
