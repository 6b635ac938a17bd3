"""Tool search: embed, match skills, ask both arms, rank, cut, load what is returned; one deadline for all."""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from toolscript.core.retrieval.deadline import IsOverloaded, Part, never_overloaded
from toolscript.core.retrieval.model import Candidates, Vector
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.timings import NO_SPANS, Stages
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights
from toolscript.tools.context import SearchContext, start_background, tell_skills, tell_tools
from toolscript.tools.hydration import HydrationStage
from toolscript.tools.item_stage import Found, ItemStage, Retrieved, Scored, Searched, Verdict, where_of
from toolscript.tools.model.answer import MatchedSkill, SkillAnswer, Timings, ToolAnswer
from toolscript.tools.model.query import SkillQuery, Strategy, ToolQuery
from toolscript.tools.payload_cache import PayloadCache
from toolscript.tools.ports import Catalog
from toolscript.tools.score_scale import reaches
from toolscript.tools.skill_stage import SkillMatching, SkillsOfItems
from toolscript.tools.why_not import Outcome, WhyNotExplainer

NEAR_MISSES = 3
NO_SKILLS_MATCHED = "No skills matched, falling back to unfiltered search"

Vectors = list[Vector] | None

logger = logging.getLogger(__name__)


class ToolSearch:
    def __init__(
        self,
        embedder: Embedder,
        index: Index,
        skills: Index,
        catalog: Catalog,
        *,
        deadline_seconds: float = 10.0,
        weights: RankingWeights = DEFAULT_WEIGHTS,
        spans: Spans = NO_SPANS,
        is_overloaded: IsOverloaded = never_overloaded,
    ) -> None:
        self._embedder = embedder
        self._spans = spans
        self._index = index
        cache = PayloadCache(index)
        self._matching = SkillMatching(skills, index, cache)
        self._items = ItemStage(index, cache, weights)
        self._details = HydrationStage(cache, catalog)
        self._absences = WhyNotExplainer(index)
        self._deadline_seconds = deadline_seconds
        self._is_overloaded = is_overloaded

    async def search(self, query: ToolQuery) -> ToolAnswer:
        facts = {"search_type": query.search_type.value, "strategy": query.strategy.value}
        with self._spans.span("search.execute", product="tools", **facts):
            return await self._searched(query)

    async def _searched(self, query: ToolQuery) -> ToolAnswer:
        context = self._asked(query)
        with start_background(self._skills_by_words(context, query.search_type)) as worded:
            vectors = await self._embed(context)
            context.stages.end("embedding")
            searched = await self._search(context, vectors, worded)
        verdict = await self._items.rank(context, searched.retrieved)
        best = [scored for scored in verdict.scored[: query.limit] if reaches(scored.score, query.threshold)]
        context.stages.end("ranking")
        answer = await self._answer(context, vectors, searched, verdict, best)
        context.attempt.require_something(answer.hits or answer.near_misses)
        return answer

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        """The skill stage alone: of a request for several things, too, one vector is enough."""
        by = query.search_type
        one_vector = SearchType.SEMANTIC if by is SearchType.HYBRID else by
        context = self._asked(ToolQuery(query.text, search_type=one_vector))
        with start_background(self._skills_by_words(context, by)) as worded:
            vectors = await self._embed(context)
            matched = await self._match(context, vectors, await worded, query.limit, query.threshold)
        context.attempt.require_something(matched)
        return SkillAnswer(matched[: query.limit], context.attempt.parts_failed)

    def _asked(self, query: ToolQuery) -> SearchContext:
        return SearchContext.now(query, self._deadline_seconds, self._spans, self._is_overloaded)

    async def _embed(self, context: SearchContext) -> Vectors:
        """One arm alone is asked the text as it is; both are asked for every wish in it."""
        search_type, request = context.query.search_type, context.request
        if search_type is SearchType.KEYWORD:
            return None
        texts = request.texts if search_type is SearchType.HYBRID else (request.text,)
        work = _gathered(self._embedder, texts)
        with context.spans.span("search.embed"):
            embedded = await context.attempt.or_else(Part.EMBEDDING, work, None)
        if embedded is None or search_type is SearchType.SEMANTIC:
            return embedded
        return request.vectors(np.array(embedded))

    async def _search(
        self, context: SearchContext, vectors: Vectors, worded: "asyncio.Task[SkillsOfItems]"
    ) -> Searched:
        """Literal mode has nothing to search with where there is no vector.

        Named skills are the caller's word; else `direct` searches all items, the others by matched skills.
        """
        query = context.query
        if query.search_type is SearchType.SEMANTIC and vectors is None:
            searched = Searched(Retrieved())
        elif query.skill_ids:
            candidate_lists = await self._items.retrieve(context, vectors, where_of(query.kind, query.skill_ids))
            searched = Searched(Retrieved(routed=candidate_lists), filtered_by=query.skill_ids)
        elif query.strategy is Strategy.DIRECT:
            searched = Searched(Retrieved(direct=await self._among_all(context, vectors)))
        else:
            searched = await self._search_by_skills(context, vectors, worded)
        context.stages.end("engine")
        return searched

    async def _search_by_skills(
        self, context: SearchContext, vectors: Vectors, worded: "asyncio.Task[SkillsOfItems]"
    ) -> Searched:
        """What `hybrid` finds among all items is looked for while skills are matched."""
        query, is_hybrid = context.query, context.query.strategy is Strategy.HYBRID
        with start_background(self._among_all(context, vectors) if is_hybrid else _nothing()) as direct:
            skills = await self._match(context, vectors, await worded, query.skill_limit, query.skill_threshold)
            context.stages.end("skills")
            tell_skills(query, skills)
            if not skills:
                logger.warning(NO_SKILLS_MATCHED, extra={"part": Part.SKILLS.value})
                return Searched(Retrieved(await direct if is_hybrid else await self._among_all(context, vectors)))
            ids = tuple(skill.id for skill in skills)
            routed = await self._items.retrieve(context, vectors, where_of(query.kind, ids))
            return Searched(Retrieved(await direct, routed), skills, ids)

    async def _among_all(self, context: SearchContext, vectors: Vectors) -> Found | None:
        return await self._items.retrieve(context, vectors, where_of(context.query.kind))

    async def _skills_by_words(self, context: SearchContext, by: SearchType | None) -> SkillsOfItems:
        """Literal mode knows skills by their vectors alone."""
        if by is SearchType.SEMANTIC or context.query.skill_ids or context.query.strategy is Strategy.DIRECT:
            return ()
        work = self._matching.by_words(context.request, where_of(context.query.kind))
        with context.spans.span("search.skills", by="words"):
            return await context.attempt.or_else(Part.SKILLS, work, ())

    async def _match(
        self, context: SearchContext, vectors: Vectors, worded: SkillsOfItems, limit: int, threshold: float
    ) -> tuple[MatchedSkill, ...]:
        work = self._matching.match(vectors[0] if vectors else None, worded, limit, threshold)
        with context.spans.span("search.skills", by="vector"):
            return await context.attempt.or_else(Part.SKILLS, work, ())

    async def _answer(
        self,
        context: SearchContext,
        vectors: Vectors,
        searched: Searched,
        verdict: Verdict,
        best: Sequence[Scored],
    ) -> ToolAnswer:
        query, scored_items = context.query, best or verdict.scored[:NEAR_MISSES]
        with_schemas = query.include_schemas and bool(best)
        hits = await self._details.hits(context, scored_items, searched.retrieved.revisions, schemas=with_schemas)
        context.stages.end("schemas")
        outcome = Outcome(context, vectors, searched, verdict, tuple(hits) if best else ())
        tell_tools(query, outcome.hits)
        absence = await self._absences.of(outcome) if query.about else None
        whole = searched.retrieved.whole
        return ToolAnswer(
            query=query.text,
            hits=outcome.explained_hits() if query.explain else outcome.hits,
            candidate_count=sum(reaches(scored.score, query.threshold) for scored in verdict.scored),
            search_type_used=_search_type(whole),
            timings=_timings(context.stages),
            degraded=context.attempt.parts_failed,
            index=self._index.card.fingerprint,
            near_misses=() if best else tuple(hits),
            good_match=verdict.good_match,
            unmatched=verdict.unmatched,
            strategy_used=searched.strategy,
            skills=searched.skills,
            skill_ids_used=searched.skill_ids_used,
            unskilled_count=whole.unskilled if searched.retrieved.anything else None,
            absence=absence,
        )


def _timings(stages: Stages) -> Timings:
    spent = stages.spent
    return Timings(
        query_embedding=spent["embedding"],
        skill_search=spent["skills"],
        tool_search=spent["engine"] + spent["ranking"],
        ranking=spent["ranking"],
        schema_load=spent["schemas"],
        total=stages.total(),
    )


async def _nothing() -> None: ...


async def _gathered(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    return list(await asyncio.gather(*map(embedder.embed_query, texts)))


def _search_type(candidates: Candidates) -> str:
    """What really retrieved, which differs from what was asked when an arm failed."""
    if candidates.dense is None and candidates.words is None:
        return "none"
    if candidates.dense is None:
        return SearchType.KEYWORD.value
    return SearchType.SEMANTIC.value if candidates.words is None else SearchType.HYBRID.value
