"""What really stands in the engine, point by point, and what of it is not whole."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.qdrant.values import Payload
from toolscript.core.settings.service import Settings
from toolscript.documents.qdrant.tenant_points import (
    COMPLETE,
    GONE,
    HEAD,
    ID,
    PASSAGES,
    TENANT,
    TEXT,
    VERSION,
    passage_id,
)

PAGE = 1_000


@dataclass
class Standing:
    """The points of one document, by the number of the passage."""

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
        if sorted(self.points) != list(range(self.head[PASSAGES])):
            yield f"{self.head[ID]}: {len(self.points)} passages, and the header says {self.head[PASSAGES]}"


async def everything(settings: Settings) -> dict[tuple[str, str], Standing]:
    """Of all tenants, by tenant and key."""
    found: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
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
                id_ = passage_id(point.id)
                # A mark that a removal was killed beside says nothing, and goes with the next one.
                if GONE not in fields:
                    found[fields[TENANT], id_.key].points[id_.number] = fields
            if not answer.HasField("next_page_offset"):
                return dict(found)
            offset = answer.next_page_offset


def orphans(found: Mapping[tuple[str, str], Standing]) -> list[str]:
    """Passages that no header leads to: of these nobody would ever hear again."""
    return [
        f"{tenant}: passages {sorted(one.points)} without a header"
        for (tenant, _), one in found.items()
        if not one.head.get(HEAD)
    ]


def problems(found: Mapping[tuple[str, str], Standing]) -> list[str]:
    return [f"{tenant}: {problem}" for (tenant, _), one in found.items() for problem in one.problems()]
