"""Placement of tenants in a cluster, and what remains after their deletion."""

import uuid

import pytest

from tests.engines.shards.busy_client import BusyClient
from tests.engines.shards.conftest import LAYOUT, SHARDS, Spread, in_shard
from tests.engines.shards.dying import Death, Killed, dying
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.errors import NotFound
from toolscript.core.qdrant import wire
from toolscript.core.retrieval.results import Total
from toolscript.documents.model.document import Document
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.collection import open_documents
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.shards import (
    ClusterView,
    Copy,
    Stage,
    cluster_view,
    keys_of,
    make_shards,
    own_key,
    shard_selector,
    shared_key,
)
from toolscript.documents.qdrant.tenant_points import EVERYTHING
from toolscript.documents.service import DocumentService
from toolscript.testing import HashEmbedder, MemoryTenants

pytestmark = pytest.mark.requirement("DOC-004")

CARD = DocumentCard(HashEmbedder().model)
TEXTS = [Document(f"d{number}", f"number {number} of the sea", {}) for number in range(20)]


async def put(spread: Spread, tenant: Tenant, documents: list[Document] = TEXTS) -> None:
    await DocumentService(HashEmbedder(), spread.indexes[0], MemoryTenants()).put(Principal(tenant), documents)


async def counted(spread: Spread, tenant: Tenant, key: wire.ShardKey) -> int:
    return await in_shard(spread, tenant, key).count(EVERYTHING, exact=True)


async def own_keys(spread: Spread) -> set[str]:
    return {key for key in await keys_of(spread.nodes[0], spread.collection) if key.startswith("own_")}


def test_a_tenants_shard_is_always_the_same_and_every_shard_has_some() -> None:
    """If the function changed, documents in the old shard would be lost."""
    names = ("acme", "ann", "bob", "a.b:c@d-e")
    chosen = [shared_key(Tenant(name), 8).keyword for name in names]
    assert chosen == ["shared_1", "shared_5", "shared_2", "shared_7"]
    spread_over = {shared_key(Tenant(f"tenant{number}"), 16).keyword for number in range(500)}
    assert spread_over == {f"shared_{number}" for number in range(16)}


def test_no_name_of_a_tenant_makes_its_own_shard_a_shared_one() -> None:
    selector = shard_selector(Tenant("shared_0"), 1)
    assert selector is not None
    assert [key.keyword for key in selector.shard_keys] == ["own_shared_0"]
    assert selector.fallback.keyword == "shared_0"
    assert shard_selector(Tenant("ann"), 0) is None


async def test_a_tenant_is_in_its_shared_shard_and_in_no_other(spread: Spread) -> None:
    tenant = Tenant("shared_with_others")
    await put(spread, tenant)
    keys = [wire.ShardKey(keyword=f"shared_{number}") for number in range(SHARDS)]
    held = {key.keyword: await counted(spread, tenant, key) for key in keys}
    assert held == {key.keyword: 20 if key == shared_key(tenant, SHARDS) else 0 for key in keys}
    assert await spread.places().passages(tenant) == 20
    assert not await spread.places().own_shard(tenant)


async def test_an_own_shard_has_as_many_copies_as_the_others_each_on_another_node(spread: Spread) -> None:
    tenant = Tenant("copied")
    await put(spread, tenant)
    assert await spread.places().move_to_own_shard(tenant) == 20
    ready = (await cluster_view(spread.nodes[0], spread.collection)).ready(own_key(tenant))
    assert len({copy.node for copy in ready}) == LAYOUT.replicas
    assert {copy.shard for copy in ready} == {ready[0].shard}


async def test_moved_twice_is_moved_once(spread: Spread) -> None:
    tenant = Tenant("twice")
    await put(spread, tenant)
    first = await spread.places().move_to_own_shard(tenant)
    before = (await cluster_view(spread.nodes[0], spread.collection)).of(own_key(tenant))
    assert await spread.places().move_to_own_shard(tenant) == first
    assert (await cluster_view(spread.nodes[0], spread.collection)).of(own_key(tenant)) == before


async def test_for_a_tenant_without_documents_no_shard_is_made(spread: Spread) -> None:
    with pytest.raises(NotFound, match="no documents"):
        await spread.places().move_to_own_shard(Tenant("misspelt"))
    assert "own_misspelt" not in await own_keys(spread)


