"""The service's search as an engine that can be judged, in collections of its own that are dropped afterwards."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from toolscript.errors import SetupError
from toolscript.evaluation.metrics import DEPTH
from toolscript.evaluation.tokens import answer_tokens, count_if_possible
from toolscript.model.items import Item
from toolscript.model.judged import Given, Route
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, silent
from toolscript.model.queries import Strategy, ToolQuery
from toolscript.model.results import Timings, ToolAnswer
from toolscript.model.tool_ids import tool_id
from toolscript.ports import Catalog, Embedder
from toolscript.search.ranking import DEFAULT_RECIPE, Recipe
from toolscript.search.tools import ToolSearch
from toolscript.service.judged_points import Collections, JudgedPoints
from toolscript.service.judged_skills import ItemsBySkill

SERVICE = "service"


@dataclass(frozen=True)
class Asking:
    """How the search is asked."""

    strategy: Strategy = Strategy.DIRECT
    recipe: Recipe = DEFAULT_RECIPE


@asynccontextmanager
async def service_engine(
    collections: Collections,
    embedder: Embedder,
    catalog: Catalog,
    asking: Asking | None = None,
    on_progress: OnProgress = silent,
) -> AsyncIterator["ServiceEngine"]:
    card = IndexCard(embedder.model)
    async with AsyncExitStack() as stack:
        for indexes in filter(None, (collections.items, collections.skills)):
            await indexes.create(card)
            stack.push_async_callback(indexes.drop, card.fingerprint)
        points = JudgedPoints(collections, embedder, on_progress)
        yield ServiceEngine(points, embedder, catalog, asking or Asking())


class ServiceEngine:
    name = SERVICE

    def __init__(self, points: JudgedPoints, embedder: Embedder, catalog: Catalog, asking: Asking) -> None:
        self._points = points
        self._embedder = embedder
        self._catalog = catalog
        self._asking = asking
        self._count = count_if_possible()
        self._search: ToolSearch | None = None
        self._by_skill: ItemsBySkill | None = None

    def with_recipe(self, recipe: Recipe) -> "ServiceEngine":
        """Another ranking of the same points."""
        return self._asked(replace(self._asking, recipe=recipe))

    def with_strategy(self, strategy: Strategy) -> "ServiceEngine":
        """Another way to the same points."""
        return self._asked(replace(self._asking, strategy=strategy))

    def _asked(self, asking: Asking) -> "ServiceEngine":
        return ServiceEngine(self._points, self._embedder, self._catalog, asking)

    async def load(self, items: Sequence[Item]) -> None:
        loaded = await self._points.load(items)
        recipe, self._by_skill = self._asking.recipe, loaded.by_skill
        self._search = ToolSearch(self._embedder, loaded.items, loaded.skills, self._catalog, recipe=recipe)

    async def answer(self, query: str) -> Given:
        if self._search is None:
            raise SetupError("nothing is loaded yet")
        strategy = self._asking.strategy
        asked = ToolQuery(query, limit=DEPTH, threshold=0.0, strategy=strategy, include_schemas=False)
        answer = await self._search.search(asked)
        if answer.degraded:
            raise SetupError(
                f"a part failed while it was measured: {', '.join(answer.degraded)}", hint="try again"
            )
        return self._given(answer)

    def _given(self, answer: ToolAnswer) -> Given:
        """What the service's answer says, in the judge's words."""
        shown = [
            {"tool": tool_id(hit.server, hit.name), "description": hit.description}
            for hit in answer.hits[: ToolQuery.limit]
        ]
        route = None if self._by_skill is None else _route(answer, self._by_skill)
        return Given(
            tuple(self._points.key_of(hit.id) for hit in answer.hits),
            answer.hits[0].confidence if answer.hits else None,
            answer.good_match,
            _stages(answer.timings, with_skills=route is not None),
            answer_tokens(shown, self._count),
            route,
        )


def _route(answer: ToolAnswer, by_skill: ItemsBySkill) -> Route:
    """`hybrid` goes by skills too, and searches all items beside."""
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
