"""Contract of DirtySet for workers: no item has two owners, and none is cleared too early."""

import asyncio

import pytest

from tests.contracts.builders import Record, tool, tools
from toolscript.tools.model.catalog import Claim, Pending

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")

FIRST = 1
LEASE = 60.0


async def claim(record: Record, limit: int = 100) -> Claim:
    return await record.dirty.claim(FIRST, limit, LEASE)


async def pending(record: Record) -> Pending:
    return await record.dirty.pending(FIRST)


async def test_a_claim_respects_its_limit_lowest_ids_first(record: Record) -> None:
    await record.catalog.store("file", tools(5))
    first, second = await claim(record, 2), await claim(record, 10)
    assert len(first.versions) == 2
    assert max(first.versions) < min(second.versions)
    assert len(second.versions) == 3


async def test_a_long_backlog_of_one_namespace_leaves_others_their_share_of_each_claim(record: Record) -> None:
    await record.catalog.of("busy").store("file", tools(50))
    late = [tool("late"), tool("later")]
    await record.catalog.of("calm").store("file", late)
    first = await claim(record, 10)
    items = await record.catalog.items(list(first.versions))
    assert [stored.namespace for stored in items].count("calm") == len(late)
    assert len(first.versions) == 5 + len(late)
    assert len((await claim(record, 10)).versions) == 10


