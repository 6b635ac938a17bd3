"""Shard placement of tenants, and the state of shards in the cluster.

A tenant starts in one of a few shared shards, chosen by a hash of its name. A tenant that is moved has a shard of
its own. Requests name both: the engine uses the own shard as soon as it is ready, and the shared one until then,
so a move needs no coordination.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import grpc

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import IndexRejected, SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, call_collections, exists_already, translated

_SHARED, _OWN = "shared_", "own_"
_NO_CLUSTER = "start Qdrant with `cluster.enabled: true`, or set TOOLSCRIPT_DOCUMENT_SHARDS to 0"
_NOT_READY_YET = frozenset({wire.ReplicaState.Partial, wire.ReplicaState.ActiveRead})


def shared_key(tenant: Tenant, shards: int) -> wire.ShardKey:
    digest = hashlib.blake2b(tenant.name.encode(), digest_size=8).digest()
    return _key(f"{_SHARED}{int.from_bytes(digest, 'big') % shards}")


def own_key(tenant: Tenant) -> wire.ShardKey:
    """Return the key of the own shard. No tenant name collides with a shared key."""
    return _key(f"{_OWN}{tenant.name}")


def shard_selector(tenant: Tenant, shards: int) -> wire.ShardKeySelector | None:
    """Return the selector for every request of this tenant; None if the collection is not sharded by tenant."""
    if not shards:
        return None
    return wire.ShardKeySelector(shard_keys=[own_key(tenant)], fallback=shared_key(tenant, shards))


async def make_shards(qdrant: Qdrant, collection: str, shards: int, replicas: int) -> None:
    """Create the missing shared shards."""
    if not shards:
        return
    existing = {name for name in await keys_of(qdrant, collection) if name.startswith(_SHARED)}
    expected = {f"{_SHARED}{number}" for number in range(shards)}
    await _require_same_number(qdrant, collection, existing, expected)
    for name in sorted(expected - existing):
        await make_key(qdrant, collection, wire.CreateShardKey(shard_key=_key(name), replication_factor=replicas))


async def shared_shards(qdrant: Qdrant, collection: str) -> int:
    """Return the number of shared shards."""
    return sum(name.startswith(_SHARED) for name in await keys_of(qdrant, collection))


async def make_own_shards(qdrant: Qdrant, collection: str, own: Mapping[Tenant, int], replicas: int) -> None:
    """Create empty own shards: for each tenant the given number."""
    existing = await keys_of(qdrant, collection) if own else frozenset()
    for tenant, number in own.items():
        key = own_key(tenant)
        if key.keyword not in existing:
            request = wire.CreateShardKey(shard_key=key, replication_factor=replicas, shards_number=number)
            await make_key(qdrant, collection, request)


async def own_shards(qdrant: Qdrant, collection: str) -> dict[Tenant, int]:
    """Return the number of own shards of each tenant that has any."""
    request = wire.CollectionClusterInfoRequest(collection_name=collection)
    info = await ask(qdrant, "CollectionClusterInfo", request)
    replicas = (*info.local_shards, *info.remote_shards)
    shards = {(replica.shard_key.keyword, replica.shard_id) for replica in replicas}
    numbers = Counter(key for key, _ in shards if key.startswith(_OWN))
    return {Tenant(key.removeprefix(_OWN)): number for key, number in numbers.items()}


async def _require_same_number(qdrant: Qdrant, collection: str, existing: set[str], expected: set[str]) -> None:
    """Raise SetupError on another number of shards: tenants would be looked up in the wrong shard.

    Fewer shards without any points are fine: their creation was interrupted.
    """
    if not existing or existing == expected:
        return
    with translated():
        count = await qdrant.points.Count(
            wire.CountPoints(collection_name=collection, exact=False), timeout=qdrant.timeout_seconds
        )
    if existing - expected or count.result.count:
        raise _other_number(collection, len(existing), len(expected))


def _other_number(collection: str, existing: int, expected: int) -> SetupError:
    return SetupError(
        f"{collection} is spread over {existing} shards, not over {expected}",
        hint=f"`toolscript reindex documents --shards {expected}` redistributes them",
    )


async def keys_of(qdrant: Qdrant, collection: str) -> frozenset[str]:
    answer = await ask(qdrant, "ListShardKeys", wire.ListShardKeysRequest(collection_name=collection))
    return frozenset(shard_key.key.keyword for shard_key in answer.shard_keys)


async def make_key(qdrant: Qdrant, collection: str, request: wire.CreateShardKey) -> None:
    """Create a shard key. A concurrent creation of the same key is no error."""
    request.shards_number = request.shards_number or 1
    try:
        await ask(
            qdrant, "CreateShardKey", wire.CreateShardKeyRequest(collection_name=collection, request=request)
        )
    except IndexRejected as error:
        if not exists_already(error):
            raise


async def ask(qdrant: Qdrant, method: str, request: object) -> Any:
    try:
        return await call_collections(qdrant, method, request)
    except IndexRejected as error:
        if _mentions(error, "istributed"):
            raise SetupError("Qdrant is not a cluster", hint=_NO_CLUSTER) from error
        raise


def only(key: wire.ShardKey) -> wire.ShardKeySelector:
    """Return the selector of this shard alone."""
    return wire.ShardKeySelector(shard_keys=[key])


def _key(name: str) -> wire.ShardKey:
    return wire.ShardKey(keyword=name)


def _mentions(error: IndexRejected, words: str) -> bool:
    cause = error.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and words in str(cause.details())


class Stage(Enum):
    """State of a shard.

    LEFT: a copy was started, is not ready, and no transfer is running. DEAD: its node failed, before or after the
    shard was ready.
    """

    ABSENT = auto()
    COPYING = auto()
    LEFT = auto()
    DEAD = auto()
    READY = auto()


@dataclass(frozen=True)
class Copy:
    """One replica of a shard. `points` is known for the replicas of the node that responds."""

    shard: int
    key: str
    node: int
    state: int
    points: int | None = None

    @property
    def is_ready(self) -> bool:
        return self.state == wire.ReplicaState.Active


@dataclass(frozen=True)
class ClusterView:
    copies: Sequence[Copy]
    # Target shards of running transfers.
    receiving: frozenset[int]

    def of(self, key: wire.ShardKey) -> list[Copy]:
        return [copy for copy in self.copies if copy.key == key.keyword]

    def ready(self, key: wire.ShardKey) -> list[Copy]:
        return [copy for copy in self.of(key) if copy.is_ready]

    def ready_by_shard(self, key: wire.ShardKey) -> dict[int, list[Copy]]:
        """Return the ready replicas of each shard of the key; an empty list for a shard without any."""
        shards = {copy.shard for copy in self.of(key)}
        return {shard: [copy for copy in self.ready(key) if copy.shard == shard] for shard in sorted(shards)}

    def stage(self, key: wire.ShardKey) -> Stage:
        copies = self.of(key)
        if not copies:
            return Stage.ABSENT
        if all(self.ready_by_shard(key).values()):
            return Stage.READY
        if self.is_receiving(key):
            return Stage.COPYING
        return Stage.LEFT if all(copy.state in _NOT_READY_YET for copy in copies) else Stage.DEAD

    def is_receiving(self, key: wire.ShardKey) -> bool:
        return any(copy.shard in self.receiving for copy in self.of(key))

    def nodes_by_load(self) -> list[int]:
        """Return the nodes that hold a part of the collection, the one with the fewest shards first."""
        nodes = [copy.node for copy in self.copies]
        return sorted(set(nodes), key=lambda node: (nodes.count(node), node))


async def cluster_view(qdrant: Qdrant, collection: str) -> ClusterView:
    request = wire.CollectionClusterInfoRequest(collection_name=collection)
    info = await ask(qdrant, "CollectionClusterInfo", request)
    here = [
        Copy(shard.shard_id, shard.shard_key.keyword, info.peer_id, shard.state, shard.points_count)
        for shard in info.local_shards
    ]
    elsewhere = [
        Copy(shard.shard_id, shard.shard_key.keyword, shard.peer_id, shard.state) for shard in info.remote_shards
    ]
    receiving = (
        transfer.to_shard_id if transfer.HasField("to_shard_id") else transfer.shard_id
        for transfer in info.shard_transfers
    )
    return ClusterView([*here, *elsewhere], frozenset(receiving))
