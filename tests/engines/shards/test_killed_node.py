"""A node of the cluster is killed while a tenant is being copied."""

import asyncio
from contextlib import suppress

import pytest

from tests.engines.shards.busy_client import BusyClient
from tests.engines.shards.conftest import SHARDS, Spread, in_shard
from tests.engines.shards.dying import Death, Killed, dying
from tests.support.clusters import NODES, Cluster
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import IndexRejected, IndexUnavailable
from toolscript.core.qdrant import wire
from toolscript.documents.qdrant.shard_migration import QdrantTenantShards
from toolscript.documents.qdrant.shards import own_key, shared_key
from toolscript.documents.qdrant.tenant_points import EVERYTHING


@pytest.mark.nightly
@pytest.mark.requirement("DOC-006")
async def test_every_killed_node_starts_again_with_all_writes(cluster: Cluster, spread: Spread) -> None:
    client = BusyClient(Tenant("writes"), spread.indexes)
    await client.fill()
    async with client.going_on():
        await client.reaches(60)
    for node in NODES:
        cluster.kill(node)
        await cluster.start_again(node)
    assert client.failures == []
    assert await client.stored() == client.promised
    assert await spread.places().passages(client.tenant) == await client.passages()


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["from", "to"])
async def test_a_copy_that_a_dead_node_has_ended_is_made_again(cluster: Cluster, spread: Spread, end: str) -> None:
    tenant = Tenant(f"copied_{end}_the_dead")
    client = BusyClient(tenant, spread.indexes)
    await client.fill(more=250)
    begun = Death("UpdateCollectionClusterSetup", 1, after=True)
    with pytest.raises(Killed):
        await spread.places(dying(spread.nodes[0], begun)).move_to_own_shard(tenant)
    victim = await _node_of_copy(spread, end)
    cluster.kill(victim)
    survivor = spread.nodes[victim % len(NODES)]
    async with asyncio.TaskGroup() as group:
        # A node with an incomplete copy is not ready before the copy is removed.
        group.create_task(cluster.start_again(victim))
        await _until_moved(spread.places(survivor), tenant)
    assert await spread.places().own_shard(tenant)
    assert await client.stored() == client.promised
    assert await in_shard(spread, tenant, shared_key(tenant, SHARDS)).count(EVERYTHING, exact=True) == 0
    own = in_shard(spread, tenant, own_key(tenant))
    assert await own.count(EVERYTHING, exact=True) == await client.passages()


async def _node_of_copy(spread: Spread, end: str) -> int:
    request = wire.CollectionClusterInfoRequest(collection_name=spread.collection)
    seen = [await node.collections.CollectionClusterInfo(request) for node in spread.nodes]
    (transfer, *_) = [transfer for view in seen for transfer in view.shard_transfers]
    nodes = {int(view.peer_id): node for view, node in zip(seen, NODES, strict=True)}
    return nodes[int(getattr(transfer, end))]


async def _until_moved(places: QdrantTenantShards, tenant: Tenant) -> None:
    """Run the move again until it succeeds, as an operator would after the node is back."""
    async with asyncio.timeout(120):
        while True:
            with suppress(IndexUnavailable, IndexRejected):
                await places.move_to_own_shard(tenant, anew=True)
                return
            await asyncio.sleep(0.2)
