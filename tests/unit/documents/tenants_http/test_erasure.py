"""`toolscript tenants erase` removes all data of a tenant, and no data of others."""

import asyncio

import pytest

from tests.support.audit_entries import by_me
from tests.unit.documents.query_log_builders import search
from tests.unit.documents.tenants_http.filled import Engines, Tenants, documents
from toolscript.core.auth.budget import PostgresRequestBudget
from toolscript.core.auth.model import Plan, Tenant
from toolscript.documents.postgres import PostgresQueryLog, tenant_lock

pytestmark = pytest.mark.requirement("DOC-004", "DOC-006")

ANN, BOB = Tenant("ann"), Tenant("bob")
COUNTED = """
SELECT (SELECT count(*) FROM documents.tenants WHERE name = %(name)s),
       (SELECT count(*) FROM documents.queries WHERE tenant = %(name)s),
       (SELECT count(*) FROM documents.requests WHERE tenant = %(name)s)
"""


@pytest.fixture
def filled(tenants: Tenants) -> Tenants:
    """Documents, logged searches and counted requests of two tenants."""
    tenants.put("ann", documents(40))
    tenants.put("bob", documents(7))

    async def record(engines: Engines) -> None:
        log = PostgresQueryLog(engines.pool)
        await log.write([search(number, tenant=name) for number in range(20) for name in ("ann", "bob")])
        budget = PostgresRequestBudget(engines.pool)
        for tenant in (ANN, BOB):
            await budget.take(tenant, Plan("free", requests_per_minute=10))
        await budget.close()

    tenants.on_engines(record)
    return tenants


def rows(tenants: Tenants, name: str) -> tuple[object, ...] | None:
    async def count(engines: Engines) -> tuple[object, ...] | None:
        async with engines.pool.connection() as conn:
            return await (await conn.execute(COUNTED, {"name": name})).fetchone()

    return tenants.on_engines(count)


def test_an_erased_tenant_is_gone_and_the_others_are_untouched(filled: Tenants) -> None:
    before = rows(filled, "bob")
    assert rows(filled, "ann") == (1, 20, 1)
    erased = filled.json("erase", "ann", "--yes")
    assert (erased["documents"], erased["was_known"]) == (40, True)
    assert erased["chunks"] > 40
    assert rows(filled, "ann") == (0, 0, 0)
    assert rows(filled, "bob") == before == (1, 20, 1)
    listed = filled.json("list")["results"]
    assert [(row["name"], row["document_count"]) for row in listed] == [("bob", 7)]


def test_a_second_erasure_is_harmless_and_reports_no_data(filled: Tenants) -> None:
    stdout, _ = filled("erase", "ann", "--yes")
    assert "40 documents" in stdout
    assert "and all records of tenant ann" in stdout
    stdout, _ = filled("erase", "ann", "--yes")
    assert stdout == "tenant ann had no data\n"
    assert by_me(filled.installation.environment, "tenant.erase") == [("tenant.erase", 40)]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_nothing_is_erased_without_confirmation(filled: Tenants, answer: str) -> None:
    filled("erase", "ann", code=1, standard_input=answer)
    assert rows(filled, "ann") == (1, 20, 1)
    assert filled.json("list")["results"][0]["document_count"] == 40


def test_a_confirmed_erasure_erases(filled: Tenants) -> None:
    filled("erase", "ann", standard_input="y\n")
    assert rows(filled, "ann") == (0, 0, 0)


def test_two_processes_cannot_move_or_erase_one_tenant_at_once(filled: Tenants) -> None:
    async def meanwhile(engines: Engines) -> tuple[str, str]:
        async with tenant_lock(engines.pool, ANN):
            await asyncio.to_thread(filled, "erase", "bob", "--yes")
            return await asyncio.to_thread(filled, "erase", "ann", "--yes", code=2)

    _, stderr = filled.on_engines(meanwhile)
    assert "another process is moving or erasing tenant ann" in stderr
    assert rows(filled, "ann") == (1, 20, 1)
    assert rows(filled, "bob") == (0, 0, 0)
    filled("erase", "ann", "--yes")


def test_without_a_cluster_a_move_is_refused_with_its_requirements(filled: Tenants) -> None:
    _, stderr = filled("move", "ann", code=2)
    assert "TOOLSCRIPT_DOCUMENT_SHARDS" in stderr
    assert filled.json("list")["results"][0]["document_count"] == 40
