"""Behind a PgBouncer in transaction mode, where each transaction may run in another session."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from tests.conftest import fresh_database
from tests.support.pgbouncer import pgbouncer
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict
from toolscript.core.postgres.migrate import downgrade, upgrade
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.settings.service import Settings
from toolscript.documents.postgres import tenant_lock
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.skills import PostgresTaxonomy

CLIENTS = 8
TENANT = Tenant("acme")

HOLDER = """
import asyncio, sys
from toolscript.core.postgres.pool import open_pool
from toolscript.documents.postgres import tenant_lock
from toolscript.core.auth.model import Tenant

async def hold():
    async with open_pool(sys.argv[1], size=1, wait_seconds=30) as pool, tenant_lock(pool, Tenant(sys.argv[2])):
        print("alone", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


@pytest.fixture(scope="module")
def bouncer(engines: Settings) -> Iterator[str]:
    with pgbouncer(engines.postgres_url.get_secret_value()) as url:
        yield url


@pytest.fixture
def url(engines: Settings, migrated_database: str, bouncer: str) -> Iterator[str]:
    """A database of its own for the test, behind PgBouncer."""
    with fresh_database(engines, migrated_database, bouncer) as own:
        yield own


@pytest.fixture
async def pool(url: str) -> AsyncIterator[Pool]:
    async with open_pool(url, size=CLIENTS, wait_seconds=30) as opened:
        yield opened


def _locks(url: str, engines: Settings) -> int:
    """Return all advisory locks held in this database."""
    name = url.rpartition("/")[2]
    query = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid "
        "WHERE locktype = 'advisory' AND datname = %s"
    )
    with psycopg.connect(engines.postgres_url.get_secret_value()) as conn:
        row = conn.execute(query, (name,)).fetchone()
    return int(row[0]) if row else -1


async def test_repeated_statements_work_in_every_session(pool: Pool) -> None:
    """A prepared statement would exist in one session of four."""
    taxonomy = PostgresTaxonomy(pool)

    async def ask() -> None:
        for _ in range(25):
            await taxonomy.revision()

    await asyncio.gather(*(ask() for _ in range(CLIENTS)))


async def test_the_tenant_lock_is_exclusive(pool: Pool, url: str, engines: Settings) -> None:
    for _ in range(3):
        async with tenant_lock(pool, TENANT):
            for _ in range(CLIENTS):
                with pytest.raises(Conflict):
                    async with tenant_lock(pool, TENANT):
                        pass
            async with tenant_lock(pool, Tenant("another")):
                pass
    assert _locks(url, engines) == 0


async def test_the_lock_of_a_killed_holder_is_released(pool: Pool, url: str) -> None:
    holding = [sys.executable, "-c", HOLDER, url, TENANT.name]
    holder = await asyncio.create_subprocess_exec(*holding, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"alone\n"
    with pytest.raises(Conflict):
        async with tenant_lock(pool, TENANT):
            pass
    holder.kill()
    await holder.wait()
    await asyncio.wait_for(_until_admitted(pool), 30)


async def _until_admitted(pool: Pool) -> None:
    """Wait until PgBouncer has noticed the closed connection."""
    while True:
        try:
            async with tenant_lock(pool, TENANT):
                return
        except Conflict:
            await asyncio.sleep(0.01)


async def test_skills_are_counted_again_by_one_at_a_time(pool: Pool, url: str, engines: Settings) -> None:
    vectors = PostgresSkillVectors(pool)
    await asyncio.gather(*(vectors.rebuild(1) for _ in range(CLIENTS)))
    assert _locks(url, engines) == 0


async def test_many_that_migrate_at_once_take_turns(url: str, engines: Settings) -> None:
    downgrade(url, "base")
    await asyncio.gather(*(asyncio.to_thread(upgrade, url) for _ in range(CLIENTS)))
    with psycopg.connect(url, prepare_threshold=None) as conn:
        assert conn.execute("SELECT count(*) FROM public.toolscript_schema").fetchone() == (1,)
    assert _locks(url, engines) == 0
