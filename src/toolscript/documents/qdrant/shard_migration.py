"""Moves a tenant to a shard of its own while clients search and write; deletes a tenant page by page.

The engine copies. Meanwhile writes go to the shared shard, which forwards them. When the copy is complete, all
nodes first read from the own shard, then write to it alone. The points that remain in the shared shard are unused,
and are removed. Each step checks the current state, so a run that was killed can be repeated.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, IndexUnavailable, NotFound, SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.qdrant.values import to_value
from toolscript.core.retrieval.results import ChunkId
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.shards import (
    ClusterView,
    Copy,
    Stage,
    ask,
    cluster_view,
    make_key,
    own_key,
    shared_key,
)
from toolscript.documents.qdrant.tenant_points import (
    EVERYTHING,
    GONE,
    TENANT,
    VERSION,
    Span,
    TenantPoints,
    among,
    chunk_id_of,
    point_id,
)

PAGE = 500
# Extra pages for writes during the deletion. The limit ends it even if a client never stops writing.
MORE = 20
ATTEMPTS = 3

logger = logging.getLogger(__name__)


async def clear(points: TenantPoints, on_progress: OnProgress) -> int:
    """Remove all points; return how many were removed."""
    total = await points.count(EVERYTHING, exact=True)
    removed = 0
    for _ in range(total // PAGE + MORE):
        page = await points.scroll(EVERYTHING, PAGE, fields=[VERSION])
        if not page:
            break
        await points.remove_versions([_up_to_newest(page)])
        removed += len(page)
        on_progress(Progress("chunks removed", removed, max(total, removed)))
    return removed


async def forwards_writes(shared: TenantPoints, own: TenantPoints) -> bool:
    """Return whether the shared shard still forwards writes to the own one.

    A node does not know the state of the others, so this tries it with invisible points. Forwarded writes arrive
    before a later write to the own shard.
    """
    first, second = _invisible_point(), _invisible_point()
    await shared.put([first], 0)
    await own.put([second], 0)
    forwarded = await own.count(wire.Filter(must=[_ids_of([first])]), exact=True)
    for points in (shared, own):
        await points.remove_versions([])
    return forwarded > 0


def _invisible_point() -> wire.PointStruct:
    nothing = wire.Vectors(vectors=wire.NamedVectors(vectors={}))
    id_ = point_id(ChunkId(secrets.token_hex(12), 0))
    return wire.PointStruct(id=id_, vectors=nothing, payload={GONE: to_value(True)})


async def clear_moved(shared: TenantPoints, own: TenantPoints, on_progress: OnProgress) -> None:
    """Remove the remaining points of a moved tenant from the shared shard.

    All of them are in the own shard, or were removed from it since. A node that learned of the move late may have
    written to the shared shard: newer points are first copied to the own shard.
    """
    total = await shared.count(EVERYTHING, exact=True)
    removed = 0
    for _ in range(total // PAGE + MORE):
        page = await shared.scroll(EVERYTHING, PAGE, fields=[VERSION])
        if not page:
            break
        await _put_newer(page, shared, own)
        await shared.remove_versions([_up_to_newest(page)])
        removed += len(page)
        on_progress(Progress("chunks removed from the shared shard", removed, max(total, removed)))


async def _put_newer(page: Sequence[Any], shared: TenantPoints, own: TenantPoints) -> None:
    existing = await own.scroll(wire.Filter(must=[_ids_of(page)]), len(page), fields=[VERSION])
    versions = {point.id.uuid: _version(point) for point in existing}
    newer = [point for point in page if _version(point) > versions.get(point.id.uuid, _version(point))]
    if newer:
        for point in await shared.whole(wire.Filter(must=[_ids_of(newer)]), len(newer)):
            await own.put([point], _version(point))


def _up_to_newest(page: Sequence[Any]) -> Span:
    """Return the points up to their highest version: points written during the removal are newer, and stay."""
    return Span([chunk_id_of(point.id) for point in page], 0, max(_version(point) for point in page))


def _ids_of(page: Sequence[Any]) -> wire.Condition:
    return among(chunk_id_of(point.id) for point in page)


def _version(point: Any) -> int:
    return int(point.payload[VERSION].integer_value)


@dataclass(frozen=True)
class MigrationTimeouts:
    """How often and how long to poll the cluster, and when to give up a copy without a running transfer.

    Nodes learn of a transfer one after another: an early poll may not show it yet.
    """

    look_seconds: float = 0.2
    stalled_seconds: float = 3.0
    max_seconds: float = 6 * 3600.0


class QdrantTenantShards:
    def __init__(
        self, qdrant: Qdrant, collection: str, layout: DocumentLayout, patience: MigrationTimeouts | None = None
    ) -> None:
        self._qdrant = qdrant
        self._collection = collection
        self._layout = layout
        self._patience = patience or MigrationTimeouts()

    async def own_shard(self, tenant: Tenant) -> bool:
        if not self._layout.shards:
            return False
        return (await self._view()).stage(own_key(tenant)) is Stage.READY

    async def passages(self, tenant: Tenant) -> int:
        return await self._points(tenant).count(EVERYTHING, exact=True)

    async def move_to_own_shard(
        self, tenant: Tenant, on_progress: OnProgress = silent, *, anew: bool = False
    ) -> int:
        if not self._layout.shards:
            raise SetupError(
                "there are no shards to move a tenant to",
                hint="it needs a Qdrant cluster, with TOOLSCRIPT_DOCUMENT_SHARDS set before the first document",
            )
        if not await self.own_shard(tenant):
            await self._copy(tenant, on_progress, anew=anew)
        await self._add_copies(tenant, on_progress)
        await self._wait_until_separate(tenant)
        shared, own = self._shared_and_own(tenant)
        await clear_moved(shared, own, on_progress)
        return await own.count(EVERYTHING, exact=True)

    async def erase(self, tenant: Tenant, on_progress: OnProgress = silent) -> int:
        """Remove the own shard last: without it, leftovers in the shared shard would become visible again."""
        if not self._layout.shards:
            return await clear(self._points(tenant), on_progress)
        stage = await self._when_settled(tenant, on_progress, Stage.READY, Stage.ABSENT)
        if stage in (Stage.LEFT, Stage.DEAD):
            await self._drop_own(tenant)
        shared, own = self._shared_and_own(tenant)
        if stage is not Stage.READY:
            return await clear(shared, on_progress)
        await self._wait_until_separate(tenant)
        await clear(shared, on_progress)
        removed = await clear(own, on_progress)
        await self._drop_own(tenant)
        return removed

    async def _copy(self, tenant: Tenant, on_progress: OnProgress, *, anew: bool) -> None:
        before = await self.passages(tenant)
        if not before:
            raise NotFound(f"tenant {tenant} has no documents", hint="`toolscript tenants list` shows the tenants")
        stage = await self._when_settled(tenant, on_progress, Stage.READY, Stage.ABSENT)
        if stage is Stage.DEAD and not anew:
            raise _dead(tenant, before)
        for _ in range(ATTEMPTS):
            if stage is Stage.READY:
                await self._require_copied(tenant, before)
                return
            await self._begin(tenant)
            stage = await self._when_settled(tenant, on_progress, Stage.READY)
        raise IndexUnavailable(
            f"Qdrant gave up copying tenant {tenant}, {ATTEMPTS} times; no data was lost or removed",
            hint="are all nodes of the cluster running, with room on their disks? Then run it again",
        )

    async def _begin(self, tenant: Tenant) -> None:
        """Start a copy into an empty shard: an earlier copy would miss removals made since."""
        if (await self._view()).stage(own_key(tenant)) is not Stage.ABSENT:
            await self._drop_own(tenant)
        # The engine copies into a single replica only; the others are added later.
        empty = wire.CreateShardKey(
            shard_key=own_key(tenant), replication_factor=1, initial_state=wire.ReplicaState.Partial
        )
        await make_key(self._qdrant, self._collection, empty)
        copying = wire.ReplicatePoints(
            from_shard_key=shared_key(tenant, self._layout.shards),
            to_shard_key=own_key(tenant),
            filter=wire.Filter(must=[wire.Condition(field=_is(tenant))]),
        )
        await self._set_up(wire.UpdateCollectionClusterSetupRequest(replicate_points=copying))

    async def _require_copied(self, tenant: Tenant, before: int) -> None:
        """Raise Conflict if more than half is missing: clients may have removed some, but hardly most."""
        copied = await self._points(tenant).in_shard(own_key(tenant)).count(EVERYTHING, exact=True)
        if copied * 2 < before:
            raise Conflict(
                f"of {before} chunks of tenant {tenant} only {copied} are in its own shard; all were kept",
                hint="if the tenant removed them itself, run it again",
            )

    async def _add_copies(self, tenant: Tenant, on_progress: OnProgress) -> None:
        shards = len((await self._view()).ready_by_shard(own_key(tenant)))
        for _ in range(self._layout.replicas * shards):
            view = await self._wait(tenant, on_progress, lambda seen: not seen.is_receiving(own_key(tenant)))
            minimum = min(view.ready_by_shard(own_key(tenant)).values(), key=len)
            if len(minimum) >= self._layout.replicas:
                return
            if minimum:
                await self._add_copy(tenant, view, minimum, on_progress)
        logger.warning(
            "fewer copies of a shard than wanted", extra={"part": "index", "reason": f"tenant {tenant}"}
        )

    async def _add_copy(
        self, tenant: Tenant, view: ClusterView, ready: Sequence[Copy], on_progress: OnProgress
    ) -> None:
        """Add a replica on the node with the fewest shards of the collection."""
        shard = ready[0].shard
        having = {copy.node for copy in view.of(own_key(tenant)) if copy.shard == shard}
        node = next((node for node in view.nodes_by_load() if node not in having), None)
        if node is not None:
            another = wire.ReplicateShard(shard_id=shard, from_peer_id=ready[0].node, to_peer_id=node)
            await self._set_up(wire.UpdateCollectionClusterSetupRequest(replicate_shard=another))
            await self._wait(
                tenant,
                on_progress,
                lambda seen: len(seen.ready_by_shard(own_key(tenant)).get(shard, [])) > len(ready),
            )

    async def _wait_until_separate(self, tenant: Tenant) -> None:
        """Wait until forwarding has ended: the source node may not know yet, and would forward the removals."""
        began = time.monotonic()
        while await forwards_writes(*self._shared_and_own(tenant)):
            await self._pause(tenant, began)

    async def _drop_own(self, tenant: Tenant) -> None:
        gone = wire.DeleteShardKey(shard_key=own_key(tenant))
        await ask(
            self._qdrant,
            "DeleteShardKey",
            wire.DeleteShardKeyRequest(collection_name=self._collection, request=gone),
        )

    async def _when_settled(self, tenant: Tenant, on_progress: OnProgress, *settled: Stage) -> Stage:
        """Wait for one of the `settled` stages; return another stage if no transfer is running."""
        view = await self._wait(tenant, on_progress, lambda seen: seen.stage(own_key(tenant)) in settled)
        return view.stage(own_key(tenant))

    async def _wait(
        self, tenant: Tenant, on_progress: OnProgress, is_done: Callable[[ClusterView], bool]
    ) -> ClusterView:
        """Poll until it is done, or no transfer has been running for a while."""
        began = copying_at = time.monotonic()
        while True:
            view, now = await self._view(), time.monotonic()
            copying_at = now if view.is_receiving(own_key(tenant)) else copying_at
            if is_done(view) or now - copying_at > self._patience.stalled_seconds:
                return view
            on_progress(_copied(view, tenant, now - began))
            await self._pause(tenant, began)

    async def _pause(self, tenant: Tenant, began: float) -> None:
        if time.monotonic() - began > self._patience.max_seconds:
            raise IndexUnavailable(
                f"Qdrant still copies tenant {tenant}",
                hint="the copy continues by itself; run this again to wait for it",
            )
        await asyncio.sleep(self._patience.look_seconds)

    async def _set_up(self, change: wire.UpdateCollectionClusterSetupRequest) -> None:
        change.collection_name = self._collection
        await ask(self._qdrant, "UpdateCollectionClusterSetup", change)

    async def _view(self) -> ClusterView:
        return await cluster_view(self._qdrant, self._collection)

    def _shared_and_own(self, tenant: Tenant) -> tuple[TenantPoints, TenantPoints]:
        """Return the points of the tenant in the shared shard, and in its own."""
        points = self._points(tenant)
        return points.in_shard(shared_key(tenant, self._layout.shards)), points.in_shard(own_key(tenant))

    def _points(self, tenant: Tenant) -> TenantPoints:
        return TenantPoints(self._qdrant, self._collection, tenant, self._layout.shards)


def _dead(tenant: Tenant, elsewhere: int) -> Conflict:
    return Conflict(
        f"tenant {tenant} has an own shard that is dead; {elsewhere} chunks are in the shared shard",
        hint="if these are all of its chunks, a copy was interrupted: run it again with --anew. "
        "Otherwise bring back the node of its shard",
    )


def _is(tenant: Tenant) -> wire.FieldCondition:
    return wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant.name))


def _copied(view: ClusterView, tenant: Tenant, seconds: float) -> Progress:
    """Return the copied chunks if the responding node receives them, else the elapsed seconds."""
    counts = [copy.points for copy in view.of(own_key(tenant)) if copy.points is not None]
    return Progress("chunks copied", counts[0]) if counts else Progress("seconds of copying", int(seconds))
