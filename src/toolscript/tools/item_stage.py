"""The item stage: query both retrievers and rank their candidates."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple, overload

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.curation import Tool
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.fusion import CANDIDATES_PER_RETRIEVER, FusedScores, fuse_scores
from toolscript.core.retrieval.model import (
    Candidate,
    Candidates,
    Condition,
    Fields,
    IndexQuery,
    Vector,
    Where,
    type_skills,
)
from toolscript.core.retrieval.ports import IndexReader
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.rerank import (
    RERANK_DEPTH,
    FeaturesById,
    RankedCandidates,
    rank,
)
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.tools.context import SearchContext
from toolscript.tools.model.answer import MatchedSkill
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.payload_cache import PayloadCache, revisions_of, skills_of
from toolscript.tools.score_scale import retriever_scores, scores_of

# The payload fields that the filters of a request compare.
FILTERED_FIELDS = ("type", "server", "skill_ids")

# The candidates of each part of a request: the whole query first, then its sub-queries.
CandidateLists = Sequence[Candidates]


@dataclass(frozen=True)
class ItemCandidates:
    """The candidate lists of both searches: among all items, and among items of matched skills.

    None if the search failed or did not run. `promoted` are items that a rule puts first, in a list or not.
    """

    direct: CandidateLists | None = None
    routed: CandidateLists | None = None
    promoted: tuple[int, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether any search succeeded."""
        return self.direct is not None or self.routed is not None

    @cached_property
    def revisions(self) -> dict[int, int]:
        """The revision of every candidate's point, by id; 0 if it is not known, which no cached payload has."""
        all_candidates = [candidates for lists in (self.direct, self.routed) for candidates in lists or ()]
        hit_lists = (hits for candidates in all_candidates for hits in (candidates.dense, candidates.words))
        retrieved = revisions_of(chain.from_iterable(hits for hits in hit_lists if hits))
        return {**dict.fromkeys(self.promoted, 0), **retrieved} if self.promoted else retrieved

    def without(self, removed: Container[int]) -> "ItemCandidates":
        """Return the candidates as if the index did not have the removed items."""

        def kept(lists: CandidateLists | None) -> CandidateLists | None:
            return None if lists is None else [_without(candidates, removed) for candidates in lists]

        promoted = tuple(id_ for id_ in self.promoted if id_ not in removed)
        return ItemCandidates(kept(self.direct), kept(self.routed), promoted)

    @property
    def directly(self) -> frozenset[int] | None:
        """Ids from the unfiltered search; None if there was no second, filtered one."""
        if not self.direct or self.routed is None:
            return None
        return self.direct[0].ids.union(*(candidates.ids for candidates in self.direct)) or None

    @property
    def whole(self) -> Candidates:
        """The candidates of the whole query, from the widest search that ran."""
        candidate_lists = self.direct if self.direct is not None else self.routed
        return candidate_lists[0] if candidate_lists else Candidates()


@dataclass(frozen=True)
class RetrievalResult:
    """The item candidates, the `skills` that matched the query, and those that items were filtered by."""

    candidates: ItemCandidates
    skills: tuple[MatchedSkill, ...] = ()
    filtered_by: tuple[str, ...] = ()

    def with_promoted(self, ids: tuple[int, ...]) -> "RetrievalResult":
        return replace(self, candidates=replace(self.candidates, promoted=ids))

    @property
    def strategy(self) -> Strategy:
        """The strategy that actually ran."""
        if not self.filtered_by or (self.candidates.routed is None and self.candidates.direct is not None):
            return Strategy.DIRECT
        return Strategy.HIERARCHICAL if self.candidates.direct is None else Strategy.HYBRID

    @property
    def skill_ids_used(self) -> tuple[str, ...] | None:
        """The skills whose items were searched; None for a direct search of all items."""
        return None if self.strategy is Strategy.DIRECT else self.filtered_by


class ScoredItem(NamedTuple):
    """A candidate with its score on the scale of the cosine."""

    id: int
    score: float
    confidence: float | None = None


class ScoredItems(Sequence[ScoredItem]):
    """Scored items as columns: of hundreds, few are needed as objects."""

    def __init__(self, ids: list[int], scores: list[float], confidences: list[float]) -> None:
        self.ids = ids
        self.scores = scores
        self.confidences = confidences

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[ScoredItem]:
        return map(ScoredItem, self.ids, self.scores, self.confidences)

    @overload
    def __getitem__(self, place: int) -> ScoredItem: ...
    @overload
    def __getitem__(self, place: slice) -> "ScoredItems": ...
    def __getitem__(self, place: int | slice) -> "ScoredItem | ScoredItems":
        if isinstance(place, slice):
            return ScoredItems(self.ids[place], self.scores[place], self.confidences[place])
        return ScoredItem(self.ids[place], self.scores[place], self.confidences[place])


