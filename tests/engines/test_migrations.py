"""The schema is upgraded, downgraded and upgraded again, on a database with data."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import psycopg
import pytest

from tests.contracts.search_log_builders import logged
from toolscript.core.errors import Conflict, SetupError
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.postgres.migrate import downgrade, upgrade
from toolscript.core.postgres.pool import Pool
from toolscript.core.postgres.schema import BASELINE, require_current_schema
from toolscript.core.retrieval.curation import Rule, RuleKind
from toolscript.core.taxonomy import (
    Classification,
    Classified,
    EnhancedDescription,
    ProposalKind,
    Skill,
    SuggestedSkill,
)
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Counted
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.curation import PostgresCurationRules
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.search_log import PostgresSearchLog
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

pytestmark = pytest.mark.requirement("SK-002")

READ = Item("k", ItemKind.TOOL, "fs", "read", "Reads.", input_schema={"a": 1})
WRITE = Item("w", ItemKind.TOOL, "fs", "write", "Writes.")


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


async def test_a_filled_database_goes_down_to_the_baseline_and_up_again_with_everything(
    postgres_url: str, pool: Pool
) -> None:
    await fill(pool)
    before = rows(postgres_url)
    assert min(before.values()) > 0, before
    downgrade(postgres_url, BASELINE)
    assert rows(postgres_url) == before
    upgrade(postgres_url)
    assert rows(postgres_url) == before
    stored = await PostgresCatalog(pool).items(list(range(10)))
    assert [row.item.name for row in stored] == ["read", "write"]


async def test_proposals_of_an_earlier_version_are_read_after_the_upgrade(postgres_url: str, pool: Pool) -> None:
    await fill(pool)
    downgrade(postgres_url, BASELINE)
    change = json.dumps({"creates": [asdict(Skill("post", "Post"))], "retires": [], "evidence": {"members": 2}})
    insert = """
    INSERT INTO mcp.skill_suggestions (key, suggested_name, kind, status, change, move_after)
    VALUES (%s, %s, %s, %s, %s, %s)
    """
    with psycopg.connect(postgres_url) as conn:
        for key, kind, status, moving in (
            ("split:files", "split", "pending", None),
            ("split:more", "split", "approved", 7),
            ("new:post", "new", "pending", None),
        ):
            conn.execute(insert, (key, key, kind, status, change, moving))
    upgrade(postgres_url)
    suggestions = PostgresSuggestions(pool)
    found = [one for one in await suggestions.page(0, 10, None) if one.kind is ProposalKind.NEW]
    assert [(one.suggested.name, str(one.state), one.change is not None) for one in found] == [
        ("split:more", "approved", False),
        ("new:post", "pending", True),
    ]
    # Nothing tells any more what a split moved: its items are classified again, and it cannot be undone.
    with psycopg.connect(postgres_url) as conn:
        assert conn.execute(
            "SELECT call_after FROM mcp.skill_suggestions WHERE id = %s", (found[0].id,)
        ).fetchone() == (0,)
    with pytest.raises(Conflict):
        await suggestions.undo(found[0].id, "ann")


async def test_a_schema_before_the_baseline_is_refused_with_what_to_do(postgres_url: str, pool: Pool) -> None:
    with psycopg.connect(postgres_url) as conn:
        conn.execute("UPDATE public.toolscript_schema SET version_num = '0009'")
    with pytest.raises(SetupError, match="at 0009"):
        upgrade(postgres_url)
    with pytest.raises(SetupError):
        downgrade(postgres_url, "base")
    with pytest.raises(SetupError, match="upgrades a schema from 0015 on") as error:
        await require_current_schema(pool)
    assert "an empty database" in error.value.hint


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
