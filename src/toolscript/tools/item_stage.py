"""The item stage: ask both arms, rank what they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.model import Ask, Candidates, Condition, Vector, Where, type_skills
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.rerank import (
    CANDIDATES_PER_RETRIEVER,
    RERANK_DEPTH,
    FeaturesById,
    FusedScores,
    Ranking,
    fuse_scores,
    rank,
    unmatched_words,
)
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.tools.context import SearchContext
from toolscript.tools.model.answer import MatchedSkill
from toolscript.tools.model.query import Strategy
from toolscript.tools.payload_cache import PayloadCache, revisions_of
from toolscript.tools.score_scale import retriever_scores, scores_of

# What the arms gave for each part of a request, the whole first.
Found = Sequence[Candidates]


@dataclass(frozen=True)
class Retrieved:
    """What was found among all items, and among those of the matched skills; None where nobody looked or could."""

    direct: Found | None = None
    routed: Found | None = None

    @property
    def anything(self) -> bool:
        """Whether anybody could look."""
        return self.direct is not None or self.routed is not None

    @cached_property
    def revisions(self) -> dict[int, int]:
        """Of every point that was found."""
        candidates = [one for candidate_lists in (self.direct, self.routed) for one in candidate_lists or ()]
        retrievers = (arm for one in candidates for arm in (one.dense, one.words) if arm)
        return revisions_of(chain.from_iterable(retrievers))

    @property
    def directly(self) -> frozenset[int] | None:
        """Whom a search of all items has named, where another one may have added to them."""
        if not self.direct or self.routed is None:
            return None
        return self.direct[0].ids.union(*(candidates.ids for candidates in self.direct)) or None

    @property
    def whole(self) -> Candidates:
        """What the arms said of the whole request, where they looked the furthest."""
        candidate_lists = self.direct if self.direct is not None else self.routed
        return candidate_lists[0] if candidate_lists else Candidates()


@dataclass(frozen=True)
class Searched:
    """`skills` are those that matched the query, `filtered_by` those that items were filtered by."""

    retrieved: Retrieved
    skills: tuple[MatchedSkill, ...] = ()
    filtered_by: tuple[str, ...] = ()

    @property
    def strategy(self) -> Strategy:
        """What really ran."""
        if not self.filtered_by or (self.retrieved.routed is None and self.retrieved.direct is not None):
            return Strategy.DIRECT
        return Strategy.HIERARCHICAL if self.retrieved.direct is None else Strategy.HYBRID

    @property
    def skill_ids_used(self) -> tuple[str, ...] | None:
        """None where all items were searched and nothing else."""
        return None if self.strategy is Strategy.DIRECT else self.filtered_by


class Scored(NamedTuple):
    id: int
    score: float
    confidence: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What is said of the whole: None where one arm alone was asked for, which knows no verdict."""

    scored: Sequence[Scored] = ()
    good_match: bool | None = None
    unmatched: tuple[str, ...] = ()
    ranking: Ranking | None = None


class ItemStage:
    def __init__(self, index: Index, cache: PayloadCache, weights: RankingWeights) -> None:
        self._index = index
        self._weights = weights
        self._cache = cache

    async def retrieve(
        self, context: SearchContext, vectors: Sequence[Vector] | None, where: Where
    ) -> Found | None:
        """None when the index fails."""
        query = context.query
        wants_words = query.search_type is not SearchType.SEMANTIC
        parts = context.request.parts if query.search_type is SearchType.HYBRID else context.request.parts[:1]
        asks = [
            Ask(
                vector=vectors[index] if vectors else None,
                terms=part.terms if wants_words else None,
                where=where,
                limit=CANDIDATES_PER_RETRIEVER,
            )
            for index, part in enumerate(parts)
        ]
        with context.spans.span("search.retrieve", limit=CANDIDATES_PER_RETRIEVER):
            return await context.attempt.or_else(Part.INDEX, self._index.search_all(asks), None)

    async def rank(self, context: SearchContext, retrieved: Retrieved) -> Verdict:
        if not retrieved.anything:
            return Verdict()
        with context.spans.span("search.rank"):
            if context.query.search_type is not SearchType.HYBRID:
                return Verdict(_by_one_retriever(retrieved))
            return await self._ranked(context, retrieved)

    async def _ranked(self, context: SearchContext, retrieved: Retrieved) -> Verdict:
        fused = self._look(retrieved)
        context.stages.end("ranking")
        revisions = retrieved.revisions
        wanted = {id_: revisions[id_] for id_ in fused.ids[:RERANK_DEPTH].tolist()}
        read = await self._cache.read_or_known(context.attempt, wanted)
        context.stages.end("engine")
        features = {id_: payload.features for id_, payload in read.items()}
        ranking = rank(context.request, fused, features, self._weights)
        scores = scores_of(ranking, retrieved.whole, retrieved.directly)
        rows = zip(ranking.ids.tolist(), scores, ranking.confidence.tolist(), strict=True)
        unmatched = _unmatched(context.request, features)
        return Verdict(list(map(Scored._make, rows)), ranking.good_match, unmatched, ranking)

    def _look(self, retrieved: Retrieved) -> FusedScores:
        """Who was found among all items stands as there; who was found by skills alone comes after them."""
        looks = [
            fuse_scores(candidate_lists, CANDIDATES_PER_RETRIEVER, self._weights)
            for candidate_lists in (retrieved.direct, retrieved.routed)
            if candidate_lists is not None
        ]
        return looks[0] if len(looks) == 1 else looks[0].followed_by(looks[1])


def where_of(kind: ItemKind | None, skill_ids: Sequence[str] = ()) -> Where:
    """Only active items are in the index, so that needs no filter."""
    if kind and (both := type_skills(kind, skill_ids)):
        return (Condition("type_skill", both),)
    kinds = (Condition("type", (kind.value,)),) if kind else ()
    skills = (Condition("skill_ids", tuple(skill_ids)),) if skill_ids else ()
    return *kinds, *skills


def _by_one_retriever(retrieved: Retrieved) -> list[Scored]:
    """An arm gives an item the same score wherever it looks."""
    scores: dict[int, float] = {}
    for candidate_lists in (retrieved.routed, retrieved.direct):
        scores |= dict(retriever_scores(candidate_lists[0]) if candidate_lists else ())
    return [Scored(*pair) for pair in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]


def _unmatched(request: Request, features: FeaturesById) -> tuple[str, ...]:
    """Of candidates that nothing is known of, nothing can be said."""
    return unmatched_words(request, features.values()) if features else ()
