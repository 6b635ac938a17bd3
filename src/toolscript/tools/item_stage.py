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
    CANDIDATES_PER_ARM,
    LOOKED_AT,
    FirstLook,
    Ranking,
    TraitsById,
    first_look,
    rank,
    unmatched_words,
)
from toolscript.core.retrieval.weights import Recipe
from toolscript.tools.context import Asked
from toolscript.tools.model.answer import MatchedSkill
from toolscript.tools.model.query import Strategy
from toolscript.tools.payload_cache import PointMemory, revisions_of
from toolscript.tools.score_scale import arm_scores, scores_of

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
        candidates = [one for found in (self.direct, self.routed) for one in found or ()]
        arms = (arm for one in candidates for arm in (one.dense, one.words) if arm)
        return revisions_of(chain.from_iterable(arms))

    @property
    def directly(self) -> frozenset[int] | None:
        """Whom a search of all items has named, where another one may have added to them."""
        if not self.direct or self.routed is None:
            return None
        return self.direct[0].ids.union(*(one.ids for one in self.direct)) or None

    @property
    def whole(self) -> Candidates:
        """What the arms said of the whole request, where they looked the furthest."""
        found = self.direct if self.direct is not None else self.routed
        return found[0] if found else Candidates()


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
    def __init__(self, index: Index, memory: PointMemory, recipe: Recipe) -> None:
        self._index = index
        self._recipe = recipe
        self._memory = memory

    async def retrieve(self, asked: Asked, vectors: Sequence[Vector] | None, where: Where) -> Found | None:
        """None when the index fails."""
        query = asked.query
        wants_words = query.search_type is not SearchType.SEMANTIC
        parts = asked.request.parts if query.search_type is SearchType.HYBRID else asked.request.parts[:1]
        asks = [
            Ask(
                vector=vectors[at] if vectors else None,
                terms=part.terms if wants_words else None,
                where=where,
                limit=CANDIDATES_PER_ARM,
            )
            for at, part in enumerate(parts)
        ]
        with asked.spans.span("search.retrieve", limit=CANDIDATES_PER_ARM):
            return await asked.attempt.or_else(Part.INDEX, self._index.search_all(asks), None)

    async def rank(self, asked: Asked, retrieved: Retrieved) -> Verdict:
        if not retrieved.anything:
            return Verdict()
        with asked.spans.span("search.rank"):
            if asked.query.search_type is not SearchType.HYBRID:
                return Verdict(_by_one_arm(retrieved))
            return await self._ranked(asked, retrieved)

    async def _ranked(self, asked: Asked, retrieved: Retrieved) -> Verdict:
        look = self._look(retrieved)
        asked.stages.end("ranking")
        revisions = retrieved.revisions
        wanted = {id_: revisions[id_] for id_ in look.ids[:LOOKED_AT].tolist()}
        read = await self._memory.read_or_known(asked.attempt, wanted)
        asked.stages.end("engine")
        traits = {id_: one.traits for id_, one in read.items()}
        ranking = rank(asked.request, look, traits, self._recipe)
        scores = scores_of(ranking, retrieved.whole, retrieved.directly)
        rows = zip(ranking.ids.tolist(), scores, ranking.confidence.tolist(), strict=True)
        unmatched = _unmatched(asked.request, traits)
        return Verdict(list(map(Scored._make, rows)), ranking.good_match, unmatched, ranking)

    def _look(self, retrieved: Retrieved) -> FirstLook:
        """Who was found among all items stands as there; who was found by skills alone comes after them."""
        looks = [
            first_look(found, CANDIDATES_PER_ARM, self._recipe)
            for found in (retrieved.direct, retrieved.routed)
            if found is not None
        ]
        return looks[0] if len(looks) == 1 else looks[0].followed_by(looks[1])


def where_of(kind: ItemKind | None, skill_ids: Sequence[str] = ()) -> Where:
    """Only active items are in the index, so that needs no filter."""
    if kind and (both := type_skills(kind, skill_ids)):
        return (Condition("type_skill", both),)
    kinds = (Condition("type", (kind.value,)),) if kind else ()
    skills = (Condition("skill_ids", tuple(skill_ids)),) if skill_ids else ()
    return *kinds, *skills


def _by_one_arm(retrieved: Retrieved) -> list[Scored]:
    """An arm gives an item the same score wherever it looks."""
    scores: dict[int, float] = {}
    for found in (retrieved.routed, retrieved.direct):
        scores |= dict(arm_scores(found[0]) if found else ())
    return [Scored(*pair) for pair in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]


def _unmatched(request: Request, traits: TraitsById) -> tuple[str, ...]:
    """Of candidates that nothing is known of, nothing can be said."""
    return unmatched_words(request, traits.values()) if traits else ()
