"""Namespaces on PostgreSQL: the cost of a page beside a large neighbour, locks, and the migration."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tests.contracts.builders import FIRST, axis, tools
from tests.engines.postgres_stores import Parts, opened, rows_read, sent
from toolscript.core.items import AssignedBy, ItemKind
from toolscript.core.namespaces import Namespaces
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.catalog import ChangeState, ItemFilter
from toolscript.tools.model.centroids import Counted
from toolscript.tools.model.search_log import SearchFilter
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.search_log import PostgresSearchLog

pytestmark = pytest.mark.requirement("AP-005")

NEIGHBOURS = 20_000
LIMIT = 5
LOGGED = datetime(2026, 1, 1, tzinfo=UTC)
# Rows that the scans of a page read for each row that is returned, for each namespace of the view.
MAX_READ = 8

# Ids of the small namespaces come before, between and after those of the large one.
FILL = f"""
WITH places AS (
    SELECT n, CASE WHEN n % 1000 = 0 THEN 'small' WHEN n % 1000 = 1 THEN 'other' ELSE 'large' END AS namespace
    FROM generate_series(1, {NEIGHBOURS}) n
)
INSERT INTO mcp.items (namespace, source, key, kind, server, name, description, server_description, fingerprint,
                       version, needs_skills)
SELECT namespace, 'file', 'k' || n, 'tool', 'server', 'tool' || n, '', '', n::text, n, false FROM places;
INSERT INTO mcp.tool_skill_assignments (tool_id, skill_id, confidence, source, namespace)
SELECT id, 'mail', 0.9, 'llm', namespace FROM mcp.items;
INSERT INTO mcp.item_changes (namespace, item_id, source, key, old_fingerprint, new_fingerprint, changed_fields,
                              old, new, state)
SELECT namespace, id, source, key, 'a', 'b', '{{description}}', '{{}}', '{{}}', 'applied' FROM mcp.items;
INSERT INTO mcp.sources (namespace, name, items) SELECT namespace, name, 1 FROM mcp.items;
INSERT INTO mcp.sync_jobs (namespace, source) SELECT namespace, source FROM mcp.items ORDER BY id;
INSERT INTO mcp.skill_suggestions (namespace, key, suggested_name) SELECT namespace, name, name FROM mcp.items
ORDER BY id;
INSERT INTO mcp.skill_suggestion_items
SELECT asked.id, items.id FROM mcp.skill_suggestions asked JOIN mcp.items ON asked.key = items.name;
CREATE TABLE mcp.tool_searches_p20260101 PARTITION OF mcp.tool_searches
FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
INSERT INTO mcp.tool_search_scopes SELECT name, ARRAY[name], name, '2026-01-01'
FROM unnest(ARRAY['large', 'other', 'small']) name;
INSERT INTO mcp.tool_searches
SELECT '2026-01-01'::timestamptz + n * interval '1 second', md5(n::text)::uuid,
       CASE WHEN n % 1000 = 0 THEN 'small' WHEN n % 1000 = 1 THEN 'other' ELSE 'large' END,
       'http', 'hybrid', 'direct', 1, n % 3 <> 0, 1, '{{}}', 'text', n % 50, '{{}}', n, 0.5
