"""Requests counted by several processes on one PostgreSQL, and by each on its own while it is down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.contracts.test_request_budget import ACME, Clock, plan
from tests.support.faults import Fault, Relay, relay
from toolscript.core.auth import budget as request_budget
from toolscript.core.auth.budget import PostgresRequestBudget
from toolscript.core.auth.model import UNLIMITED, Anonymous, Tenant
from toolscript.core.postgres.pool import Pool, open_pool

pytestmark = pytest.mark.requirement("DOC-007")


@asynccontextmanager
async def processes(
    url: str, count: int, clock: Clock, wait_seconds: float = 30
) -> AsyncIterator[list[PostgresRequestBudget]]:
    """Open one budget per process, each with its own connections."""
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(open_pool(url, size=2)) for _ in range(count)]
        await asyncio.gather(*(pool.wait() for pool in pools))
        budgets = [PostgresRequestBudget(pool, clock, wait_seconds) for pool in pools]
        for budget in budgets:
            stack.push_async_callback(budget.close)
        yield budgets


async def taken(pool: Pool) -> list[tuple[object, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute("SELECT tenant, minute FROM documents.requests ORDER BY 1, 2")).fetchall()


@pytest.mark.parametrize("limit", [1, 7, 60, 500])
async def test_several_processes_together_never_grant_more_than_the_plan(postgres_url: str, limit: int) -> None:
    async with processes(postgres_url, 4, Clock()) as budgets:
        results = await asyncio.gather(
            *(budget.take(ACME, plan(limit)) for _ in range(limit + 5) for budget in budgets)
        )
    assert sum(result.allowed for result in results) == limit


async def test_little_is_lost_when_one_process_of_several_gets_most_requests(postgres_url: str) -> None:
    async with processes(postgres_url, 4, Clock()) as [busy, *idle]:
        for budget in idle:
            assert (await budget.take(ACME, plan(100))).allowed
        allowed = [(await busy.take(ACME, plan(100))).allowed for _ in range(100)]
    # Each idle process holds at most a tenth of the plan.
    assert 70 <= sum(allowed) <= 97


async def test_anonymous_clients_with_one_request_are_not_written(postgres_url: str, pool: Pool) -> None:
    async with processes(postgres_url, 1, Clock()) as [budget]:
        for number in range(500):
            assert (await budget.take(Anonymous(f"10.0.{number >> 8}.{number & 255}"), plan(60))).remaining == 59
    assert await taken(pool) == []


@pytest.mark.parametrize("limit", [1, 7, 60, 500])
async def test_an_anonymous_client_with_more_requests_is_counted_by_all_processes(
    postgres_url: str, limit: int
) -> None:
    async with processes(postgres_url, 4, Clock()) as budgets:
        results = await asyncio.gather(
            *(budget.take(Anonymous("10.0.0.1"), plan(limit)) for _ in range(limit + 5) for budget in budgets)
        )
    # Beyond the plan at most the first request of each process, which it does not write.
    assert limit <= sum(result.allowed for result in results) <= limit + 3


async def test_anonymous_clients_beyond_the_maximum_share_buckets(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_budget, "MAX_ANONYMOUS", 10)
    monkeypatch.setattr(request_budget, "ANONYMOUS_BUCKETS", 2)
    async with processes(postgres_url, 1, Clock()) as [budget]:
        for number in range(20):
            assert (await budget.take(Tenant(f"t{number}"), plan(5))).allowed
        results = [await budget.take(Anonymous(f"10.0.0.{number}"), plan(5)) for number in range(90)]
        repeated = [await budget.take(Anonymous(f"10.0.0.{number}"), plan(5)) for number in range(10)]
        assert len(budget._windows) == 20 + 10 + 2
    assert all(result.allowed for result in [*results[:10], *repeated])
    assert sum(result.allowed for result in results[10:]) == 2 * 5


async def test_a_clock_that_is_set_back_a_little_gives_nothing_twice(postgres_url: str) -> None:
    clock = Clock()
    allowed = 0
    async with processes(postgres_url, 1, clock) as [budget]:
        for number in range(60):
            clock.at += 60 if number % 2 else -60
            allowed += (await budget.take(Anonymous("10.0.0.1"), plan(7))).allowed
        clock.at -= 3600
        assert (await budget.take(Anonymous("10.0.0.1"), plan(7))).allowed
    assert allowed == 1 + 7


async def test_past_minutes_are_deleted(postgres_url: str, pool: Pool) -> None:
    clock = Clock()
    minute = int(clock.at // 60)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO documents.requests SELECT 'tenant ' || n, n, 1 FROM generate_series(%s, %s) n",
            (minute - 2500, minute - 1),
        )
    async with processes(postgres_url, 1, clock) as [budget]:
        await budget.take(ACME, plan(10))
        await asyncio.gather(*budget._tasks)
    assert await taken(pool) == [
        ("acme", minute),
        *((f"tenant {number}", number) for number in (minute - 2, minute - 1)),
    ]


@asynccontextmanager
async def behind_relay(
    url: str, clock: Clock, wait_seconds: float
) -> AsyncIterator[tuple[PostgresRequestBudget, Relay]]:
    port = urlsplit(url).port or 0
    async with relay("127.0.0.1", port) as between:
        through = url.replace(f":{port}/", f":{between.port}/")
        async with processes(through, 1, clock, wait_seconds) as [budget]:
            yield budget, between


@pytest.mark.parametrize("fault", [Fault.HANGING, Fault.REFUSED, Fault.SLOW])
async def test_while_postgres_is_down_each_process_counts_on_its_own_and_logs_it_once(
    postgres_url: str, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    clock = Clock()
    async with behind_relay(postgres_url, clock, 0.05) as (budget, between):
        await between.fail(fault, delay=30)
        started = asyncio.get_running_loop().time()
        results = await asyncio.gather(*(budget.take(Tenant(f"t{n % 20}"), plan(5)) for n in range(200)))
        took = asyncio.get_running_loop().time() - started
        await between.heal()
    assert sum(result.allowed for result in results) == 20 * 5
    assert took < 5
    warned = [record.message for record in caplog.records if "request_budget" in str(vars(record).get("part"))]
    assert warned == ["each process counts requests on its own"]


async def test_most_requests_need_no_query(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with behind_relay(postgres_url, Clock(), 30) as (budget, between):
        await budget.take(ACME, plan(1000))
        await between.fail(Fault.HANGING)
        # A query would now wait for half a minute and then log a warning.
        async with asyncio.timeout(20):
            results = [await budget.take(ACME, plan(1000)) for _ in range(99)]
            results += [await budget.take(Tenant("other"), UNLIMITED) for _ in range(99)]
        await between.heal()
    assert all(result.allowed for result in results)
    assert results[98].remaining == 900
    assert caplog.messages == []


async def test_requests_taken_before_an_outage_still_count(postgres_url: str) -> None:
    async with behind_relay(postgres_url, Clock(), 30) as (budget, between):
        first = [await budget.take(ACME, plan(10)) for _ in range(4)]
        budget._wait_seconds = 0.05
        await between.fail(Fault.HANGING)
        later = [await budget.take(ACME, plan(10)) for _ in range(10)]
        await between.heal()
    assert sum(result.allowed for result in first + later) == 10


async def test_after_an_outage_processes_share_the_count_again(
    postgres_url: str, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = Clock()
    async with behind_relay(postgres_url, clock, 0.05) as (budget, between):
        await between.fail(Fault.HANGING)
        await budget.take(ACME, plan(10))
        await between.heal()
        await asyncio.gather(*budget._late, return_exceptions=True)
        budget._wait_seconds = 30
        clock.at += 4
        await budget.take(Tenant("soon"), plan(10))
        clock.at += 60
        await budget.take(Tenant("later"), plan(10))
    assert [row[0] for row in await taken(pool)] == ["acme", "later"]
    assert caplog.messages[-1] == "processes share the request count again"