@dataclass(frozen=True)
class RankedStep:
    """The best scored items for one step of a request for several things, and whether any fits."""

    query: str
    items: Sequence[ScoredItem]
    good_match: bool


@dataclass(frozen=True)
class RankedItems:
    """The scored items, best first, the ranked candidates that they come from, and the same for each step.

    `ranking` is None when a single retriever was requested. Vectors alone then give no verdict: `good_match` is
    None. `fit` is the logit of the verdict.
    """

    items: Sequence[ScoredItem] = ()
    good_match: bool | None = None
    unmatched: tuple[str, ...] = ()
    ranking: RankedCandidates | None = None
    steps: tuple[RankedStep, ...] = ()
    fit: float | None = None

    @property
    def scores(self) -> Sequence[float]:
        items = self.items
        return items.scores if isinstance(items, ScoredItems) else [scored.score for scored in items]


class ItemStage:
    def __init__(
        self, index: IndexReader, cache: PayloadCache, weights: RankingWeights, scale: CosineScale | None
    ) -> None:
        self._index = index
        self._weights = weights
        self._scale = scale
        self._cache = cache

    async def retrieve(
        self, context: SearchContext, vectors: Sequence[Vector] | None, where: Where
    ) -> CandidateLists | None:
        """Return the candidates, or None when the index fails."""
        query = context.query
        wants_words = query.search_type is not SearchType.SEMANTIC
        limit = CANDIDATES_PER_RETRIEVER + len(context.excluded)
        parts = context.request.parts if query.search_type is SearchType.HYBRID else context.request.parts[:1]
        asks = [
            IndexQuery(
                vector=vectors[index] if vectors else None,
                terms=part.terms if wants_words else None,
                where=where,
                limit=limit,
            )
            for index, part in enumerate(parts)
        ]
        with context.spans.span("search.retrieve", limit=limit):
            candidate_lists = await context.attempt.or_else(Part.INDEX, self._index.search_all(asks), None)
        if candidate_lists is None:
            return None
        if self._scale and vectors:
            candidate_lists = self._scale.with_baselines(candidate_lists, vectors)
        if not context.excluded:
            return candidate_lists
        return [_without(candidates, context.excluded) for candidates in candidate_lists]

    async def promoted(self, context: SearchContext) -> tuple[int, ...]:
        """Return the promoted items that are in the index and pass the filters of the request."""
        ids = [id_ for id_ in context.promoted if isinstance(id_, int)]
        nothing: Mapping[int, Fields] = {}
        work = self._index.fields(ids, FILTERED_FIELDS)
        payloads = await context.attempt.or_else(Part.INDEX, work, nothing)
        return tuple(id_ for id_ in ids if id_ in payloads and _passes(payloads[id_], context.query))

    async def rank(self, context: SearchContext, candidates: ItemCandidates) -> RankedItems:
        if not candidates.anything:
            return RankedItems()
        with context.spans.span("search.rank"):
            if context.query.search_type is SearchType.HYBRID:
                return await self._fuse_and_rerank(context, candidates)
            ranked = RankedItems(_promoted_first(_by_one_retriever(candidates), candidates.promoted))
            if context.query.search_type is SearchType.SEMANTIC:
                return ranked
            return await self._judge_by_words(context, candidates, ranked)

    async def _judge_by_words(
        self, context: SearchContext, candidates: ItemCandidates, ranked: RankedItems
    ) -> RankedItems:
        """Add the verdict of words to a keyword search, whose order and scores stay; none without a payload."""
        fused = self._fuse(candidates)
        features = await self._features(context, candidates, fused)
        if not features and len(fused.ids):
            return ranked
        ranking = rank(context.request, fused, features, self._weights)
        good_match = ranking.good_match or bool(candidates.promoted)
        return replace(ranked, good_match=good_match, unmatched=ranking.unmatched, fit=ranking.fit)

    async def _fuse_and_rerank(self, context: SearchContext, candidates: ItemCandidates) -> RankedItems:
        fused = self._fuse(candidates)
        features = await self._features(context, candidates, fused)
        items, ranking = self._rerank(context.request, candidates, fused, features)
        steps = []
        for step, fused_step in zip(context.steps, fused.steps, strict=True):
            promoted = tuple(id_ for id_ in candidates.promoted if id_ in step.promoted)
            of_step = ItemCandidates(direct=[fused_step.whole], promoted=promoted)
            step_items, ranked_step = self._rerank(step.request, of_step, fused_step, features)
            steps.append(RankedStep(step.request.typed, step_items, ranked_step.good_match))
        # If no payload could be read, no word is known to be missing.
        unmatched = ranking.unmatched if features else ()
        return RankedItems(items, ranking.good_match, unmatched, ranking, tuple(steps), ranking.fit)

    async def _features(
        self, context: SearchContext, candidates: ItemCandidates, fused: FusedScores
    ) -> FeaturesById:
        """Return the features of the candidates to rerank, those of the steps too; without what cannot be read."""
        context.stages.end("ranking")
        revisions = candidates.revisions
        of_features = chain(fused.ids[:RERANK_DEPTH], *(step.ids for step in fused.steps))
        to_rerank = {int(id_): revisions[int(id_)] for id_ in of_features}
        payloads = await self._cache.read_or_cached(context.attempt, to_rerank)
        context.stages.end("engine")
        return {id_: payload.features for id_, payload in payloads.items()}

    def _rerank(
        self,
        request: Request,
        candidates: ItemCandidates,
        fused: FusedScores,
        features: FeaturesById,
    ) -> tuple[Sequence[ScoredItem], RankedCandidates]:
        """Return the items with their scores, and the ranking that they come from; promoted ones are first."""
        ranking = rank(request, fused, features, self._weights, self._scale)
        scores = scores_of(ranking, candidates.whole, candidates.directly)
        items = ScoredItems(ranking.ids.tolist(), scores, ranking.confidence.tolist())
        if not candidates.promoted:
            return items, ranking
        return _promoted_first(items, candidates.promoted), ranking.promoted(candidates.promoted)

    def _fuse(self, candidates: ItemCandidates) -> FusedScores:
        """Keep the order of the search among all items; items found only by skills come after them."""
        fused = [
            fuse_scores(candidate_lists, CANDIDATES_PER_RETRIEVER, self._weights, candidates.promoted)
            for candidate_lists in (candidates.direct, candidates.routed)
            if candidate_lists is not None
        ]
        return fused[0] if len(fused) == 1 else fused[0].followed_by(fused[1])


