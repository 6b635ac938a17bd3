"""Moves a tenant to a shard of its own while clients search and write; deletes a tenant page by page.

The engine copies: whatever is written meanwhile goes to the shared shard, which hands it on. When everything is
there, first all nodes read from the own shard, then they write to it alone. What is left in the shared one is
nobody's, and is removed. Each step looks at what is true now, so whoever was killed is followed by a second run.
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
    make_key,
    own_key,
    shared_key,
    view_of,
)
from toolscript.documents.qdrant.tenant_points import (
    EVERYTHING,
    GONE,
    TENANT,
    VERSION,
    Span,
    TenantPoints,
    among,
    passage_id,
    point_id,
)

PAGE = 500
# Pages more than there were at first, for what is written meanwhile: whoever writes without end is not waited for.
MORE = 20
ATTEMPTS = 3

logger = logging.getLogger(__name__)


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
    id_ = point_id(ChunkId(secrets.token_hex(12), 0))
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


@dataclass(frozen=True)
class Patience:
    """How often the cluster is looked at, for how long, and when a copy that nobody goes on with is given up.

    Nodes hear of a copy one after another: one that asks too early does not see it yet.
    """

    look_seconds: float = 0.2
    gone_seconds: float = 3.0
    max_seconds: float = 6 * 3600.0


class QdrantTenantShards:
    def __init__(
        self, qdrant: Qdrant, collection: str, layout: DocumentLayout, patience: Patience | None = None
    ) -> None:
        self._qdrant = qdrant
        self._collection = collection
        self._layout = layout
        self._patience = patience or Patience()

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
                "there are no shards that a tenant could be moved to",
                hint="that takes a cluster of Qdrant, and TOOLSCRIPT_DOCUMENT_SHARDS from the first document on",
            )
        if not await self.own_shard(tenant):
            await self._copy(tenant, on_progress, anew=anew)
        await self._add_copies(tenant, on_progress)
        await self._until_apart(tenant)
        shared, own = self._both(tenant)
        await clear_moved(shared, own, on_progress)
        return await own.count(EVERYTHING, exact=True)

    async def erase(self, tenant: Tenant, on_progress: OnProgress = silent) -> int:
        """The own shard goes last: without it, what may be left in the shared one would be seen again."""
        if not self._layout.shards:
            return await clear(self._points(tenant), on_progress)
        stage = await self._when_settled(tenant, on_progress, Stage.READY, Stage.ABSENT)
        if stage in (Stage.LEFT, Stage.DEAD):
            await self._drop_own(tenant)
        shared, own = self._both(tenant)
        if stage is not Stage.READY:
            return await clear(shared, on_progress)
        await self._until_apart(tenant)
        await clear(shared, on_progress)
        removed = await clear(own, on_progress)
        await self._drop_own(tenant)
        return removed

    async def _copy(self, tenant: Tenant, on_progress: OnProgress, *, anew: bool) -> None:
        before = await self.passages(tenant)
        if not before:
            raise NotFound(f"tenant {tenant} has no documents", hint="`toolscript tenants list` shows who has any")
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
            f"Qdrant gave up copying tenant {tenant}, {ATTEMPTS} times; nothing of it was lost or removed",
            hint="are all nodes of the cluster running, with room on their disks? Then run it again",
        )

    async def _begin(self, tenant: Tenant) -> None:
        """Always with an empty shard: what was copied once does not follow what has been removed since."""
        if (await self._view()).stage(own_key(tenant)) is not Stage.ABSENT:
            await self._drop_own(tenant)
        # The engine copies into a single copy only; the others come later.
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
        """Clients may have removed some meanwhile, but hardly most."""
        copied = await self._points(tenant).in_shard(own_key(tenant)).count(EVERYTHING, exact=True)
        if copied * 2 < before:
            raise Conflict(
                f"of {before} passages of tenant {tenant} only {copied} are in its own shard; all were kept",
                hint="if it has removed them itself, run it again",
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
        """On the node that has the least of the collection."""
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

    async def _until_apart(self, tenant: Tenant) -> None:
        """The node that gave the copy may not know yet that it is done, and would remove here what goes there."""
        began = time.monotonic()
        while await hands_on(*self._both(tenant)):
            await self._pause(tenant, began)

    async def _drop_own(self, tenant: Tenant) -> None:
        gone = wire.DeleteShardKey(shard_key=own_key(tenant))
        await ask(
            self._qdrant,
            "DeleteShardKey",
            wire.DeleteShardKeyRequest(collection_name=self._collection, request=gone),
        )

    async def _when_settled(self, tenant: Tenant, on_progress: OnProgress, *settled: Stage) -> Stage:
        """One of `settled`, or another that it stays in though nobody copies."""
        view = await self._wait(tenant, on_progress, lambda seen: seen.stage(own_key(tenant)) in settled)
        return view.stage(own_key(tenant))

    async def _wait(
        self, tenant: Tenant, on_progress: OnProgress, is_done: Callable[[ClusterView], bool]
    ) -> ClusterView:
        """Until it is done, or nobody has been copying for a while."""
        began = copying_at = time.monotonic()
        while True:
            view, now = await self._view(), time.monotonic()
            copying_at = now if view.is_receiving(own_key(tenant)) else copying_at
            if is_done(view) or now - copying_at > self._patience.gone_seconds:
                return view
            on_progress(_copied(view, tenant, now - began))
            await self._pause(tenant, began)

    async def _pause(self, tenant: Tenant, began: float) -> None:
        if time.monotonic() - began > self._patience.max_seconds:
            raise IndexUnavailable(
                f"Qdrant still copies tenant {tenant}", hint="it goes on by itself; run this again to wait for it"
            )
        await asyncio.sleep(self._patience.look_seconds)

    async def _set_up(self, change: wire.UpdateCollectionClusterSetupRequest) -> None:
        change.collection_name = self._collection
        await ask(self._qdrant, "UpdateCollectionClusterSetup", change)

    async def _view(self) -> ClusterView:
        return await view_of(self._qdrant, self._collection)

    def _both(self, tenant: Tenant) -> tuple[TenantPoints, TenantPoints]:
        """What it has in the shared shard, and in its own."""
        points = self._points(tenant)
        return points.in_shard(shared_key(tenant, self._layout.shards)), points.in_shard(own_key(tenant))

    def _points(self, tenant: Tenant) -> TenantPoints:
        return TenantPoints(self._qdrant, self._collection, tenant, self._layout.shards)


def _dead(tenant: Tenant, elsewhere: int) -> Conflict:
    return Conflict(
        f"tenant {tenant} has an own shard that is dead; {elsewhere} passages are in the shared one",
        hint="if they are all it has, a copy was cut short: run it again with --anew. "
        "Otherwise bring back the node that had its shard",
    )


def _is(tenant: Tenant) -> wire.FieldCondition:
    return wire.FieldCondition(key=TENANT, match=wire.Match(keyword=tenant.name))


def _copied(view: ClusterView, tenant: Tenant, seconds: float) -> Progress:
    """How many are there is known to the node that gets them; of another the time must do."""
    known = [copy.points for copy in view.of(own_key(tenant)) if copy.points is not None]
    return Progress("passages copied", known[0]) if known else Progress("seconds of copying", int(seconds))
