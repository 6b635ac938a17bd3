"""Hydration, the last stage: load payloads and schemas of the returned items concurrently.

The schemas of an item are cached with the revision of its point, as its payload is: whatever changes them makes
the worker write the point again. Popular items are returned again and again; PostgreSQL is asked for the others.
"""

import asyncio
from collections.abc import Mapping, Sequence

from toolscript.core.items import ItemKind, Schemas
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.cache import TtlCache
from toolscript.core.retrieval.deadline import Part
from toolscript.tools.context import SearchContext
from toolscript.tools.item_stage import ScoredItem
from toolscript.tools.model.answer import ToolHit
from toolscript.tools.payload_cache import CACHE_SECONDS, CachedPayload, PayloadCache, Revisions
from toolscript.tools.ports import Catalog

# Schemas take more memory than payloads: a kilobyte of JSON is about ten of Python's objects. Large ones are not
# kept.
CACHED_SCHEMAS, MAX_CACHED = 2_000, 4_096


class SchemaCache:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._kept = TtlCache[int, tuple[int, Schemas]](CACHED_SCHEMAS, CACHE_SECONDS)

    def cached(self, revisions: Revisions) -> dict[int, Schemas]:
        """Return the schemas that are cached with these revisions."""
        entries = self._kept.get_all(revisions)
        return {id_: schemas for id_, (revision, schemas) in entries.items() if revision == revisions[id_]}

    async def read(self, revisions: Revisions) -> Mapping[int, Schemas]:
        """Return the schemas of all items that still exist. What is read is never older than the point found."""
        cached = self.cached(revisions)
        missing = [id_ for id_ in revisions if id_ not in cached]
        if not missing:
            return cached
        read = await self._catalog.schemas(missing)
        kept = {
            id_: schemas for id_, schemas in read.items() if revisions[id_] and len(str(schemas)) <= MAX_CACHED
        }
        self._kept.put({id_: (revisions[id_], schemas) for id_, schemas in kept.items()})
        return {**cached, **read}


class HydrationStage:
    def __init__(self, cache: PayloadCache, catalog: Catalog) -> None:
        self._cache = cache
        self._schemas = SchemaCache(catalog)

    async def hits(
        self,
        context: SearchContext,
        groups: Sequence[Sequence[ScoredItem]],
        revisions: Revisions,
        *,
        schemas: bool,
    ) -> list[tuple[ToolHit, ...]]:
        """Return the hits of each group. An item may be in several, with another score in each."""
        ids = list(dict.fromkeys(scored.id for group in groups for scored in group))
        if not ids:
            return [() for _ in groups]
        with context.spans.span("search.enrich"):
            read, loaded = await asyncio.gather(
                self._cache.read_or_cached(context.attempt, {id_: revisions[id_] for id_ in ids}),
                self._read_schemas(context, {id_: revisions[id_] for id_ in ids} if schemas else {}),
            )
        # An item that was removed a moment ago has no payload any more.
        return [
            tuple(
                _hit(scored, read[scored.id], loaded.get(scored.id, Schemas()))
                for scored in group
                if scored.id in read
            )
            for group in groups
        ]

    async def _read_schemas(self, context: SearchContext, revisions: Revisions) -> Mapping[int, Schemas]:
        """Return the schemas; when the catalog fails, only cached ones."""
        cached: Mapping[int, Schemas] = self._schemas.cached(revisions)
        if len(cached) == len(revisions):
            return cached
        return await context.attempt.or_else(Part.SCHEMAS, self._schemas.read(revisions), cached)


def _hit(scored: ScoredItem, cached: CachedPayload, schemas: Schemas) -> ToolHit:
    fields = cached.fields
    primary = fields.get("primary_skill_id")
    return ToolHit(
        id=scored.id,
        kind=ItemKind(str(fields["type"])),
        server=str(fields["server"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=min(1.0, max(0.0, scored.score)),
        skill_ids=cached.skill_ids,
        primary_skill_id=None if primary is None else str(primary),
        schemas=schemas,
        confidence=scored.confidence,
        namespace=str(fields.get("namespace", DEFAULT_NAMESPACE)),
    )
