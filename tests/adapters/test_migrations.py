"""The schema goes up, down and up again, on a database with something in it."""

import os
import subprocess
import sys

import psycopg
import pytest

from toolscript.adapters.postgres import Pool, PostgresCatalog, PostgresDirtySet
from toolscript.adapters.postgres.migrate import downgrade, upgrade
from toolscript.adapters.postgres.schema import require_current_schema
from toolscript.model.items import Item, ItemKind, StoreReport

pytestmark = pytest.mark.requirement("SK-002")

READ = Item("k", ItemKind.TOOL, "fs", "read", "Reads.", input_schema={"a": 1})


def tables(url: str) -> set[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mcp'"
    with psycopg.connect(url) as conn:
        return {name for (name,) in conn.execute(query)}


async def fill(pool: Pool) -> StoreReport:
    dirty = PostgresDirtySet(pool)
    report = await PostgresCatalog(pool).store("file", [READ])
    await dirty.begin("another")
    await dirty.claim(1, 1, 60)
    return report


async def test_down_leaves_nothing_and_up_again_works_like_the_first_time(postgres_url: str, pool: Pool) -> None:
    before = tables(postgres_url)
    assert await fill(pool) == StoreReport(added=1)
    downgrade(postgres_url, "base")
    assert tables(postgres_url) == set()
    upgrade(postgres_url)
    assert tables(postgres_url) == before
    await require_current_schema(pool)
    assert await fill(pool) == StoreReport(added=1)


async def test_going_up_twice_keeps_what_is_there(postgres_url: str, pool: Pool) -> None:
    await fill(pool)
    upgrade(postgres_url)
    assert await PostgresCatalog(pool).count() == 1


def test_many_may_migrate_at_once(postgres_url: str) -> None:
    before = tables(postgres_url)
    downgrade(postgres_url, "base")
    environment = {**os.environ, "TOOLSCRIPT_POSTGRES_URL": postgres_url}
    command = [sys.executable, "-m", "toolscript", "migrate"]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert tables(postgres_url) == before
