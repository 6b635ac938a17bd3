"""A running worker keeps its batch, however busy it is; a worker that lost it does not get it back."""

import time

import pytest

from tests.contracts.builders import tools
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.tools.model.catalog import Claim
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.dirty_set import PostgresDirtySet

pytestmark = pytest.mark.requirement("SK-009")

FIRST = 1
LEASE = 1.0


@pytest.fixture
async def dirty(pool: Pool) -> PostgresDirtySet:
    await PostgresCatalog(pool).store("file", tools(5))
    return PostgresDirtySet(pool)


def hold_up_the_event_loop() -> None:
    time.sleep(3 * LEASE)


async def test_a_batch_is_kept_while_the_event_loop_does_something_else(dirty: PostgresDirtySet) -> None:
    held = await dirty.claim(FIRST, 3, LEASE)
    async with dirty.keep_lease(FIRST, held, LEASE):
        hold_up_the_event_loop()
        second = await dirty.claim(FIRST, 10, LEASE)
    assert len(second.versions) == 2
    assert not second.versions.keys() & held.versions.keys()


async def test_a_batch_without_renewal_is_free_when_its_lease_ends(dirty: PostgresDirtySet) -> None:
    held = await dirty.claim(FIRST, 10, LEASE)
    async with dirty.keep_lease(FIRST, held, LEASE):
        pass
    hold_up_the_event_loop()
    assert (await dirty.claim(FIRST, 10, LEASE)).expired_leases == held.versions.keys()


async def test_a_batch_claimed_by_another_worker_is_not_kept(dirty: PostgresDirtySet) -> None:
    lost = await dirty.claim(FIRST, 10, 0.0)
    taken = await dirty.claim(FIRST, 10, 0.0)
    async with dirty.keep_lease(FIRST, lost, LEASE):
        hold_up_the_event_loop()
        assert (await dirty.renew(FIRST, lost, LEASE)).versions == {}
        assert (await dirty.renew(FIRST, taken, LEASE)).versions == taken.versions


async def test_a_lost_database_ends_neither_the_work_nor_the_wait_for_it(
    dirty: PostgresDirtySet, postgres_url: str
) -> None:
    nowhere = postgres_url.rpartition("@")[0] + "@127.0.0.1:1/nothing"
    async with (
        open_pool(nowhere, size=1) as gone,
        PostgresDirtySet(gone).keep_lease(FIRST, Claim("token", {}), LEASE),
    ):
        hold_up_the_event_loop()
    assert (await dirty.pending(FIRST)).total == 5
