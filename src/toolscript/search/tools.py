"""Tool search: embed once, ask both arms, fuse, cut, and load the fields and schemas of what is returned."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from toolscript.model.index import Ask, Candidates, Condition, Fields, Where, type_skills
from toolscript.model.items import ItemKind, Schemas
from toolscript.model.models import Vector
from toolscript.model.queries import SearchType, ToolQuery
from toolscript.model.results import Timings, ToolAnswer, ToolHit
from toolscript.model.words import query_terms
from toolscript.ports import Catalog, Embedder, Index
from toolscript.search.deadline import Deadline
from toolscript.search.fallbacks import Attempt, Part
from toolscript.search.fusion import Ranked, fuse

CANDIDATES_PER_ARM = 100


class ToolSearch:
    def __init__(
        self, embedder: Embedder, index: Index, catalog: Catalog, *, deadline_seconds: float = 10.0
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._catalog = catalog
        self._deadline_seconds = deadline_seconds

    async def search(self, query: ToolQuery) -> ToolAnswer:
        clock = _Clock()
        attempt = Attempt(Deadline(self._deadline_seconds))
        vector = await self._embed(query, attempt)
        embedding_ms = clock.lap()
        candidates = await self._retrieve(query, vector, attempt)
        ranked = fuse(candidates, CANDIDATES_PER_ARM)
        best = [one for one in ranked[: query.limit] if one.score >= query.threshold]
        search_ms = clock.lap()
        hits = await self._enrich(query, best, attempt)
        timings = Timings(
            query_embedding=embedding_ms,
            tool_search=search_ms,
            schema_load=clock.lap(),
            total=clock.total(),
        )
        return ToolAnswer(
            query=query.text,
            hits=tuple(hits),
            candidate_count=sum(one.score >= query.threshold for one in ranked),
            search_type_used=_search_type(candidates),
            timings=timings,
            degraded=tuple(part.value for part in attempt.failed),
            index=self._index.card.fingerprint,
        )

    async def _embed(self, query: ToolQuery, attempt: Attempt) -> Vector | None:
        if query.search_type is SearchType.KEYWORD:
            return None
        return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(query.text), None)

    async def _retrieve(self, query: ToolQuery, vector: Vector | None, attempt: Attempt) -> Candidates:
        wants_words = query.search_type is not SearchType.SEMANTIC or vector is None
        ask = Ask(
            vector=vector,
            terms=query_terms(query.text) if wants_words else None,
            where=_where(query),
            limit=CANDIDATES_PER_ARM,
        )
        return await attempt.or_else(Part.INDEX, self._index.search(ask), Candidates())

    async def _enrich(self, query: ToolQuery, best: Sequence[Ranked], attempt: Attempt) -> list[ToolHit]:
        """Fields and schemas of what is returned, at the same time."""
        if not best:
            return []
        ids = [one.candidate.id for one in best]
        no_fields: Mapping[int, Fields] = {}
        no_schemas: Mapping[int, Schemas] = {}
        fields, schemas = await asyncio.gather(
            attempt.or_else(Part.INDEX, self._index.fields(ids), no_fields),
            attempt.or_else(Part.SCHEMAS, self._schemas(query, ids), no_schemas),
        )
        # An item that was removed a moment ago has no fields any more.
        found = [one for one in best if one.candidate.id in fields]
        return [_hit(one, fields[one.candidate.id], schemas.get(one.candidate.id, Schemas())) for one in found]

    async def _schemas(self, query: ToolQuery, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return await self._catalog.schemas(ids) if query.include_schemas else {}


class _Clock:
    """Milliseconds since the last lap, and since the start."""

    def __init__(self) -> None:
        self._started = self._lapped = time.perf_counter()

    def lap(self) -> float:
        before, self._lapped = self._lapped, time.perf_counter()
        return (self._lapped - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._started) * 1000


def _where(query: ToolQuery) -> Where:
    """Only active items are in the index, so that needs no filter."""
    if query.kind and (both := type_skills(query.kind, query.skill_ids)):
        return (Condition("type_skill", both),)
    kind = (Condition("type", (query.kind.value,)),) if query.kind else ()
    skills = (Condition("skill_ids", query.skill_ids),) if query.skill_ids else ()
    return *kind, *skills


def _hit(ranked: Ranked, fields: Fields, schemas: Schemas) -> ToolHit:
    skills = fields.get("skill_ids")
    primary = fields.get("primary_skill_id")
    return ToolHit(
        id=ranked.candidate.id,
        kind=ItemKind(str(fields["type"])),
        server=str(fields["server"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=min(1.0, max(0.0, ranked.score)),
        skill_ids=tuple(map(str, skills)) if isinstance(skills, Sequence) else (),
        primary_skill_id=None if primary is None else str(primary),
        schemas=schemas,
    )


def _search_type(candidates: Candidates) -> str:
    """What really retrieved, which differs from what was asked when an arm failed."""
    if candidates.dense is None and candidates.words is None:
        return "none"
    if candidates.dense is None:
        return SearchType.KEYWORD.value
    return SearchType.SEMANTIC.value if candidates.words is None else SearchType.HYBRID.value
