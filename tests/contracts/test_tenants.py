"""Contract of Tenants: tenants with documents are listed in order, page by page, until they are removed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import PATIENCE
from tests.contracts.paging import stays_whole
from toolscript.core.auth.model import Tenant
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.documents.ports import Tenants
from toolscript.documents.postgres import PostgresTenants
from toolscript.testing import MemoryTenants

pytestmark = pytest.mark.requirement("DOC-003", "DOC-004")

NAMES = ["0", "Acme", "Zeta", "a", "a-b", "a.b", "a:b", "a@b", "a_b", "acme", "b" * 128]


@dataclass(frozen=True)
class Scene:
    tenants: Tenants
    log_queries: Callable[[str, int], Awaitable[None]]
    logged: Callable[[str], Awaitable[int]]


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        yield _in_memory()
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=2, wait_seconds=PATIENCE) as pool:
            yield _in_postgres(pool)


def _in_memory() -> Scene:
    queries: list[str] = []

    async def log(tenant: str, count: int) -> None:
        queries.extend([tenant] * count)

    async def logged(tenant: str) -> int:
        return queries.count(tenant)

    def forget(tenant: Tenant) -> None:
        queries[:] = [query for query in queries if query != tenant.name]

    return Scene(MemoryTenants(forget), log, logged)


def _in_postgres(pool: Pool) -> Scene:
    async def log(tenant: str, count: int) -> None:
        columns = "at, query_id, tenant, plan, search_type, fusion, filters, top_k, hits, total, took_ms, degraded"
        values = "now(), 'q', %s, '', '', '', 0, 0, 0, 0, 0, '{}', '', '', '{}'"
        statement = f"INSERT INTO documents.queries ({columns}, reranked_by, text, found) SELECT {values}"
        async with pool.connection() as conn:
            await conn.execute(f"{statement} FROM generate_series(1, %s)".encode(), (tenant, count))

    async def logged(tenant: str) -> int:
        async with pool.connection() as conn:
            counted = await conn.execute("SELECT count(*) FROM documents.queries WHERE tenant = %s", (tenant,))
            return int(str((await counted.fetchall())[0][0]))

    # Batches so small that there are several.
    return Scene(PostgresTenants(pool, batch=3), log, logged)


async def names(tenants: Tenants) -> list[str]:
    return [item.tenant.name for item in await tenants.page("", 1000)]


async def test_tenants_that_have_written_are_listed_by_name(scene: Scene) -> None:
    assert await names(scene.tenants) == []
    for name in reversed(NAMES):
        await scene.tenants.seen(Tenant(name))
    assert await names(scene.tenants) == NAMES == sorted(NAMES)


async def test_pages_follow_each_other_and_the_last_one_is_short(scene: Scene) -> None:
    for name in NAMES:
        await scene.tenants.seen(Tenant(name))
    result: list[str] = []
    while len(page := await scene.tenants.page(result[-1] if result else "", 4)) == 4:
        result += [item.tenant.name for item in page]
    assert [*result, *(item.tenant.name for item in page)] == NAMES


async def test_a_tenant_is_listed_since_its_first_write(scene: Scene) -> None:
    await scene.tenants.seen(Tenant("acme"))
    [first] = await scene.tenants.page("", 10)
    await scene.tenants.seen(Tenant("acme"))
    assert await scene.tenants.page("", 10) == [first]
    since = datetime.fromisoformat(first.since)
    assert since.tzinfo == UTC
    assert abs(datetime.now(UTC) - since) < timedelta(minutes=5)


async def test_a_deleted_tenant_leaves_nothing_and_others_are_untouched(scene: Scene) -> None:
    for name in ("acme", "other"):
        await scene.tenants.seen(Tenant(name))
        await scene.log_queries(name, 7)
    await scene.tenants.forget(Tenant("acme"))
    assert await names(scene.tenants) == ["other"]
    assert [await scene.logged(name) for name in ("acme", "other")] == [0, 7]
    await scene.tenants.forget(Tenant("acme"))
    await scene.tenants.seen(Tenant("acme"))
    assert await names(scene.tenants) == ["acme", "other"]


@pytest.mark.requirement("AP-001")
async def test_tenants_that_vanish_and_appear_between_pages_hide_no_other(scene: Scene) -> None:
    for name in NAMES:
        await scene.tenants.seen(Tenant(name))

    async def read(after: str, limit: int) -> list[str]:
        return [known.tenant.name for known in await scene.tenants.page(after, limit)]

    async def appear() -> None:
        for name in ("00", "Beta", "c"):
            await scene.tenants.seen(Tenant(name))

    await stays_whole(read, "", vanish=lambda name: scene.tenants.forget(Tenant(name)), appear=appear)


async def test_it_is_on_record_which_tenants_hold_documents(scene: Scene) -> None:
    acme, other = Tenant("acme"), Tenant("other")
    assert not await scene.tenants.note(acme, holds=True)
    assert not await scene.tenants.holds(acme)
    assert not await scene.tenants.seen(acme)
    assert not await scene.tenants.seen(other)
    assert await scene.tenants.note(acme, holds=True)
    assert not await scene.tenants.note(acme, holds=True)
    assert await scene.tenants.seen(acme)
    assert [await scene.tenants.holds(tenant) for tenant in (acme, other)] == [True, False]
    assert (await scene.tenants.holders(), await scene.tenants.holders(or_unknown=True)) == (1, 1)
    assert await scene.tenants.note(acme, holds=False)
    assert await scene.tenants.holders() == 0
    await scene.tenants.note(acme, holds=True)
    await scene.tenants.forget(acme)
    assert (await scene.tenants.holds(acme), await scene.tenants.holders()) == (False, 0)