async def test_a_late_write_to_the_shared_shard_is_not_lost(spread: Spread) -> None:
    """The node did not know yet that the tenant was moved."""
    tenant = Tenant("late")
    await put(spread, tenant)
    await spread.places().move_to_own_shard(tenant)
    own = in_shard(spread, tenant, own_key(tenant))
    shared = in_shard(spread, tenant, shared_key(tenant, SHARDS))
    newer, older = (await own.whole(EVERYTHING, 20))[:2]
    now = newer.payload["version"].integer_value
    newer.payload["text"].string_value = "written late"
    await shared.put([newer], now + 10)
    older.payload["text"].string_value = "written long ago"
    await shared.put([older], now - 10)
    await spread.places().move_to_own_shard(tenant)
    texts = {point.id.uuid: point.payload["text"].string_value for point in await own.whole(EVERYTHING, 20)}
    assert texts[newer.id.uuid] == "written late"
    assert texts[older.id.uuid] != "written long ago"
    assert await counted(spread, tenant, shared_key(tenant, SHARDS)) == 0


async def test_an_erased_tenant_leaves_neither_chunks_nor_a_shard(spread: Spread) -> None:
    erased, neighbour = Tenant("erased"), BusyClient(Tenant("stays"), spread.indexes)
    await put(spread, erased)
    await neighbour.fill()
    await spread.places().move_to_own_shard(erased)
    assert await spread.places().erase(erased) == 20
    assert "own_erased" not in await own_keys(spread)
    assert await spread.places().passages(erased) == 0
    assert await counted(spread, erased, shared_key(erased, SHARDS)) == 0
    assert await neighbour.stored() == neighbour.promised
    assert await spread.places().erase(erased) == 0
    await put(spread, erased, TEXTS[:3])
    assert await spread.places().passages(erased) == 3


@pytest.mark.parametrize(
    ("method", "turn"),
    [
        pytest.param("CreateShardKey", 1, id="before anything was copied"),
        pytest.param("UpdateCollectionClusterSetup", 1, id="while it was copied"),
        pytest.param("UpdateBatch", 3, id="while its old place was cleared"),
    ],
)
async def test_a_tenant_can_be_erased_though_its_move_was_never_ended(
    spread: Spread, method: str, turn: int
) -> None:
    tenant = Tenant(f"half_{method}")
    await put(spread, tenant)
    with pytest.raises(Killed):
        await spread.places(dying(spread.nodes[0], Death(method, turn, after=True))).move_to_own_shard(tenant)
    assert await spread.places().erase(tenant) == 20
    assert own_key(tenant).keyword not in await own_keys(spread)
    assert await spread.places().passages(tenant) == 0
    assert await counted(spread, tenant, shared_key(tenant, SHARDS)) == 0


async def test_an_erasure_that_was_killed_is_ended_by_the_next(spread: Spread) -> None:
    tenant = Tenant("erased_twice")
    await put(spread, tenant)
    await spread.places().move_to_own_shard(tenant)
    dies = dying(spread.nodes[0], Death("DeleteShardKey", 1, after=False))
    with pytest.raises(Killed):
        await spread.places(dies).erase(tenant)
    assert await spread.places().passages(tenant) == 0
    assert await spread.places().erase(tenant) == 0
    assert own_key(tenant).keyword not in await own_keys(spread)


async def test_the_number_of_shards_is_that_of_the_collection_whatever_is_set(spread: Spread) -> None:
    """With another number, tenants would be searched in the wrong shards."""
    tenant = Tenant("somebody")
    await put(spread, tenant)
    alias = spread.collection.partition("__")[0]
    for shards in (0, 1, 3):
        layout = DocumentLayout(shards=shards, replicas=2)
        opened = await open_documents(spread.nodes[0], alias, CARD, layout)
        assert opened.layout.shards == SHARDS
        assert await opened.of(tenant).count(NO_FILTERS) == Total(20)
    assert len(await keys_of(spread.nodes[0], spread.collection)) >= SHARDS


async def test_the_next_process_completes_shards_after_a_killed_one(spread: Spread) -> None:
    alias = f"test_{uuid.uuid4().hex[:12]}"
    with pytest.raises(Killed):
        await open_documents(dying(spread.nodes[0], Death("CreateShardKey", 1, after=True)), alias, CARD, LAYOUT)
    index = await open_documents(spread.nodes[0], alias, CARD, LAYOUT)
    assert await keys_of(spread.nodes[0], index.collection) == {"shared_0", "shared_1"}
    await make_shards(spread.nodes[0], index.collection, SHARDS, 2)


def test_a_shard_is_ready_when_one_copy_is_and_dead_when_none_could_ever_be() -> None:
    states = wire.ReplicaState

    def stage(*states: int, receiving: bool = False) -> Stage:
        copies = [Copy(7, "own_ann", node, state) for node, state in enumerate(states)]
        return ClusterView(copies, frozenset({7} if receiving else ())).stage(own_key(Tenant("ann")))

    assert stage() is Stage.ABSENT
    assert stage(states.Partial) is Stage.LEFT
    assert stage(states.Partial, receiving=True) is Stage.COPYING
    assert stage(states.ActiveRead, receiving=True) is Stage.COPYING
    assert stage(states.Active, states.Dead, receiving=True) is Stage.READY
    assert stage(states.Dead) is Stage.DEAD