def _without(candidates: Candidates, excluded: Container[Tool] | Container[int]) -> Candidates:
    """Return the candidates as if the catalog did not have the excluded items."""

    def kept(hits: Sequence[Candidate] | None) -> Sequence[Candidate] | None:
        if hits is None:
            return None
        return [hit for hit in hits if hit.id not in excluded][:CANDIDATES_PER_RETRIEVER]

    return replace(candidates, dense=kept(candidates.dense), words=kept(candidates.words))


def _passes(fields: Fields, query: ToolQuery) -> bool:
    if query.kind is not None and fields["type"] != query.kind.value:
        return False
    if query.servers and fields["server"] not in query.servers:
        return False
    return not query.skill_ids or not set(query.skill_ids).isdisjoint(skills_of(fields))


def _promoted_first(items: Sequence[ScoredItem], promoted: Sequence[int]) -> list[ScoredItem]:
    """Move promoted items to the front, in the order that they have, and with the highest score."""
    places = {scored.id: place for place, scored in enumerate(items)}
    first = sorted(promoted, key=lambda id_: places.get(id_, len(items)))
    rest = [scored for scored in items if scored.id not in promoted]
    has_confidence = bool(items) and items[0].confidence is not None
    return [*(ScoredItem(id_, 1.0, 1.0 if has_confidence else None) for id_ in first), *rest]


def where_of(kind: ItemKind | None, skill_ids: Sequence[str] = (), servers: Sequence[str] = ()) -> Where:
    """Return the filter for kind, skills and servers. The index holds active items only: they need no filter."""
    of_servers = (Condition("server", tuple(servers)),) if servers else ()
    if kind and (both := type_skills(kind, skill_ids)):
        return Condition("type_skill", both), *of_servers
    kinds = (Condition("type", (kind.value,)),) if kind else ()
    skills = (Condition("skill_ids", tuple(skill_ids)),) if skill_ids else ()
    return *kinds, *skills, *of_servers


def _by_one_retriever(candidates: ItemCandidates) -> list[ScoredItem]:
    """Merge both searches: a retriever gives an item the same score with and without a filter."""
    scores: dict[int, float] = {}
    for candidate_lists in (candidates.routed, candidates.direct):
        scores |= dict(retriever_scores(candidate_lists[0]) if candidate_lists else ())
    return [ScoredItem(*pair) for pair in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]
