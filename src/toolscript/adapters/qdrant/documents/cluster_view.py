"""What a cluster says of a collection's shards: which node has which, and how far it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant
from toolscript.adapters.qdrant.documents.places import ask

_NOT_READY_YET = frozenset({wire.ReplicaState.Partial, wire.ReplicaState.ActiveRead})


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
