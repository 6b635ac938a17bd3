"""The schema is upgraded, downgraded and upgraded again, on a database with data."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from tests.contracts.search_log_builders import NOW, logged
from toolscript.core.errors import SetupError
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.postgres.migrate import downgrade, upgrade
from toolscript.core.postgres.pool import Pool
from toolscript.core.postgres.schema import require_current_schema
from toolscript.core.retrieval.curation import Rule, RuleKind
from toolscript.core.taxonomy import Classification, Classified, EnhancedDescription, Skill, SuggestedSkill
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Counted
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.curation import PostgresCurationRules
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.search_log import PostgresSearchLog
from toolscript.tools.postgres.skills import PostgresTaxonomy

pytestmark = pytest.mark.requirement("SK-002")

READ = Item("k", ItemKind.TOOL, "fs", "read", "Reads.", input_schema={"a": 1})
WRITE = Item("w", ItemKind.TOOL, "fs", "write", "Writes.")
# The partition of the one logged search.
TODAY = f"tool_searches_p{NOW:%Y%m%d}"


def tables(url: str) -> set[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mcp'"
    with psycopg.connect(url) as conn:
        return {name for (name,) in conn.execute(query)}


async def fill(pool: Pool) -> StoreReport:
    """Fill every table."""
    catalog, dirty, taxonomy = PostgresCatalog(pool), PostgresDirtySet(pool), PostgresTaxonomy(pool)
    report = await catalog.store("file", [READ, WRITE])
    await taxonomy.add(Skill("files", "Files"), "ann")
    await dirty.begin("another")
    claim = await dirty.claim(1, 2, 60)
    first, second = await catalog.items(sorted(claim.versions))
    sure = Classification((Assignment("files", 0.9, AssignedBy.RULES),))
    missing = Classification(suggestion=SuggestedSkill("Letters"))
    await PostgresAssignments(pool).record(
        [Classified(first.id, first.version, sure), Classified(second.id, second.version, missing)]
    )
    counted = Counted(first.id, "text", np.ones(8, dtype=np.float32), {"files": 9_000})
    now = {stored.id: stored.version for stored in await catalog.items([first.id, second.id])}
    await PostgresSkillVectors(pool).count(1, Claim(claim.token, now), [counted])
    (entry,) = await taxonomy.undescribed(DEFAULT_NAMESPACE, "", 2)
    await taxonomy.describe([EnhancedDescription(entry, DEFAULT_NAMESPACE, "Reads.", AssignedBy.RULES)])
    await catalog.store("file", [replace(READ, description="Reads more.")])
    await PostgresSyncJobs(pool).add("file")
    await PostgresCurationRules(pool).add(Rule(RuleKind.NEVER, "delete", first.id), "ann")
    await PostgresSearchLog(pool).write([logged()])
    return report


def rows(url: str) -> dict[str, int]:
    with psycopg.connect(url) as conn:
        counts = {
            name: conn.execute(f"SELECT count(*) FROM mcp.{name}".encode()).fetchone() for name in tables(url)
        }
    return {name: int(str(count[0])) for name, count in counts.items() if count}


async def test_a_filled_database_goes_down_step_by_step_and_up_again_with_its_items(
    postgres_url: str, pool: Pool
) -> None:
    await fill(pool)
    before = rows(postgres_url)
    assert min(before.values()) > 0, before
    downgrade(postgres_url, "0002")
    later = {
        "item_changes",
        "schema_compatibility",
        "sources",
        "sync_jobs",
        "curation_rules",
        "curation_revisions",
        "tool_searches",
        "tool_search_scopes",
        "skill_descriptions",
        TODAY,
    }
    assert before.keys() - rows(postgres_url).keys() == later
    downgrade(postgres_url, "0001")
    assert rows(postgres_url) == {name: before[name] for name in ("items", "dirty_items", "index_generations")}
    upgrade(postgres_url)
    assert before.keys() - rows(postgres_url).keys() == {TODAY}
    stored = await PostgresCatalog(pool).items(list(range(10)))
    assert [(row.item.name, row.needs_skills, row.assignments) for row in stored] == [
        ("read", True, ()),
        ("write", True, ()),
    ]


async def test_down_leaves_nothing_and_up_again_works_like_the_first_time(postgres_url: str, pool: Pool) -> None:
    before = tables(postgres_url)
    assert await fill(pool) == StoreReport(added=2)
    downgrade(postgres_url, "base")
    assert tables(postgres_url) == set()
    upgrade(postgres_url)
    assert tables(postgres_url) == before
    await require_current_schema(pool)
    assert await fill(pool) == StoreReport(added=2)


async def test_upgrading_twice_keeps_the_data(postgres_url: str, pool: Pool) -> None:
    await fill(pool)
    upgrade(postgres_url)
    assert await PostgresCatalog(pool).count() == 2


async def test_changes_and_jobs_go_and_the_items_stay(postgres_url: str, pool: Pool) -> None:
    await fill(pool)
    await PostgresCatalog(pool, hold_changes=True).store("file", [replace(READ, description="Writes.")])
    downgrade(postgres_url, "0002")
    assert tables(postgres_url) & {"item_changes", "sync_jobs"} == set()
    with pytest.raises(SetupError, match="0002"):
        await require_current_schema(pool)
    upgrade(postgres_url)
    await require_current_schema(pool)
    assert await PostgresCatalog(pool).count() == 2
    assert await PostgresItemChanges(pool).page(None, 10) == []


@pytest.mark.nightly
def test_many_may_migrate_at_once(postgres_url: str) -> None:
    before = tables(postgres_url)
    downgrade(postgres_url, "base")
    environment = {**os.environ, "TOOLSCRIPT_POSTGRES_URL": postgres_url}
    command = [sys.executable, "-m", "toolscript", "migrate"]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    assert tables(postgres_url) == before