FROM generate_series(1, {NEIGHBOURS}) n;
INSERT INTO mcp.audit (actor, action, subject, namespace) SELECT 'ann', 'item.assign', id::text, namespace
FROM mcp.items ORDER BY id;
ANALYZE;
"""

Page = Callable[[Parts, Namespaces], Awaitable[object]]
PAGES: dict[str, Page] = {
    "items": lambda parts, view: contents(parts, view).page(0, LIMIT, ItemFilter()),
    "items of a source": lambda parts, view: contents(parts, view).page(0, LIMIT, ItemFilter(source="file")),
    "items of a server": lambda parts, view: contents(parts, view).page(0, LIMIT, ItemFilter(server="server")),
    "items of a kind": lambda parts, view: contents(parts, view).page(0, LIMIT, ItemFilter(kind=ItemKind.TOOL)),
    "sources": lambda parts, view: contents(parts, view).sources(("", ""), LIMIT),
    "changes": lambda parts, view: PostgresItemChanges(parts.pool, view).page(None, LIMIT),
    "changes of a state": lambda parts, view: PostgresItemChanges(parts.pool, view).page(
        None, LIMIT, ChangeState.APPLIED
    ),
    "jobs": lambda parts, view: PostgresSyncJobs(parts.pool, view).page(None, LIMIT),
    "pending suggestions": lambda parts, view: parts.suggestions.within(view).page(0, LIMIT),
    "suggestions": lambda parts, view: parts.suggestions.within(view).page(0, LIMIT, None),
    "audit": lambda parts, view: parts.taxonomy.within(view).audit(None, LIMIT),
    "tool searches": lambda parts, view: PostgresSearchLog(parts.pool, view).page(
        SearchFilter(LOGGED), None, LIMIT
    ),
    "tool searches without a good match": lambda parts, view: PostgresSearchLog(parts.pool, view).page(
        SearchFilter(LOGGED, good_match=False), None, LIMIT
    ),
    "members": lambda parts, view: parts.taxonomy.within(view).members("mail", 0, LIMIT),
    "reclassify": lambda parts, view: parts.assignments.within(view).reclassify(0, LIMIT),
    "reclassify a skill": lambda parts, view: parts.assignments.within(view).reclassify(0, LIMIT, skill_id="mail"),
    "reclassify a source": lambda parts, view: parts.assignments.within(view).reclassify(
        0, LIMIT, source=AssignedBy.LLM
    ),
}


def contents(parts: Parts, view: Namespaces) -> PostgresCatalogContents:
    return PostgresCatalogContents(parts.pool, view)


@pytest.fixture
async def parts(postgres_url: str) -> AsyncIterator[Parts]:
    async with opened(postgres_url) as parts:
        yield parts


async def rows_of_page(
    parts: Parts,
    page: Page,
    view: Namespaces,
    conn: "psycopg.Connection[tuple[Any, ...]]",
    monkeypatch: pytest.MonkeyPatch,
) -> float:
    with sent(monkeypatch) as statements:
        assert await page(parts, view)
    query, values = next(pair for pair in statements if "LIMIT %(limit)s" in pair[0])
    ((plans,),) = conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".encode(), values).fetchall()
    return rows_read(plans[0]["Plan"])


async def test_a_page_of_a_small_namespace_reads_no_rows_of_a_large_one(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(parts.url, autocommit=True) as conn:
        conn.execute(FILL.encode())
        too_many = {}
        for view in (frozenset({"small"}), frozenset({"small", "other", "large"}), None):
            for name, page in PAGES.items():
                read = await rows_of_page(parts, page, view, conn, monkeypatch)
                if read > MAX_READ * LIMIT * len(view or "1"):
                    too_many[name, view] = read
    assert too_many == {}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        # The assignment and its item.
        ("members", 2),
        # The suggestion, and an item that requests it: whether there is one, and how many there are.
        ("pending suggestions", 3),
        ("suggestions", 3),
    ],
)
async def test_a_page_reads_the_rows_of_an_entry_once(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    with psycopg.connect(parts.url, autocommit=True) as conn:
        conn.execute(FILL.encode())
        for view in (frozenset({"small"}), None):
            assert await rows_of_page(parts, PAGES[name], view, conn, monkeypatch) <= rows * LIMIT


async def test_a_skill_that_changes_while_a_namespace_gets_its_first_item_is_written_there_too(
    parts: Parts,
) -> None:
    await parts.catalog.of("red").store("file", tools(1))
    vectors = PostgresSkillVectors(parts.pool)
    claim = await parts.dirty.claim(FIRST, 10, 60)
    counted = [Counted(id_, "text", axis(0), {"mail": 9_000}, "red") for id_ in claim.versions]
    async with parts.other_connection() as other:
        # A change that has marked the rows of the skill, and not ended.
        await other.execute("UPDATE mcp.skill_categories SET name = 'Post' WHERE id = 'mail'")
        counting = asyncio.create_task(vectors.count(FIRST, claim, counted))
        await parts.until_a_lock_is_awaited()
        await other.commit()
    await counting
    assert [(state.skill.name, state.namespace) for state in await vectors.behind(FIRST, 10, ["mail"])] == [
        ("Post", "default"),
        ("Post", "red"),
    ]


async def test_concurrent_work_in_namespaces_with_equal_names_never_deadlocks(parts: Parts) -> None:
    """Rows of both are locked in one order, also by what covers all namespaces."""
    names = ("red", "blue", "default")
    for name in names:
        await parts.catalog.of(name).store("file", tools(30))
    kept = [item.key for item in tools(25)]
    stored = await parts.catalog.items([seen.id for seen in await parts.catalog.scan(0, 100)])
    ids = [item.id for item in stored if item.item.key in kept]
    vectors = PostgresSkillVectors(parts.pool)

    async def count() -> None:
        claim = await parts.dirty.claim(FIRST, 50, 60)
        items = [item for item in await parts.catalog.items(list(claim.versions)) if item.is_active]
        weights = {"mail": 9_000, "maps": 8_000}
        counted = [Counted(item.id, str(item.version), axis(0), weights, item.namespace) for item in items]
        await vectors.count(FIRST, claim, counted)
        await vectors.mark_indexed(FIRST, await vectors.behind(FIRST, 100))
        await parts.dirty.clear(FIRST, claim)

    for number in range(4):
        await asyncio.gather(
            *(parts.catalog.of(name).store("file", tools(30, f"{number}")[::-1]) for name in names),
            *(parts.catalog.of(name).keep_only("file", kept) for name in names),
            parts.assignments.reclassify(0, 100),
            *(parts.assignments.set_by_hand(id_, ["mail", "maps"], "ann") for id_ in ids[::9]),
            parts.taxonomy.change(Skill("mail", f"Mail {number}"), "ann"),
            *(count() for _ in range(3)),
        )
    await count()
    assert (await vectors.rebuild(FIRST)).mended == ()
