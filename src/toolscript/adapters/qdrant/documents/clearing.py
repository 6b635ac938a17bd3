"""Removes what one tenant has in a shard, page by page: one request for millions would end at its deadline."""

import secrets
from collections.abc import Sequence
from typing import Any

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.documents.ids import passage_id, point_id
from toolscript.adapters.qdrant.documents.payload import GONE, VERSION
from toolscript.adapters.qdrant.documents.tenant_points import EVERYTHING, Span, TenantPoints, among
from toolscript.adapters.qdrant.values import to_value
from toolscript.model.document_points import PassageId
from toolscript.model.progress import OnProgress, Progress

PAGE = 500
# Pages more than there were at first, for what is written meanwhile: whoever writes without end is not waited for.
MORE = 20


async def clear(points: TenantPoints, on_progress: OnProgress) -> int:
    """Answers how many there were."""
    total = await points.count(EVERYTHING, exact=True)
    removed = 0
    for _ in range(total // PAGE + MORE):
        page = await points.scroll(EVERYTHING, PAGE, fields=[VERSION])
        if not page:
            break
        await points.remove_versions([_all_of(page)])
        removed += len(page)
        on_progress(Progress("passages removed", removed, max(total, removed)))
    return removed


async def hands_on(shared: TenantPoints, own: TenantPoints) -> bool:
    """Whether what is done to the shared shard is still done to the own one, too.

    No node knows of another how far it is, so it is tried, with something that nobody sees. What the shared shard
    hands on comes before what is put into the own one afterwards.
    """
    first, second = _unseen(), _unseen()
    await shared.put([first], 0)
    await own.put([second], 0)
    handed_on = await own.count(wire.Filter(must=[_these([first])]), exact=True)
    for points in (shared, own):
        await points.remove_versions([])
    return handed_on > 0


def _unseen() -> wire.PointStruct:
    nothing = wire.Vectors(vectors=wire.NamedVectors(vectors={}))
    id_ = point_id(PassageId(secrets.token_hex(12), 0))
    return wire.PointStruct(id=id_, vectors=nothing, payload={GONE: to_value(True)})


async def clear_moved(shared: TenantPoints, own: TenantPoints, on_progress: OnProgress) -> None:
    """What a shared shard still has of a tenant that has its own.

    All of it is in the own shard, or was removed from there since. A node that has heard of the move late may have
    written to the shared one: what is newer there is put into the own one first.
    """
    total = await shared.count(EVERYTHING, exact=True)
    removed = 0
    for _ in range(total // PAGE + MORE):
        page = await shared.scroll(EVERYTHING, PAGE, fields=[VERSION])
        if not page:
            break
        await _put_newer(page, shared, own)
        await shared.remove_versions([_all_of(page)])
        removed += len(page)
        on_progress(Progress("passages removed where they were", removed, max(total, removed)))


async def _put_newer(page: Sequence[Any], shared: TenantPoints, own: TenantPoints) -> None:
    there = await own.scroll(wire.Filter(must=[_these(page)]), len(page), fields=[VERSION])
    versions = {point.id.uuid: _version(point) for point in there}
    newer = [one for one in page if _version(one) > versions.get(one.id.uuid, _version(one))]
    if newer:
        for point in await shared.whole(wire.Filter(must=[_these(newer)]), len(newer)):
            await own.put([point], _version(point))


def _all_of(page: Sequence[Any]) -> Span:
    """What is written while they are removed is newer, and stays."""
    return Span([passage_id(point.id) for point in page], 0, max(_version(point) for point in page))


def _these(page: Sequence[Any]) -> wire.Condition:
    return among(passage_id(point.id) for point in page)


def _version(point: Any) -> int:
    return int(point.payload[VERSION].integer_value)
