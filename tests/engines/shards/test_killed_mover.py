"""The process that moves a tenant is killed at some point, and another run completes the move."""

import pytest

from tests.engines.shards.busy_client import BusyClient
from tests.engines.shards.conftest import SHARDS, Spread, in_shard
from tests.engines.shards.dying import Death, Killed, dying
from toolscript.core.auth.model import Tenant
from toolscript.documents.qdrant.shards import own_key, shared_key
from toolscript.documents.qdrant.tenant_points import EVERYTHING

# The first change of the cluster starts the copy, the second one adds another copy of the own shard. Before
# anything is removed, two batches test whether the shards are separate.
SOMEWHERE = [
    pytest.param("CreateShardKey", 1, False, id="before the shard is made"),
    pytest.param("CreateShardKey", 1, True, id="when the shard is made"),
    pytest.param("UpdateCollectionClusterSetup", 1, True, id="when the copy has begun"),
    pytest.param("UpdateCollectionClusterSetup", 2, False, id="when the copy is done"),
    pytest.param("UpdateCollectionClusterSetup", 2, True, id="when a second copy has begun"),
    pytest.param("UpdateBatch", 3, False, id="before anything is removed"),
    pytest.param("UpdateBatch", 3, True, id="when a part is removed"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("method", "turn", "after"), SOMEWHERE)
async def test_a_killed_move_is_ended_by_the_next_and_costs_nothing(
    spread: Spread, method: str, turn: int, after: bool
) -> None:
    tenant = Tenant(f"{method}_{turn}_{after}")
    client = BusyClient(tenant, spread.indexes)
    await client.fill(more=30)
    dies = dying(spread.nodes[0], Death(method, turn, after=after))
    async with client.going_on():
        await client.reaches(10)
        with pytest.raises(Killed):
            await spread.places(dies).move_to_own_shard(tenant)
        await client.reaches(30)
        await spread.places().move_to_own_shard(tenant)
        await client.reaches(10)
    assert client.failures == []
    assert await client.stored() == client.promised
    assert await in_shard(spread, tenant, shared_key(tenant, SHARDS)).count(EVERYTHING, exact=True) == 0
    own = in_shard(spread, tenant, own_key(tenant))
    assert await own.count(EVERYTHING, exact=True) == await client.passages()
