"""Which shard a tenant's documents are in, and how far a shard is in the cluster.

Everybody starts in one of a few shards that are shared; the tenant's name says in which. A tenant that is moved
has a shard of its own. Requests name both: the engine goes to the own shard as soon as that is ready, and to the
shared one until then, so nobody has to be told of a move.
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
from toolscript.core.qdrant.connection import Qdrant, ask_collections, exists_already, translated

_SHARED, _OWN = "shared_", "own_"
_NO_CLUSTER = "start Qdrant with `cluster.enabled: true`, or set TOOLSCRIPT_DOCUMENT_SHARDS to 0"
_NOT_READY_YET = frozenset({wire.ReplicaState.Partial, wire.ReplicaState.ActiveRead})


def shared_key(tenant: Tenant, shards: int) -> wire.ShardKey:
    digest = hashlib.blake2b(tenant.name.encode(), digest_size=8).digest()
    return _key(f"{_SHARED}{int.from_bytes(digest, 'big') % shards}")


def own_key(tenant: Tenant) -> wire.ShardKey:
    """No tenant's name can make it a shared one."""
    return _key(f"{_OWN}{tenant.name}")


def shard_selector(tenant: Tenant, shards: int) -> wire.ShardKeySelector | None:
    """Belongs into every request for this tenant. None: the collection is not spread by tenants."""
    if not shards:
        return None
    return wire.ShardKeySelector(shard_keys=[own_key(tenant)], fallback=shared_key(tenant, shards))


async def make_shards(qdrant: Qdrant, collection: str, shards: int, replicas: int) -> None:
    """Those shared shards that are not there yet."""
    if not shards:
        return
    there = {name for name in await keys_of(qdrant, collection) if name.startswith(_SHARED)}
    wanted = {f"{_SHARED}{number}" for number in range(shards)}
    await _require_same_number(qdrant, collection, there, wanted)
    for name in sorted(wanted - there):
        await make_key(qdrant, collection, wire.CreateShardKey(shard_key=_key(name), replication_factor=replicas))


async def shared_shards(qdrant: Qdrant, collection: str) -> int:
    """How many there are."""
    return sum(name.startswith(_SHARED) for name in await keys_of(qdrant, collection))


async def make_own_shards(qdrant: Qdrant, collection: str, own: Mapping[Tenant, int], replicas: int) -> None:
    """Empty ones: each of these tenants in so many shards, which no other is in."""
    there = await keys_of(qdrant, collection) if own else frozenset()
    for tenant, number in own.items():
        key = own_key(tenant)
        if key.keyword not in there:
            wanted = wire.CreateShardKey(shard_key=key, replication_factor=replicas, shards_number=number)
            await make_key(qdrant, collection, wanted)


async def own_shards(qdrant: Qdrant, collection: str) -> dict[Tenant, int]:
    """Which tenants have some, and how many."""
    request = wire.CollectionClusterInfoRequest(collection_name=collection)
    found = await ask(qdrant, "CollectionClusterInfo", request)
    shards = {(one.shard_key.keyword, one.shard_id) for one in (*found.local_shards, *found.remote_shards)}
    numbers = Counter(key for key, _ in shards if key.startswith(_OWN))
    return {Tenant(key.removeprefix(_OWN)): number for key, number in numbers.items()}


async def _require_same_number(qdrant: Qdrant, collection: str, there: set[str], wanted: set[str]) -> None:
    """With another number tenants would be looked for where they are not.

    Fewer are found, without a point in them, where somebody was killed while making them.
    """
    if not there or there == wanted:
        return
    with translated():
        filled = await qdrant.points.Count(
            wire.CountPoints(collection_name=collection, exact=False), timeout=qdrant.timeout_seconds
        )
    if there - wanted or filled.result.count:
        raise _other_number(collection, len(there), len(wanted))


def _other_number(collection: str, there: int, wanted: int) -> SetupError:
    return SetupError(
        f"{collection} is spread over {there} shards, not over {wanted}",
        hint=f"`toolscript reindex documents --shards {wanted}` spreads them anew",
    )


async def keys_of(qdrant: Qdrant, collection: str) -> frozenset[str]:
    answer = await ask(qdrant, "ListShardKeys", wire.ListShardKeysRequest(collection_name=collection))
    return frozenset(shard_key.key.keyword for shard_key in answer.shard_keys)


async def make_key(qdrant: Qdrant, collection: str, wanted: wire.CreateShardKey) -> None:
    """Who makes the same one at the same time is as welcome."""
    wanted.shards_number = wanted.shards_number or 1
    try:
        await ask(qdrant, "CreateShardKey", wire.CreateShardKeyRequest(collection_name=collection, request=wanted))
    except IndexRejected as error:
        if not exists_already(error):
            raise


async def ask(qdrant: Qdrant, method: str, request: object) -> Any:
    try:
        return await ask_collections(qdrant, method, request)
    except IndexRejected as error:
        if _says(error, "istributed"):
            raise SetupError("Qdrant is no cluster", hint=_NO_CLUSTER) from error
        raise


def only(key: wire.ShardKey) -> wire.ShardKeySelector:
    """For what must reach this shard and no other."""
    return wire.ShardKeySelector(shard_keys=[key])


def _key(name: str) -> wire.ShardKey:
    return wire.ShardKey(keyword=name)


def _says(error: IndexRejected, words: str) -> bool:
    cause = error.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and words in str(cause.details())


class Stage(Enum):
    """How far a shard is.

    One that is LEFT was begun, is not ready, and nobody copies into it any more. One that is DEAD was on a node
    that failed, before it was ready or after.
    """

    ABSENT = auto()
    COPYING = auto()
    LEFT = auto()
    DEAD = auto()
    READY = auto()


@dataclass(frozen=True)
class Copy:
    """One copy of a shard. `points` is known of those that the asked node has itself."""

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
    # Shards that are being copied into.
    receiving: frozenset[int]

    def of(self, key: wire.ShardKey) -> list[Copy]:
        return [copy for copy in self.copies if copy.key == key.keyword]

    def ready(self, key: wire.ShardKey) -> list[Copy]:
        return [copy for copy in self.of(key) if copy.is_ready]

    def ready_by_shard(self, key: wire.ShardKey) -> dict[int, list[Copy]]:
        """A key may be that of several shards; one without a ready copy has none here."""
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
        """Those that are known to have a part of the collection, the one with the fewest shards first."""
        nodes = [copy.node for copy in self.copies]
        return sorted(set(nodes), key=lambda node: (nodes.count(node), node))


async def view_of(qdrant: Qdrant, collection: str) -> ClusterView:
    request = wire.CollectionClusterInfoRequest(collection_name=collection)
    found = await ask(qdrant, "CollectionClusterInfo", request)
    here = [
        Copy(one.shard_id, one.shard_key.keyword, found.peer_id, one.state, one.points_count)
        for one in found.local_shards
    ]
    elsewhere = [Copy(one.shard_id, one.shard_key.keyword, one.peer_id, one.state) for one in found.remote_shards]
    receiving = (one.to_shard_id if one.HasField("to_shard_id") else one.shard_id for one in found.shard_transfers)
    return ClusterView([*here, *elsewhere], frozenset(receiving))
