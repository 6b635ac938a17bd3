"""A tenant is moved to its own shard of a real cluster while it is searched and written through every node."""

import pytest

from tests.engines.shards.busy_client import BusyClient
from tests.engines.shards.conftest import SHARDS, Spread, in_shard
from toolscript.core.auth.model import Tenant
from toolscript.documents.qdrant.shards import own_key, shared_key
from toolscript.documents.qdrant.tenant_points import EVERYTHING

MOVED = Tenant("moved")


def neighbour_of(tenant: Tenant) -> Tenant:
    """Return a tenant in the same shared shard."""
    names = (Tenant(f"neighbour{number}") for number in range(100))
    return next(name for name in names if shared_key(name, SHARDS) == shared_key(tenant, SHARDS))


@pytest.mark.requirement("DOC-004", "DOC-006")
async def test_clients_notice_no_move_and_nothing_is_lost_doubled_or_resurrected(spread: Spread) -> None:
    moved, neighbour = BusyClient(MOVED, spread.indexes), BusyClient(neighbour_of(MOVED), spread.indexes)
    await moved.fill(more=150)
    await neighbour.fill()
    places = spread.places()
    async with moved.going_on(), neighbour.going_on():
        await moved.reaches(60)
        passages = await places.move_to_own_shard(MOVED)
        await moved.reaches(60)
    assert moved.failures == neighbour.failures == []
    assert await places.own_shard(MOVED)
    assert not await places.own_shard(neighbour.tenant)
    assert passages > 150
    for client in (moved, neighbour):
        assert await client.stored() == client.promised
        assert await places.passages(client.tenant) == await client.passages()
    assert await in_shard(spread, MOVED, shared_key(MOVED, SHARDS)).count(EVERYTHING, exact=True) == 0
    own = in_shard(spread, MOVED, own_key(MOVED))
    assert await own.count(EVERYTHING, exact=True) == await moved.passages()
