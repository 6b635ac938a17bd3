"""All PostgreSQL stores, for tests of concurrency and cost on the real database."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import AsyncConnection

from tests.contracts.builders import sure
from tests.support.faults import Relay, relay
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.taxonomy import Classification, Classified, Skill, SuggestedSkill
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

NAMES = ("mail", "maps", "news", "files")


class Parts:
    """All stores on one pool."""

    def __init__(self, pool: Pool, url: str) -> None:
        self.pool = pool
        self.url = url
        self.catalog = PostgresCatalog(pool)
        self.dirty = PostgresDirtySet(pool)
        self.taxonomy = PostgresTaxonomy(pool)
        self.assignments = PostgresAssignments(pool)
        self.suggestions = PostgresSuggestions(pool)

    async def rows(self, query: str, *values: object) -> list[Any]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query.encode(), values)).fetchall()

    async def classifications(self, choose: random.Random, suggested: str = "") -> list[Classified]:
        """Return possible classifications of all current items, in random order."""
        seen = [*await self.catalog.scan(0, 10_000)]
        choose.shuffle(seen)
        suggestion = SuggestedSkill(suggested) if suggested else None
        return [
            Classified(stored.id, stored.version, Classification((sure(choose.choice(NAMES)),), suggestion))
            for stored in seen
        ]

    @asynccontextmanager
    async def other_connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Yield a connection of another client, in a transaction until it commits."""
        async with await AsyncConnection.connect(self.url) as other:
            yield other

    async def until_a_lock_is_awaited(self) -> None:
        """Wait until a transaction waits for the lock of another."""
        waits = "wait_event_type = 'Lock' AND datname = current_database()"
        async with asyncio.timeout(20):
            while not await self.rows(f"SELECT FROM pg_stat_activity WHERE {waits}"):
                pass


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Parts]:
    """Open the stores, with four skills and no items."""
    async with open_pool(url, size=12, wait_seconds=30) as pool:
        parts = Parts(pool, url)
        for name in NAMES:
            await parts.taxonomy.add(Skill(name, name.title()), "ann")
        yield parts


@contextmanager
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Record the statements that are sent, with their values."""
    statements: list[tuple[str, Any]] = []
    execute = psycopg.AsyncCursor.execute

    async def recording(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
        statements.append((str(query), params))
        return await execute(self, query, params, **more)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.AsyncCursor, "execute", recording)
        yield statements


def rows_read(plan: dict[str, Any]) -> float:
    """Return the rows that the scans of a plan read, over all their runs."""
    own = 0.0
    if "Relation Name" in plan:
        kept = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        own = (kept + plan.get("Rows Removed by Index Recheck", 0)) * plan["Actual Loops"]
    return own + sum(map(rows_read, plan.get("Plans", ())))


@asynccontextmanager
async def through_a_relay(url: str) -> AsyncIterator[tuple[Relay, Pool]]:
    """Open a pool to the database behind a relay that can fail."""
    read = urlsplit(url)
    async with relay("127.0.0.1", read.port or 0) as between:
        behind = read.geturl().replace(f":{read.port}/", f":{between.port}/")
        async with open_pool(behind, size=1, wait_seconds=0.5) as pool:
            yield between, pool
