"""A small collection as a whole, vectors and all."""

import numpy as np

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant, translated
from toolscript.adapters.qdrant.layout import DENSE
from toolscript.adapters.qdrant.values import Payload
from toolscript.model.index import KeptPoint


async def whole(qdrant: Qdrant, name: str, most: int) -> list[KeptPoint] | None:
    request = wire.ScrollPoints(
        collection_name=name,
        limit=most + 1,
        with_payload=wire.WithPayloadSelector(enable=True),
        with_vectors=wire.WithVectorsSelector(include=wire.VectorsSelector(names=[DENSE])),
    )
    with translated():
        page = await qdrant.points.Scroll(request, timeout=qdrant.timeout_seconds)
    return [_kept(point) for point in page.result] if len(page.result) <= most else None


def _kept(point: wire.RetrievedPoint) -> KeptPoint:
    stored = point.vectors.vectors.vectors[DENSE]
    fields = {field: value for field, value in Payload(point.payload).items() if field != "version"}
    return KeptPoint(point.id.num, np.array(stored.dense.data or stored.data, dtype=np.float32), fields)
