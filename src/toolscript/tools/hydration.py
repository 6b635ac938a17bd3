"""Hydration, the last stage: load payloads and schemas of the returned items concurrently.

The schemas of an item are cached with the revision of its point, as its payload is: whatever changes them makes
the worker write the point again. Popular items are returned again and again; PostgreSQL is asked for the others.
"""

import asyncio
from collections.abc import Mapping, Sequence

from toolscript.core.items import ItemKind, Schemas
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.deadline import Part
from toolscript.tools.context import SearchContext
from toolscript.tools.item_stage import ScoredItem
from toolscript.tools.model.answer import ToolHit
from toolscript.tools.payload_cache import CachedPayload, PayloadCache, RevisionCache, Revisions
from toolscript.tools.ports import ItemLookup

# Schemas take more memory than payloads: a kilobyte of JSON is about ten of Python's objects. The cache has this
# share of the entries that the one of payloads has, and large ones are not kept.
SHARE_OF_PAYLOADS, MAX_CACHED = 0.2, 4_096


class SchemaCache(RevisionCache[Schemas]):
    part = Part.SCHEMAS

    def __init__(self, catalog: ItemLookup, payloads: int) -> None:
        super().__init__(int(SHARE_OF_PAYLOADS * payloads))
        self._catalog = catalog

    async def _load(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return await self._catalog.schemas(ids)

    def _keeps(self, value: Schemas) -> bool:
        return len(str(value)) <= MAX_CACHED


class HydrationStage:
    """`cache_size` is that of the payloads."""

    def __init__(self, cache: PayloadCache, catalog: ItemLookup, cache_size: int) -> None:
        self._cache = cache
        self._schemas = SchemaCache(catalog, cache_size)

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
        returned = {id_: revisions[id_] for id_ in ids}
        with context.spans.span("search.enrich"):
            payloads = self._cache.read_or_cached(context.attempt, returned)
            of_hits = self._schemas.read_or_cached(context.attempt, returned if schemas else {})
            if self._cache.has_all(returned):
                # As nearly always, for they were just ranked: one thing to wait for needs no task.
                read, loaded = await payloads, await of_hits
            else:
                read, loaded = await asyncio.gather(payloads, of_hits)
        # An item that was removed a moment ago has no payload any more.
        return [
            tuple(
                _hit(scored, read[scored.id], loaded.get(scored.id, Schemas()))
                for scored in group
                if scored.id in read
            )
            for group in groups
        ]


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
