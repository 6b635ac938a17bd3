"""The last stage: fields and schemas of what is returned, at the same time."""

import asyncio
from collections.abc import Mapping, Sequence

from toolscript.model.index import Fields
from toolscript.model.items import ItemKind, Schemas
from toolscript.model.results import ToolHit
from toolscript.ports import Catalog, Index
from toolscript.search.asked import Asked
from toolscript.search.fallbacks import Part
from toolscript.search.item_stage import Scored


class DetailStage:
    def __init__(self, index: Index, catalog: Catalog) -> None:
        self._index = index
        self._catalog = catalog

    async def hits(self, asked: Asked, best: Sequence[Scored], *, schemas: bool) -> list[ToolHit]:
        if not best:
            return []
        ids = [one.id for one in best]
        no_fields: Mapping[int, Fields] = {}
        fields, loaded = await asyncio.gather(
            asked.attempt.or_else(Part.INDEX, self._index.fields(ids), no_fields),
            self._schemas(asked, ids if schemas else ()),
        )
        # An item that was removed a moment ago has no fields any more.
        found = [one for one in best if one.id in fields]
        return [_hit(one, fields[one.id], loaded.get(one.id, Schemas())) for one in found]

    async def _schemas(self, asked: Asked, ids: Sequence[int]) -> Mapping[int, Schemas]:
        nothing: Mapping[int, Schemas] = {}
        return await asked.attempt.or_else(Part.SCHEMAS, self._catalog.schemas(ids), nothing) if ids else nothing


def skills_of(fields: Fields) -> tuple[str, ...]:
    skills = fields.get("skill_ids")
    return tuple(map(str, skills)) if isinstance(skills, Sequence) else ()


def _hit(scored: Scored, fields: Fields, schemas: Schemas) -> ToolHit:
    primary = fields.get("primary_skill_id")
    return ToolHit(
        id=scored.id,
        kind=ItemKind(str(fields["type"])),
        server=str(fields["server"]),
        name=str(fields["name"]),
        description=str(fields["description"]),
        score=min(1.0, max(0.0, scored.score)),
        skill_ids=skills_of(fields),
        primary_skill_id=None if primary is None else str(primary),
        schemas=schemas,
        confidence=scored.confidence,
    )
