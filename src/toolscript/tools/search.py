"""Tool search: embed, match skills, retrieve, rank, apply the threshold, hydrate; one deadline for all stages."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from toolscript.core.namespaces import ordered
from toolscript.core.retrieval.cache import TtlCache
from toolscript.core.retrieval.curation import NO_CURATION, Curation
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.language import unknown_language_hint
from toolscript.core.retrieval.model import Candidates, IndexQuery, Vector
from toolscript.core.retrieval.namespaced import DEFAULT_ONLY
from toolscript.core.retrieval.ports import Embedder, GroupedEmbedder, IndexReader, IndexViews, Spans
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.rerank import STEP_HITS
from toolscript.core.retrieval.spelling import Vocabulary, corrections_of
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.core.retrieval.timings import NO_SPANS, Stages
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights, as_guess
from toolscript.tools.context import SearchContext, log_skills, log_tools, start_background
from toolscript.tools.curation import CurationCopy
from toolscript.tools.hydration import HydrationStage
from toolscript.tools.item_stage import (
    CandidateLists,
    ItemCandidates,
    ItemStage,
    RankedItems,
    RankedStep,
    RetrievalResult,
    ScoredItem,
    where_of,
)
from toolscript.tools.model.answer import (
    LOWER_THRESHOLD,
    OTHER_WORDS,
    MatchedSkill,
    SkillAnswer,
    Timings,
    ToolAnswer,
    ToolHit,
    ToolStep,
)
from toolscript.tools.model.query import SkillQuery, Strategy, ToolQuery
from toolscript.tools.payload_cache import CACHE_SIZE, PayloadCache
from toolscript.tools.ports import CurationRules, ItemLookup
from toolscript.tools.score_scale import count_reaching, reaches
from toolscript.tools.skill_stage import SkillMatching, SkillsOfItems
from toolscript.tools.why_not import Outcome, WhyNotExplainer

NEAR_MISSES = 3
# Namespaces, or sets of them, whose searches are kept besides that of the default one, and their cached payloads.
MAX_OTHERS, OTHER_CACHE_SIZE = 32, 2_000
MULTILINGUAL_REMEDY = ", or index with TOOLSCRIPT_EMBEDDING_MODEL=multilingual (`toolscript reindex`)"
# An index reads its vocabulary again after minutes; for so long it need not even be asked for it.
VOCABULARY_SECONDS = 5.0
NO_SKILLS_MATCHED = "No skills matched, falling back to unfiltered search"

Vectors = list[Vector] | None

logger = logging.getLogger(__name__)


class ToolSearch:
    """Searches in the namespaces that a query names. Each set of namespaces has its own stages and caches."""

    def __init__(
        self,
        embedder: Embedder,
        index: IndexViews,
        skills: IndexViews,
        catalog: ItemLookup,
        *,
        deadline_seconds: float = 10.0,
        weights: RankingWeights = DEFAULT_WEIGHTS,
        spans: Spans = NO_SPANS,
        scale: CosineScale | None = None,
        curation: CurationRules | None = None,
    ) -> None:
        self._index = index
        self._skills = skills
        self._curation = curation
        self._parts = SearchParts(embedder, catalog, weights, weights.version, deadline_seconds, spans, scale)
        self._default = self._open(DEFAULT_ONLY, CACHE_SIZE)
        self._others = OrderedDict[tuple[str, ...], SearchWithin]()

    async def search(self, query: ToolQuery) -> ToolAnswer:
        facts = {"search_type": query.search_type.value, "strategy": query.strategy.value}
        with self._parts.spans.span("search.execute", product="tools", **facts):
            return await self._within(query.namespaces).search(query)

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        """Run the skill stage alone. It embeds the whole query only, not its sub-queries."""
        return await self._within(query.namespaces).skills(query)

    def forget_rules(self) -> None:
        """Let the next search read the rules of people again, after a write."""
        for search in (self._default, *self._others.values()):
            search.forget_rules()

    def _within(self, namespaces: tuple[str, ...]) -> "SearchWithin":
        if namespaces == DEFAULT_ONLY:
            return self._default
        key = ordered(namespaces)
        search = self._others.get(key) or self._open(key, OTHER_CACHE_SIZE)
        self._others[key] = search
        self._others.move_to_end(key)
        while len(self._others) > MAX_OTHERS:
            self._others.popitem(last=False)
        return search

    def _open(self, namespaces: tuple[str, ...], cache_size: int) -> "SearchWithin":
        index, skills = self._index.within(namespaces), self._skills.within(namespaces)
        rules = None if self._curation is None else CurationCopy(self._curation, namespaces)
        parts = self._parts
        if isinstance(parts.embedder, GroupedEmbedder):
            parts = replace(parts, embedder=parts.embedder.within(namespaces))
        return SearchWithin(parts, index, skills, namespaces, cache_size, rules)


@dataclass(frozen=True)
class SearchParts:
    """What the searches of all namespaces share."""

    embedder: Embedder
    catalog: ItemLookup
    weights: RankingWeights
    weights_version: str
    deadline_seconds: float
    spans: Spans
    scale: CosineScale | None


class SearchWithin:
    """The search in some namespaces, which knows nothing of others."""

    def __init__(
        self,
        parts: SearchParts,
        index: IndexReader,
        skills: IndexReader,
        namespaces: tuple[str, ...],
        cache_size: int,
        rules: CurationCopy | None = None,
    ) -> None:
        self._parts = parts
        self._index = index
        self._skill_index = skills
        self._namespaces = namespaces
        self._rules = rules
        self._vocabularies = TtlCache[tuple[str, ...], Vocabulary](1, VOCABULARY_SECONDS)
        cache = PayloadCache(index, cache_size)
        self._matching = SkillMatching(skills, index, namespaces)
        self._items = ItemStage(index, cache, parts.weights, parts.scale)
        self._details = HydrationStage(cache, parts.catalog, cache_size)
        self._why_not = WhyNotExplainer(index, parts.catalog)

    async def search(self, query: ToolQuery) -> ToolAnswer:
        context = await self._read(self._context(query), query.search_type)
        with start_background(self._skills_by_words(context, query.search_type)) as by_words:
            vectors = await self._embed(context)
            context.stages.end("embedding")
            retrieval = await self._search(context, vectors, by_words)
        retrieval = await self._without_removed(context, retrieval)
        ranked = await self._items.rank(context, retrieval.candidates)
        best = [scored for scored in ranked.items[: query.limit] if reaches(scored.score, query.threshold)]
        context.stages.end("ranking")
        answer = await self._answer(context, vectors, retrieval, ranked, best)
        found = answer.hits or answer.near_misses or answer.absence
        context.attempt.require_found(found, Part.INDEX, Part.EMBEDDING)
        return answer

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        by = query.search_type
        one_vector = SearchType.SEMANTIC if by is SearchType.HYBRID else by
        context = await self._read(self._context(ToolQuery(query.text, search_type=one_vector)), by)
        with start_background(self._skills_by_words(context, by)) as by_words:
            vectors = await self._embed(context)
            matched = await self._match(context, vectors, await by_words, query.limit, query.threshold)
        context.attempt.require_found(matched, Part.SKILLS, Part.EMBEDDING)
        return SkillAnswer(
            matched[: query.limit],
            context.attempt.parts_failed,
            _search_type(dense=vectors is not None, sparse=by is not SearchType.SEMANTIC),
            context.stages.total(),
            self._skill_index.card.fingerprint,
        )

    def forget_rules(self) -> None:
        if self._rules is not None:
            self._rules.forget()

    def _context(self, query: ToolQuery) -> SearchContext:
        parts = self._parts
        return SearchContext.now(query, parts.deadline_seconds, parts.spans)

    async def _read(self, context: SearchContext, by: SearchType | None) -> SearchContext:
        """Apply the rules of people, and correct spelling. Literal mode (`semantic`) corrects nothing."""
        curation = NO_CURATION if self._rules is None else await self._rules.get(context.attempt)
        if curation.rules:
            context = context.read(curation.is_about)
        if by is not SearchType.SEMANTIC and self._may_be_misspelt(context.request.text):
            work = self._corrections(context.request.text, curation, by_words=by is SearchType.KEYWORD)
            with context.spans.span("search.spelling"):
                if corrections := await context.attempt.or_else(Part.SPELLING, work, {}):
                    context = context.corrected(corrections)
            context.stages.end("engine")
        return context.curated(curation)

    def _may_be_misspelt(self, text: str) -> bool:
        """Most requests have no unknown word. The vocabulary of the last seconds tells so without a task."""
        vocabulary = self._vocabularies.get(self._namespaces)
        return vocabulary is None or vocabulary.has_unknown(text)

    async def _corrections(self, text: str, curation: Curation, *, by_words: bool) -> Mapping[str, str]:
        """Return the misspelt words. The vocabulary is that of a sample: whether it only lacks a word that the
        catalog has, the index itself says."""
        vocabulary = await self._index.vocabulary()
        self._vocabularies.put({self._namespaces: vocabulary})
        if not vocabulary.has_unknown(text):
            return {}
        # A word is compared with thousands.
        scale = None if by_words else self._parts.scale
        found = curation.unless_known(await asyncio.to_thread(corrections_of, text, vocabulary, scale))
        asks = [IndexQuery(terms=dict.fromkeys(terms_of_word(word), 1.0), limit=1) for word in found]
        answers = await self._index.search_all(asks) if asks else ()
        return {word: found[word] for word, answer in zip(found, answers, strict=True) if not answer.words}

    async def _embed(self, context: SearchContext) -> Vectors:
        """Embed the query text for `semantic`; for `hybrid`, also every sub-query in it."""
        search_type, request = context.query.search_type, context.request
        if search_type is SearchType.KEYWORD:
            return None
        texts = request.texts if search_type is SearchType.HYBRID else (request.text,)
        work = _embed_all(self._parts.embedder, texts)
        with context.spans.span("search.embed"):
            embedded = await context.attempt.or_else(Part.EMBEDDING, work, None)
        if embedded is None or search_type is SearchType.SEMANTIC:
            return embedded
        return request.vectors(np.array(embedded))

    async def _search(
        self, context: SearchContext, vectors: Vectors, by_words: "asyncio.Task[SkillsOfItems]"
    ) -> RetrievalResult:
        """Retrieve items by skills that the client names, among all items (`direct`), or by matched skills.

        Literal mode (`semantic`) cannot search without a vector.
        """
        query = context.query
        if query.search_type is SearchType.SEMANTIC and vectors is None:
            retrieval = RetrievalResult(ItemCandidates())
        elif query.skill_ids:
            where = where_of(query.kind, query.skill_ids, query.servers)
            candidate_lists = await self._items.retrieve(context, vectors, where)
            retrieval = RetrievalResult(ItemCandidates(routed=candidate_lists), filtered_by=query.skill_ids)
        elif query.strategy is Strategy.DIRECT:
            retrieval = RetrievalResult(ItemCandidates(direct=await self._search_all(context, vectors)))
        else:
            retrieval = await self._search_by_skills(context, vectors, by_words)
        if context.promoted:
            retrieval = retrieval.with_promoted(await self._items.promoted(context))
        context.stages.end("engine")
        return retrieval

    async def _without_removed(self, context: SearchContext, retrieval: RetrievalResult) -> RetrievalResult:
        """Leave out what the catalog has removed: a worker takes it out of the index a little later."""
        if not (ids := list(retrieval.candidates.revisions)):
            return retrieval
        nothing = frozenset[int]()
        with context.spans.span("search.removed"):
            removed = await context.attempt.or_else(Part.CATALOG, self._parts.catalog.removed(ids), nothing)
        context.stages.end("engine")
        return replace(retrieval, candidates=retrieval.candidates.without(removed)) if removed else retrieval

    async def _search_by_skills(
        self, context: SearchContext, vectors: Vectors, by_words: "asyncio.Task[SkillsOfItems]"
    ) -> RetrievalResult:
        """Route by matched skills; `hybrid` searches all items at the same time."""
        query, is_hybrid = context.query, context.query.strategy is Strategy.HYBRID
        with start_background(self._search_all(context, vectors)) if is_hybrid else nullcontext() as direct:
            skills = await self._match(context, vectors, await by_words, query.skill_limit, query.skill_threshold)
            context.stages.end("skills")
            log_skills(query, skills)
            if not skills:
                logger.warning(NO_SKILLS_MATCHED, extra={"part": Part.SKILLS.value})
                return RetrievalResult(
                    ItemCandidates(await direct if direct else await self._search_all(context, vectors))
                )
            ids = tuple(skill.id for skill in skills)
            routed = await self._items.retrieve(context, vectors, where_of(query.kind, ids, query.servers))
            return RetrievalResult(ItemCandidates(await direct if direct else None, routed), skills, ids)

    async def _search_all(self, context: SearchContext, vectors: Vectors) -> CandidateLists | None:
        query = context.query
        return await self._items.retrieve(context, vectors, where_of(query.kind, servers=query.servers))

    async def _skills_by_words(self, context: SearchContext, by: SearchType | None) -> SkillsOfItems:
        """Match skills by words. Literal mode (`semantic`) matches skills by vector only."""
        query = context.query
        if by is SearchType.SEMANTIC or query.skill_ids or query.strategy is Strategy.DIRECT:
            return ()
        work = self._matching.by_words(context.request, where_of(query.kind, servers=query.servers))
        with context.spans.span("search.skills", by="words"):
            return await context.attempt.or_else(Part.SKILLS, work, ())

    async def _match(
        self, context: SearchContext, vectors: Vectors, by_words: SkillsOfItems, limit: int, threshold: float
    ) -> tuple[MatchedSkill, ...]:
        vector, steps = vectors[0] if vectors else None, len(context.request.subqueries)
        work = self._matching.match(vector, by_words, limit, threshold, steps)
        with context.spans.span("search.skills", by="vector"):
            return await context.attempt.or_else(Part.SKILLS, work, ())

    async def _answer(
        self,
        context: SearchContext,
        vectors: Vectors,
        retrieval: RetrievalResult,
        ranked: RankedItems,
        best: Sequence[ScoredItem],
    ) -> ToolAnswer:
        query, scored_items = context.query, best or _guesses(ranked)
        of_steps = [_best_of_step(step, query) or _guesses(step) for step in ranked.steps]
        with_schemas = query.include_schemas and bool(best or any(_best_of_step(s, query) for s in ranked.steps))
        hits, *step_hits = await self._details.hits(
            context, [scored_items, *of_steps], retrieval.candidates.revisions, schemas=with_schemas
        )
        context.stages.end("schemas")
        outcome = Outcome(context, vectors, retrieval, ranked, hits if best else ())
        log_tools(query, outcome.hits)
        return ToolAnswer(
            query=query.text,
            hits=outcome.explained_hits() if query.explain else outcome.hits,
            candidate_count=count_reaching(ranked.scores, query.threshold),
            search_type_used=_search_type_of(retrieval.candidates.whole),
            timings=_timings(context.stages),
            degraded=context.attempt.parts_failed,
            index=self._index.card.fingerprint,
            near_misses=() if best else hits,
            good_match=ranked.good_match and bool(best),
            fit=ranked.fit,
            unmatched=ranked.unmatched,
            steps=tuple(_tool_step(*step, query) for step in zip(ranked.steps, step_hits, strict=True)),
            strategy_used=retrieval.strategy,
            skills=retrieval.skills,
            skill_ids_used=retrieval.skill_ids_used,
            unskilled_count=retrieval.candidates.whole.unskilled if retrieval.candidates.anything else None,
            absence=await self._why_not.of(outcome) if query.about else None,
            weights_version=self._parts.weights_version if query.search_type is SearchType.HYBRID else None,
            rules=context.rules if query.explain else None,
            hint=self._hint(ranked, found=bool(best)),
            corrected=context.request.corrections,
            read_as=context.read_as,
        )

    def _hint(self, ranked: RankedItems, *, found: bool) -> str | None:
        language = None if ranked.ranking is None else ranked.ranking.unknown_language
        if language is not None:
            return unknown_language_hint(language, self._parts.embedder.model.name, MULTILINGUAL_REMEDY)
        if ranked.good_match is None or not ranked.items:
            return None
        if not ranked.good_match:
            return OTHER_WORDS
        return None if found else LOWER_THRESHOLD


def _best_of_step(step: RankedStep, query: ToolQuery) -> list[ScoredItem]:
    first = step.items[: min(query.limit, STEP_HITS)]
    return [scored for scored in first if reaches(scored.score, query.threshold)]


def _guesses(ranked: RankedItems | RankedStep) -> Sequence[ScoredItem]:
    """Return the nearest items where none reaches the threshold. Even what fits is a guess then, by its confidence
    as well."""
    nearest = ranked.items[:NEAR_MISSES]
    if not ranked.good_match:
        return nearest
    return [
        scored if scored.confidence is None else scored._replace(confidence=as_guess(scored.confidence))
        for scored in nearest
    ]


def _tool_step(step: RankedStep, hits: tuple[ToolHit, ...], query: ToolQuery) -> ToolStep:
    """Return the step with its hits, or with guesses where none reaches the threshold."""
    if _best_of_step(step, query):
        return ToolStep(step.query, hits, step.good_match and bool(hits))
    return ToolStep(step.query, (), good_match=False, near_misses=hits)


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


async def _embed_all(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    if len(texts) == 1:
        # Most requests: no task of its own for the one text.
        return [await embedder.embed_query(texts[0])]
    return list(await asyncio.gather(*map(embedder.embed_query, texts)))


def _search_type_of(candidates: Candidates) -> str:
    return _search_type(dense=candidates.dense is not None, sparse=candidates.words is not None)


def _search_type(*, dense: bool, sparse: bool) -> str:
    """Return the retrievers that answered, which differ from the requested ones when one failed."""
    if not (dense or sparse):
        return "none"
    if not dense:
        return SearchType.KEYWORD.value
    return SearchType.HYBRID.value if sparse else SearchType.SEMANTIC.value
