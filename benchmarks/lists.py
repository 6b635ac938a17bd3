"""Pages of long lists: what the engine reads for the first, the middle and the last page of each.

PostgreSQL counts the blocks that a statement touches, so the figures do not depend on the load of the machine. The
rows are made by the database itself, in a database of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import AsyncCursor

from benchmarks.at_scale import Row
from toolscript.core.items import ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import SuggestionState
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.postgres import PostgresTenants
from toolscript.tools.model.catalog import ChangeState, ItemFilter
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

PAGE = 51
# What clients see: an administrator all namespaces, others that of their token.
VIEWS: Mapping[str, Namespaces] = {"every namespace": None, "one namespace": frozenset({DEFAULT_NAMESPACE})}
# Half of the items are removed, in one piece, as when a large source leaves: pages must not read through them.
# Every other pair of rows is in another namespace.
STATEMENTS = {
    "items": """
        INSERT INTO mcp.items (namespace, source, key, kind, server, name, description, server_description,
                               fingerprint, version, is_active)
        SELECT CASE WHEN mod(n, 4) < 2 THEN 'default' ELSE 'other' END,
               CASE WHEN mod(n, 2) = 0 THEN 'even' ELSE 'odd' END, 'key-' || n,
               CASE WHEN mod(n, 2) = 0 THEN 'tool' ELSE 'prompt' END,
               'server-' || mod(n, 2), 'name-' || n, 'Does thing number ' || n, '', 'f' || n, n,
               NOT (n > %(rows)s / 4 AND n <= %(rows)s * 3 / 4)
        FROM generate_series(1, %(rows)s) AS n""",
    "sources": """
        INSERT INTO mcp.sources (namespace, name, items)
        SELECT CASE WHEN mod(n, 4) < 2 THEN 'default' ELSE 'other' END, 'source-' || lpad(n::text, 9, '0'), 1
        FROM generate_series(1, %(rows)s) AS n""",
    "skills": """
        INSERT INTO mcp.skill_categories (id, name, is_active)
        SELECT 'skill_' || lpad(n::text, 9, '0'), 'Skill ' || n, mod(n, 2) = 0
        FROM generate_series(1, %(rows)s) AS n""",
    "assignments": """
        INSERT INTO mcp.tool_skill_assignments (namespace, tool_id, skill_id, is_primary, confidence, source)
        SELECT namespace, id, 'skill_000000002', true, 0.9, 'rules' FROM mcp.items WHERE is_active""",
    "changes": """
        INSERT INTO mcp.item_changes (namespace, item_id, source, key, old_fingerprint, new_fingerprint,
                                      changed_fields, old, new, state)
        SELECT namespace, id, source, key, 'a', 'b', '{description}', '{}', '{}',
               CASE WHEN mod(id, 2) = 0 THEN 'applied' ELSE 'rejected' END FROM mcp.items""",
    "suggestions": """
        INSERT INTO mcp.skill_suggestions (namespace, key, suggested_name, status)
        SELECT CASE WHEN mod(n, 4) < 2 THEN 'default' ELSE 'other' END,
               'suggestion-' || n, 'Suggestion ' || n, CASE WHEN mod(n, 2) = 0 THEN 'pending' ELSE 'rejected' END
        FROM generate_series(1, %(rows)s) AS n""",
    "tools of suggestions": """
        INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id)
        SELECT CASE WHEN id <= %(rows)s / 2 THEN id * 2 ELSE 4 END, id FROM mcp.items""",
    "jobs": """
        INSERT INTO mcp.sync_jobs (namespace, state, source)
        SELECT CASE WHEN mod(n, 4) < 2 THEN 'default' ELSE 'other' END, 'done', 'even'
        FROM generate_series(1, %(rows)s) AS n""",
    "audit": """
        INSERT INTO mcp.audit (namespace, actor, action, subject)
        SELECT CASE WHEN mod(n, 4) < 2 THEN NULL ELSE 'default' END, 'ann', 'skill.add', 'skill_' || n
        FROM generate_series(1, %(rows)s) AS n""",
    "tenants": """
        INSERT INTO documents.tenants (name)
        SELECT 'tenant-' || lpad(n::text, 9, '0') FROM generate_series(1, %(rows)s) AS n""",
}


@dataclass
class Counter:
    """Blocks of 8 KiB that the statements of one page touched, in memory or on the disk."""

    blocks: int = 0

    def add(self, plan: Mapping[str, int]) -> None:
        self.blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@dataclass(frozen=True)
class Paged:
    """`page` reads the page after a position; `first`, `middle` and `last` are positions."""

    name: str
    page: Callable[[Any], Awaitable[Sequence[object]]]
    first: object
    middle: object
    last: object


def bench_lists(rows: int, on_progress: OnProgress) -> list[Row]:
    """Return, for each list, the blocks that each page reads, and its rows. The database is dropped at the end."""
    with _own_database(Settings().postgres_url.get_secret_value()) as url:
        upgrade(url)
        _fill(url, rows, on_progress)
        return asyncio.run(_measure(url, rows))


@contextmanager
def _own_database(url: str) -> Iterator[str]:
    name = f"bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _fill(url: str, rows: int, on_progress: OnProgress) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for number, (name, statement) in enumerate(STATEMENTS.items()):
            on_progress(Progress(f"writing {rows:,} rows of {name}", number, len(STATEMENTS)))
            conn.execute(statement.encode(), {"rows": rows})
        conn.execute("VACUUM ANALYZE")


async def _measure(url: str, rows: int) -> list[Row]:
    async with _counting_pool(url) as (pool, counter):
        return [
            await _measure_list(name, paged, counter)
            for name, view in VIEWS.items()
            for paged in _lists(pool, rows, view)
        ]


async def _measure_list(view: str, paged: Paged, counter: Counter) -> Row:
    row: Row = {"view": view, "list": paged.name}
    for name, position in (("first", paged.first), ("middle", paged.middle), ("last", paged.last)):
        counter.blocks = 0
        entries = await paged.page(position)
        row |= {name: counter.blocks, f"{name} rows": len(entries)}
    return row


def _lists(pool: Pool, rows: int, view: Namespaces) -> list[Paged]:
    """The positions of `last` leave less than a page."""
    few = 10
    numbers = {"first": 0, "middle": rows // 2, "last": rows - few}
    latest: dict[str, object] = {"first": None, "middle": rows // 2, "last": few}
    return [
        *_tool_lists(PostgresCatalogContents(pool, view), numbers),
        *_skill_lists(pool, view, numbers),
        *_latest_lists(pool, view, latest),
    ]


def _tool_lists(contents: PostgresCatalogContents, numbers: Mapping[str, int]) -> list[Paged]:
    filters = {
        "all": ItemFilter(),
        "of a source": ItemFilter(source="even"),
        "of a server": ItemFilter(server="server-0"),
        "of a kind": ItemFilter(kind=ItemKind.TOOL),
        "of a source and a kind": ItemFilter(source="even", kind=ItemKind.TOOL),
        "of a source and a kind, none": ItemFilter(source="even", kind=ItemKind.PROMPT),
        "of a source and a server, none": ItemFilter(source="even", server="server-1"),
        "of a server and a kind, none": ItemFilter(server="server-0", kind=ItemKind.PROMPT),
        "of all three, none": ItemFilter(source="even", server="server-0", kind=ItemKind.PROMPT),
    }

    def pages(wanted: ItemFilter) -> Callable[[int], Awaitable[Sequence[object]]]:
        return lambda after: contents.page(after, PAGE, wanted)

    return [Paged(f"tools, {name}", pages(wanted), **numbers) for name, wanted in filters.items()]


def _skill_lists(pool: Pool, view: Namespaces, numbers: Mapping[str, int]) -> list[Paged]:
    contents, taxonomy = PostgresCatalogContents(pool, view), PostgresTaxonomy(pool, view)
    suggestions, tenants = PostgresSuggestions(pool, view), PostgresTenants(pool)

    def names(prefix: str) -> dict[str, object]:
        return {name: f"{prefix}{number:09}" for name, number in numbers.items()}

    sources = {name: (position, DEFAULT_NAMESPACE) for name, position in names("source-").items()}
    busy = 4
    return [
        Paged("sources", lambda after: contents.sources(after, PAGE), **sources),
        Paged("skills", lambda after: taxonomy.page(after, PAGE), **names("skill_")),
        Paged(
            "skills, active",
            lambda after: taxonomy.page(after, PAGE, active_only=True),
            **names("skill_"),
        ),
        Paged("tools of a skill", lambda after: taxonomy.members("skill_000000002", after, PAGE), **numbers),
        Paged("suggestions, all", lambda after: suggestions.page(after, PAGE, None), **numbers),
        Paged("suggestions, pending", lambda after: suggestions.page(after, PAGE), **numbers),
        Paged(
            "suggestions, rejected",
            lambda after: suggestions.page(after, PAGE, SuggestionState.REJECTED),
            **numbers,
        ),
        Paged("tools of a suggestion", lambda after: suggestions.asked_by(busy, after, PAGE), **numbers),
        Paged("tenants", lambda after: tenants.page(after, PAGE), **names("tenant-")),
    ]


def _latest_lists(pool: Pool, view: Namespaces, latest: Mapping[str, object]) -> list[Paged]:
    changes, jobs = PostgresItemChanges(pool, view), PostgresSyncJobs(pool, view)
    taxonomy = PostgresTaxonomy(pool, view)
    return [
        Paged("changes, all", lambda before: changes.page(before, PAGE), **latest),
        Paged("changes, rejected", lambda before: changes.page(before, PAGE, ChangeState.REJECTED), **latest),
        Paged("jobs", lambda before: jobs.page(before, PAGE), **latest),
        Paged("audit", lambda before: taxonomy.audit(before, PAGE), **latest),
    ]


@asynccontextmanager
async def _counting_pool(url: str) -> AsyncIterator[tuple[Pool, Counter]]:
    """Open a pool whose cursors explain each statement before they run it."""
    counter = Counter()

    class ExplainingCursor(AsyncCursor[Any]):
        async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else str(query)
            if text.lstrip().startswith("SELECT"):
                async with AsyncCursor(self.connection) as plain:
                    await plain.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}".encode(), params)
                    counter.add((await plain.fetchall())[0][0][0]["Plan"])
            return await super().execute(query, params, **options)

    async with open_pool(url, size=1, wait_seconds=60) as pool:
        async with pool.connection() as conn:
            conn.cursor_factory = ExplainingCursor
        yield pool, counter
