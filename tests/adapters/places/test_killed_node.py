"""A node of the cluster is killed while a tenant is being copied."""

import pytest

from tests.adapters.places.busy_client import BusyClient
from tests.adapters.places.conftest import SHARDS, Spread, in_shard
from tests.adapters.places.dying import Death, Killed, dying
from tests.clusters import NODES, Cluster
from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.documents.places import own_key, shared_key
from toolscript.adapters.qdrant.documents.tenant_points import EVERYTHING
from toolscript.model.tenancy import Tenant


@pytest.mark.parametrize("end", ["from", "to"])
async def test_a_copy_that_a_dead_node_has_ended_is_made_again(cluster: Cluster, spread: Spread, end: str) -> None:
    tenant = Tenant(f"copied_{end}_the_dead")
    client = BusyClient(tenant, spread.indexes)
    await client.fill(more=400)
    begun = Death("UpdateCollectionClusterSetup", 1, after=True)
    with pytest.raises(Killed):
        await spread.places(dying(spread.nodes[0], begun)).move_to_own_shard(tenant)
    victim = await _node_of_copy(spread, end)
    cluster.kill(victim)
    await cluster.start_again(victim)
    await spread.places().move_to_own_shard(tenant)
    assert await spread.places().own_shard(tenant)
    assert await client.stored() == client.promised
    assert await in_shard(spread, tenant, shared_key(tenant, SHARDS)).count(EVERYTHING, exact=True) == 0
    own = in_shard(spread, tenant, own_key(tenant))
    assert await own.count(EVERYTHING, exact=True) == await client.passages()


async def _node_of_copy(spread: Spread, end: str) -> int:
    request = wire.CollectionClusterInfoRequest(collection_name=spread.collection)
    seen = [await node.collections.CollectionClusterInfo(request) for node in spread.nodes]
    (transfer, *_) = [one for view in seen for one in view.shard_transfers]
    return dict(zip([view.peer_id for view in seen], NODES, strict=True))[getattr(transfer, end)]
