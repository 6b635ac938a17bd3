"""Points that are stored in the engine, and documents that are incomplete."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.qdrant.values import Payload
from toolscript.core.settings.service import Settings
from toolscript.documents.qdrant.tenant_points import (
    CHUNKS,
    COMPLETE,
    GONE,
    HEAD,
    ID,
    TENANT,
    TEXT,
    VERSION,
    chunk_id_of,
)

PAGE = 1_000


@dataclass
class Standing:
    """Points of one document, by chunk number."""

    points: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(str(self.points[number][TEXT]) for number in sorted(self.points))

    @property
    def head(self) -> Mapping[str, Any]:
        return self.points.get(0, {})

    def problems(self) -> Iterator[str]:
        if not self.head.get(HEAD):
            yield f"passages {sorted(self.points)} without a header"
            return
        versions = {point[VERSION] for point in self.points.values()}
        if len(versions) > 1:
            yield f"{self.head[ID]}: passages of {len(versions)} versions"
        if not self.head[COMPLETE]:
            yield f"{self.head[ID]}: the header is not complete"
        if sorted(self.points) != list(range(self.head[CHUNKS])):
            yield f"{self.head[ID]}: {len(self.points)} passages, and the header says {self.head[CHUNKS]}"


async def everything(settings: Settings) -> dict[tuple[str, str], Standing]:
    """Return the documents of all tenants, by tenant and key."""
    result: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
    async with open_qdrant(settings.qdrant_url, settings.qdrant_grpc_port) as engine:
        offset = None
        while True:
            request = wire.ScrollPoints(
                collection_name=settings.qdrant_documents_alias,
                limit=PAGE,
                offset=offset,
                with_payload=wire.WithPayloadSelector(enable=True),
            )
            answer = await engine.points.Scroll(request)
            for point in answer.result:
                fields: Mapping[str, Any] = dict(Payload(point.payload).items())
                id_ = chunk_id_of(point.id)
                # A leftover mark of a killed removal is harmless; the next removal deletes it.
                if GONE not in fields:
                    result[fields[TENANT], id_.key].points[id_.number] = fields
            if not answer.HasField("next_page_offset"):
                return dict(result)
            offset = answer.next_page_offset


def orphans(found: Mapping[tuple[str, str], Standing]) -> list[str]:
    """Return chunks without a header: no request would ever find them."""
    return [
        f"{tenant}: passages {sorted(item.points)} without a header"
        for (tenant, _), item in found.items()
        if not item.head.get(HEAD)
    ]


def problems(found: Mapping[tuple[str, str], Standing]) -> list[str]:
    return [f"{tenant}: {problem}" for (tenant, _), item in found.items() for problem in item.problems()]