async def test_an_item_held_by_one_worker_goes_to_no_other(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    await claim(record)
    assert (await claim(record)).versions == {}


async def test_concurrent_claims_share_nothing_and_leave_nothing(record: Record) -> None:
    await record.catalog.store("file", tools(60))
    claims = await asyncio.gather(*(claim(record, 7) for _ in range(12)))
    taken = [id_ for item in claims for id_ in item.versions]
    assert len(taken) == len(set(taken))
    rest = await claim(record)
    assert len(taken) + len(rest.versions) == 60


async def test_followed_items_are_dirty_no_more(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    held = await claim(record)
    await record.dirty.clear(FIRST, held)
    assert await pending(record) == Pending(0, 0)
    assert await record.dirty.are_dirty(FIRST, list(held.versions)) == set()


async def test_held_items_are_dirty_until_they_are_cleared(record: Record) -> None:
    await record.catalog.store("file", tools(2))
    held = await claim(record)
    assert await record.dirty.are_dirty(FIRST, [*held.versions, 999]) == set(held.versions)
    assert (await pending(record)).total == 2


async def test_when_a_lease_runs_out_others_may_take_the_items(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    held = await claim(record)
    await record.let_pass(LEASE + 1)
    assert (await claim(record)).versions == held.versions


async def test_a_renewed_lease_lasts_from_the_renewal(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    held = await claim(record)
    await record.let_pass(LEASE - 1)
    assert await record.dirty.renew(FIRST, held, LEASE) == held
    await record.let_pass(LEASE - 1)
    assert (await claim(record)).versions == {}


async def test_renewing_gives_back_only_what_is_still_held(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    first = await claim(record)
    await record.let_pass(LEASE + 1)
    second = await claim(record, 2)
    kept = await record.dirty.renew(FIRST, first, LEASE)
    assert kept.versions.keys() == first.versions.keys() - second.versions.keys()


async def test_a_part_of_a_claim_can_be_cleared_alone(record: Record) -> None:
    await record.catalog.store("file", tools(2))
    held = await claim(record)
    item, other = held.versions
    await record.dirty.clear(FIRST, Claim(held.token, {item: held.versions[item]}))
    assert await record.dirty.are_dirty(FIRST, [item, other]) == {other}
    assert (await claim(record)).versions == {}


async def test_an_item_that_changes_while_held_stays_held_and_is_done_again(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    held = await claim(record)
    await record.catalog.store("file", [tool("read", "changed")])
    assert (await claim(record)).versions == {}
    await record.dirty.clear(FIRST, held)
    again = await claim(record)
    assert again.versions.keys() == held.versions.keys()
    assert min(again.versions.values()) > max(held.versions.values())


async def test_an_item_lost_to_another_worker_and_cleared_by_it_is_marked_again(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    slow = await claim(record)
    await record.let_pass(LEASE + 1)
    quick = await claim(record)
    await record.dirty.clear(FIRST, quick)
    assert (await pending(record)).total == 0
    await record.dirty.clear(FIRST, slow)
    again = await claim(record)
    assert min(again.versions.values()) > max(quick.versions.values())


async def test_an_item_lost_to_another_worker_that_holds_it_is_done_again_after_it(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    slow = await claim(record)
    await record.let_pass(LEASE + 1)
    quick = await claim(record)
    await record.dirty.clear(FIRST, slow)
    assert (await claim(record)).versions == {}
    await record.dirty.clear(FIRST, quick)
    assert (await claim(record)).versions.keys() == quick.versions.keys()


@pytest.mark.parametrize(
    ("times", "still_waits_after", "is_free_after"), [(2, 0, 2), (4, 3, 8), (6, 20, 32), (9, 45, 60)]
)
async def test_postponed_items_come_back_later_and_ever_later(
    record: Record, times: int, still_waits_after: float, is_free_after: float
) -> None:
    await record.catalog.store("file", [tool("read")])
    for _ in range(times):
        await record.let_pass(60)
        await record.dirty.postpone(FIRST, await claim(record), "refused")
    await record.let_pass(still_waits_after)
    assert (await claim(record)).versions == {}
    await record.let_pass(is_free_after - still_waits_after)
    assert len((await claim(record)).versions) == 1


async def test_postponed_items_are_counted_and_listed_with_the_last_reason(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    for reason in ("first reason", "second reason", "last reason"):
        held = await claim(record)
        failed = sorted(held.versions)[:2]
        await record.dirty.postpone(FIRST, Claim(held.token, {id_: held.versions[id_] for id_ in failed}), reason)
        await record.let_pass(LEASE + 1)
    assert await pending(record) == Pending(total=3, failing=2)
    assert list(await record.dirty.failing(FIRST, 10)) == [(id_, "last reason") for id_ in failed]
    assert len(await record.dirty.failing(FIRST, 1)) == 1


async def test_a_change_ends_the_wait_of_a_postponed_item(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    await record.dirty.postpone(FIRST, await claim(record), "refused")
    assert (await claim(record)).versions == {}
    await record.catalog.store("file", [tool("read", "better")])
    assert await pending(record) == Pending(total=1, failing=0)
    assert len((await claim(record)).versions) == 1


async def test_an_item_that_is_no_longer_held_cannot_be_postponed(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    slow = await claim(record)
    await record.let_pass(LEASE + 1)
    await claim(record)
    await record.dirty.postpone(FIRST, slow, "too late")
    assert await record.dirty.failing(FIRST, 10) == []


async def test_marking_makes_items_dirty_even_those_the_catalog_lacks(record: Record) -> None:
    await record.dirty.mark(FIRST, [41, 42])
    await record.dirty.mark(FIRST, [])
    assert (await claim(record)).versions.keys() == {41, 42}


async def test_marking_a_dirty_item_again_raises_its_version(record: Record) -> None:
    await record.dirty.mark(FIRST, [41])
    held = await claim(record)
    await record.dirty.mark(FIRST, [41])
    await record.dirty.clear(FIRST, held)
    assert (await claim(record)).versions[41] > held.versions[41]


async def test_an_item_of_another_worker_is_reported_as_taken_over(record: Record) -> None:
    await record.catalog.store("file", tools(2))
    first = await record.dirty.claim(FIRST, 1, 60)
    assert first.expired_leases == frozenset()
    await record.let_pass(120)
    second = await record.dirty.claim(FIRST, 10, 60)
    assert second.expired_leases == first.versions.keys()
    assert (await record.dirty.renew(FIRST, second, 60)).expired_leases == second.expired_leases


async def test_an_item_to_check_again_stays_dirty_and_is_free_after_a_while(record: Record) -> None:
    await record.catalog.store("file", tools(2))
    claim = await record.dirty.claim(FIRST, 10, 60)
    item, _ = claim.versions
    await record.dirty.clear(FIRST, claim, [item], 30)
    assert (await record.dirty.claim(FIRST, 10, 60)).versions == {}
    await record.let_pass(31)
    again = await record.dirty.claim(FIRST, 10, 60)
    assert again.versions == {item: claim.versions[item]}
    assert again.expired_leases == frozenset()


async def test_how_long_the_oldest_has_waited_is_known(record: Record) -> None:
    await record.catalog.store("file", tools(1))
    await record.let_pass(100)
    await record.catalog.store("file", tools(2))
    assert 100 <= (await pending(record)).oldest_seconds < 160
    # An item marked again keeps the time of its first mark.
    await record.dirty.mark(FIRST, list((await claim(record)).versions))
    assert (await pending(record)).oldest_seconds >= 100


async def test_an_empty_dirty_set_has_age_zero(record: Record) -> None:
    assert (await pending(record)).oldest_seconds == 0.0


async def test_abandoned_items_can_be_claimed_before_older_ones(record: Record) -> None:
    await record.catalog.store("file", tools(4))
    abandoned = await record.dirty.claim(FIRST, 2, LEASE)
    await record.let_pass(LEASE + 1)
    taken = await record.dirty.claim(FIRST, 3, LEASE, abandoned_first=True)
    assert taken.versions == abandoned.versions
    assert taken.expired_leases == abandoned.versions.keys()
    rest = await record.dirty.claim(FIRST, 10, LEASE, abandoned_first=True)
    assert len(rest.versions) == 2
    assert rest.expired_leases == frozenset()
