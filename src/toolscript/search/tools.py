"""Tool search: embed, ask both arms, rank, cut, and load the fields and schemas of what is returned."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolscript.model.index import Ask, Candidates, Condition, Fields, Where, type_skills
from toolscript.model.items import ItemKind, Schemas
from toolscript.model.models import Vector
from toolscript.model.queries import SearchType, ToolQuery
from toolscript.model.results import Timings, ToolAnswer, ToolHit
from toolscript.ports import Catalog, Embedder, Index
from toolscript.search.deadline import Deadline
from toolscript.search.fallbacks import Attempt, Part
from toolscript.search.ranking import (
    CANDIDATES_PER_ARM,
    DEFAULT_RECIPE,
    LOOKED_AT,
    Recipe,
    Request,
    rank,
    read_request,
    unmatched_words,
)
from toolscript.search.ranking.first_look import FirstLook, first_look
from toolscript.search.ranking.traits import TRAIT_FIELDS, TraitsById, traits_of_fields
from toolscript.search.score_scale import arm_scores, scores_of
from toolscript.search.stages import Stages

NEAR_MISSES = 3


@dataclass(frozen=True)
class _Scored:
    id: int
    score: float
    confidence: float | None = None


@dataclass(frozen=True)
class _Verdict:
    """What is said of the whole: None where one arm alone was asked for, which knows no verdict."""

    scored: Sequence[_Scored]
    good_match: bool | None = None
    unmatched: tuple[str, ...] = ()


class ToolSearch:
    def __init__(
        self,
        embedder: Embedder,
        index: Index,
        catalog: Catalog,
        *,
        deadline_seconds: float = 10.0,
        recipe: Recipe = DEFAULT_RECIPE,
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._catalog = catalog
        self._deadline_seconds = deadline_seconds
        self._recipe = recipe

    async def search(self, query: ToolQuery) -> ToolAnswer:
        stages = Stages()
        attempt = Attempt(Deadline(self._deadline_seconds))
        request = read_request(query.text)
        stages.end("ranking")
        vectors = await self._embed(query, request, attempt)
        stages.end("embedding")
        found = await self._retrieve(query, request, vectors, attempt)
        stages.end("engine")
        verdict = await self._rank(query, request, found, attempt, stages)
        best = [one for one in verdict.scored[: query.limit] if one.score >= query.threshold]
        stages.end("ranking")
        shown = query if best else replace(query, include_schemas=False)
        hits = await self._enrich(shown, best or verdict.scored[:NEAR_MISSES], attempt)
        stages.end("schemas")
        return ToolAnswer(
            query=query.text,
            hits=tuple(hits) if best else (),
            candidate_count=sum(one.score >= query.threshold for one in verdict.scored),
            search_type_used=_search_type(found[0]),
            timings=_timings(stages),
            degraded=tuple(part.value for part in attempt.failed),
            index=self._index.card.fingerprint,
            near_misses=() if best else tuple(hits),
            good_match=verdict.good_match,
            unmatched=verdict.unmatched,
        )

    async def _embed(self, query: ToolQuery, request: Request, attempt: Attempt) -> list[Vector] | None:
        """One arm alone is asked the text as it is; both are asked for every wish in it."""
        if query.search_type is SearchType.KEYWORD:
            return None
        texts = request.texts if query.search_type is SearchType.HYBRID else (request.text,)
        work = _gathered(self._embedder, texts)
        embedded = await attempt.or_else(Part.EMBEDDING, work, None)
        if embedded is None or query.search_type is SearchType.SEMANTIC:
            return embedded
        return request.vectors(np.array(embedded))

    async def _retrieve(
        self, query: ToolQuery, request: Request, vectors: list[Vector] | None, attempt: Attempt
    ) -> list[Candidates]:
        """What the arms say of each part of the request, the whole first."""
        wants_words = query.search_type is not SearchType.SEMANTIC or vectors is None
        parts = request.parts if query.search_type is SearchType.HYBRID else request.parts[:1]
        asks = [
            Ask(
                vector=vectors[at] if vectors else None,
                terms=part.terms if wants_words else None,
                where=_where(query),
                limit=CANDIDATES_PER_ARM,
            )
            for at, part in enumerate(parts)
        ]
        nothing = [Candidates()]
        return await attempt.or_else(Part.INDEX, _searched(self._index, asks), nothing)

    async def _rank(
        self, query: ToolQuery, request: Request, found: list[Candidates], attempt: Attempt, stages: Stages
    ) -> _Verdict:
        if query.search_type is not SearchType.HYBRID:
            return _Verdict([_Scored(*pair) for pair in arm_scores(found[0])])
        if Part.INDEX in attempt.failed:
            return _Verdict(())
        look = first_look(found, CANDIDATES_PER_ARM, self._recipe)
        stages.end("ranking")
        traits = await self._traits(look, attempt)
        stages.end("engine")
        ranking = rank(request, look, traits, self._recipe)
        scores = scores_of(ranking, found[0])
        rows = zip(ranking.ids.tolist(), scores, ranking.confidence.tolist(), strict=True)
        scored = [_Scored(*row) for row in rows]
        return _Verdict(scored, ranking.good_match, _unmatched(request, traits))

    async def _traits(self, look: FirstLook, attempt: Attempt) -> TraitsById:
        ids = look.ids[:LOOKED_AT].tolist()
        nothing: Mapping[int, Fields] = {}
        if not ids:
            return {}
        fields = await attempt.or_else(Part.INDEX, self._index.fields(ids, TRAIT_FIELDS), nothing)
        return {id_: traits_of_fields(one) for id_, one in fields.items()}

    async def _enrich(self, query: ToolQuery, best: Sequence[_Scored], attempt: Attempt) -> list[ToolHit]:
        """Fields and schemas of what is returned, at the same time."""
        if not best:
            return []
        ids = [one.id for one in best]
        no_fields: Mapping[int, Fields] = {}
        no_schemas: Mapping[int, Schemas] = {}
        fields, schemas = await asyncio.gather(
            attempt.or_else(Part.INDEX, self._index.fields(ids), no_fields),
            attempt.or_else(Part.SCHEMAS, self._schemas(query, ids), no_schemas),
        )
        # An item that was removed a moment ago has no fields any more.
        found = [one for one in best if one.id in fields]
        return [_hit(one, fields[one.id], schemas.get(one.id, Schemas())) for one in found]

    async def _schemas(self, query: ToolQuery, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return await self._catalog.schemas(ids) if query.include_schemas else {}


def _unmatched(request: Request, traits: TraitsById) -> tuple[str, ...]:
    """Of candidates that nothing is known of, nothing can be said."""
    return unmatched_words(request, traits.values()) if traits else ()


def _timings(stages: Stages) -> Timings:
    spent = stages.spent
    return Timings(
        query_embedding=spent["embedding"],
        tool_search=spent["engine"] + spent["ranking"],
        ranking=spent["ranking"],
        schema_load=spent["schemas"],
        total=stages.total(),
    )


async def _gathered(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    return list(await asyncio.gather(*map(embedder.embed_query, texts)))


async def _searched(index: Index, asks: Sequence[Ask]) -> list[Candidates]:
    return list(await asyncio.gather(*map(index.search, asks)))


def _where(query: ToolQuery) -> Where:
    """Only active items are in the index, so that needs no filter."""
    if query.kind and (both := type_skills(query.kind, query.skill_ids)):
        return (Condition("type_skill", both),)
    kind = (Condition("type", (query.kind.value,)),) if query.kind else ()
    skills = (Condition("skill_ids", query.skill_ids),) if query.skill_ids else ()
    return *kind, *skills


def _hit(scored: _Scored, fields: Fields, schemas: Schemas) -> ToolHit:
    skills = fields.get("skill_ids")
    primary = fields.get("primary_skill_id")
    return ToolHit(
        id=scored.id,
        kind=ItemKind(str(fields["type"])),
        server=str(fields["server"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=min(1.0, max(0.0, scored.score)),
        skill_ids=tuple(map(str, skills)) if isinstance(skills, Sequence) else (),
        primary_skill_id=None if primary is None else str(primary),
        schemas=schemas,
        confidence=scored.confidence,
    )


def _search_type(candidates: Candidates) -> str:
    """What really retrieved, which differs from what was asked when an arm failed."""
    if candidates.dense is None and candidates.words is None:
        return "none"
    if candidates.dense is None:
        return SearchType.KEYWORD.value
    return SearchType.SEMANTIC.value if candidates.words is None else SearchType.HYBRID.value
