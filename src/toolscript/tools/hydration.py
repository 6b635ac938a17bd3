"""The last stage: fields and schemas of what is returned, at the same time."""

import asyncio
from collections.abc import Mapping, Sequence

from toolscript.core.items import ItemKind, Schemas
from toolscript.core.retrieval.deadline import Part
from toolscript.tools.context import Asked
from toolscript.tools.item_stage import Scored
from toolscript.tools.model.answer import ToolHit
from toolscript.tools.payload_cache import PointMemory, Remembered, Revisions
from toolscript.tools.ports import Catalog


class DetailStage:
    def __init__(self, memory: PointMemory, catalog: Catalog) -> None:
        self._memory = memory
        self._catalog = catalog

    async def hits(
        self, asked: Asked, best: Sequence[Scored], revisions: Revisions, *, schemas: bool
    ) -> list[ToolHit]:
        if not best:
            return []
        ids = [one.id for one in best]
        with asked.spans.span("search.enrich"):
            read, loaded = await asyncio.gather(
                self._memory.read_or_known(asked.attempt, {id_: revisions[id_] for id_ in ids}),
                self._schemas(asked, ids if schemas else ()),
            )
        # An item that was removed a moment ago has no fields any more.
        found = [one for one in best if one.id in read]
        return [_hit(one, read[one.id], loaded.get(one.id, Schemas())) for one in found]

    async def _schemas(self, asked: Asked, ids: Sequence[int]) -> Mapping[int, Schemas]:
        nothing: Mapping[int, Schemas] = {}
        return await asked.attempt.or_else(Part.SCHEMAS, self._catalog.schemas(ids), nothing) if ids else nothing


def _hit(scored: Scored, remembered: Remembered, schemas: Schemas) -> ToolHit:
    fields = remembered.fields
    primary = fields.get("primary_skill_id")
    return ToolHit(
        id=scored.id,
        kind=ItemKind(str(fields["type"])),
        server=str(fields["server"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=min(1.0, max(0.0, scored.score)),
        skill_ids=remembered.skill_ids,
        primary_skill_id=None if primary is None else str(primary),
        schemas=schemas,
        confidence=scored.confidence,
    )
