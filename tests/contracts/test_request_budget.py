"""Contract of RequestBudget: each tenant has the requests per minute of its plan."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.conftest import PATIENCE
from toolscript.core.auth.budget import PostgresRequestBudget
from toolscript.core.auth.model import UNLIMITED, Anonymous, Budget, Plan, RequestBudget, Tenant
from toolscript.core.postgres.pool import open_pool
from toolscript.testing import MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-003", "DOC-007")

ACME, OTHER = Tenant("acme"), Tenant("other")


class Clock:
    """Fixed at the first second of a minute."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


@dataclass(frozen=True)
class Scene:
    budget: RequestBudget
    clock: Clock


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    clock = Clock()
    if request.param == "memory":
        yield Scene(MemoryRequestBudget(clock), clock)
        return
    async with open_pool(request.getfixturevalue("postgres_url"), size=2, wait_seconds=PATIENCE) as pool:
        await pool.wait()
        # A generous limit for a database on a busy machine.
        budget = PostgresRequestBudget(pool, clock, wait_seconds=30)
        yield Scene(budget, clock)
        await budget.close()


def plan(requests: int) -> Plan:
    return Plan("some", requests_per_minute=requests)


@pytest.mark.parametrize("limit", [1, 2, 9, 10, 37, 250])
async def test_exactly_the_requests_of_the_plan_are_allowed_with_the_remaining_number(
    scene: Scene, limit: int
) -> None:
    value = [await scene.budget.take(ACME, plan(limit)) for _ in range(limit + 3)]
    assert [item.allowed for item in value] == [True] * limit + [False] * 3
    assert [item.remaining for item in value] == [*range(limit - 1, -1, -1), 0, 0, 0]
    assert {item.limit for item in value} == {limit}


async def test_concurrent_requests_do_not_exceed_the_limit(scene: Scene) -> None:
    value = await asyncio.gather(*(scene.budget.take(ACME, plan(25)) for _ in range(60)))
    assert sum(item.allowed for item in value) == 25


async def test_the_next_minute_begins_afresh(scene: Scene) -> None:
    scene.clock.at += 59.9
    assert await scene.budget.take(ACME, plan(1)) == Budget(1, 0, 1, allowed=True)
    assert await scene.budget.take(ACME, plan(1)) == Budget(1, 0, 1, allowed=False)
    scene.clock.at += 0.1
    assert await scene.budget.take(ACME, plan(1)) == Budget(1, 0, 60, allowed=True)


async def test_one_tenant_does_not_spend_what_is_anothers(scene: Scene) -> None:
    for _ in range(3):
        await scene.budget.take(ACME, plan(2))
    assert (await scene.budget.take(OTHER, plan(2))).remaining == 1


async def test_a_plan_without_a_limit_has_none_and_spends_nothing(scene: Scene) -> None:
    for _ in range(100):
        assert await scene.budget.take(ACME, UNLIMITED) == Budget()
    assert (await scene.budget.take(ACME, plan(1))).allowed


async def test_another_plan_counts_what_was_spent_before(scene: Scene) -> None:
    for _ in range(10):
        await scene.budget.take(ACME, plan(10))
    assert not (await scene.budget.take(ACME, plan(5))).allowed
    value = [await scene.budget.take(ACME, plan(20)) for _ in range(11)]
    assert [item.allowed for item in value] == [True] * 10 + [False]


@pytest.mark.requirement("KN-005")
async def test_an_address_without_a_token_is_counted_by_itself_whatever_it_is_called(scene: Scene) -> None:
    for who in (Anonymous("acme"), ACME, Anonymous("2001:db8::/64")):
        value = [await scene.budget.take(who, plan(2)) for _ in range(3)]
        assert [item.allowed for item in value] == [True, True, False], who
