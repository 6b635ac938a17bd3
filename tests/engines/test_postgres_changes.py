"""Changes in the real catalog: the number of statements, and locks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from tests.contracts.builders import tools
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.items import StoreReport
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.catalog import ChangeState
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.skills import PostgresTaxonomy

pytestmark = pytest.mark.requirement("SK-009")


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the statements that are sent."""
    sent: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(self: Any, query: Any, *args: Any, **more: Any) -> Any:
        sent.append(str(query))
        return await execute(self, query, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.AsyncCursor, "execute", counting)
        yield sent


@pytest.mark.parametrize("hold", [False, True])
async def test_a_batch_takes_as_many_statements_however_many_items_changed(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, hold: bool
) -> None:
    catalog = PostgresCatalog(pool, hold_changes=hold)
    await catalog.store("file", tools(300))
    numbers = []
    for size in (1, 300):
        for description in ("first", "second"):
            with counted(monkeypatch) as sent:
                await catalog.store("file", tools(size, f"{description} {size}"))
            numbers.append(len(sent))
    assert numbers[1] == numbers[3] <= 11
    assert numbers[0] <= numbers[1]


async def test_unchanged_items_are_not_sent_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = PostgresCatalog(pool)
    await catalog.store("file", tools(50))
    with counted(monkeypatch) as sent:
        assert await catalog.store("file", tools(50)) == StoreReport(unchanged=50)
    # The time of the last sync is written in any case.
    written = [statement for statement in sent if "INSERT" in statement or "UPDATE mcp" in statement]
    assert not [statement for statement in written if "mcp.sources" not in statement]


async def test_concurrent_stores_removals_decisions_and_assignments_never_deadlock(postgres_url: str) -> None:
    async with open_pool(postgres_url, size=12) as pool:
        applying, holding = PostgresCatalog(pool), PostgresCatalog(pool, hold_changes=True)
        changes, assignments = PostgresItemChanges(pool), PostgresAssignments(pool)
        await PostgresTaxonomy(pool).add(Skill("some_skill", "Some skill"), "ada")
        await applying.store("file", tools(60))
        ids = [seen.id for seen in await applying.scan(0, 100)][:20]

        async def decide() -> None:
            for change in await changes.page(None, 20, ChangeState.HELD):
                # The item may have changed again, or be gone.
                with suppress(Conflict, NotFound):
                    await changes.approve(change.id, "ada")

        for number in range(4):
            backwards = tools(60, f"round {number}")[::-1]
            await asyncio.gather(
                applying.store("file", backwards[:40]),
                holding.store("file", tools(60, f"other {number}")[:50]),
                holding.store("file", tools(60, f"held {number}")),
                applying.remove("file", [item.key for item in backwards[:5]]),
                applying.keep_only("file", [item.key for item in backwards[3:]]),
                assignments.reclassify(0, 100),
                *(assignments.set_by_hand(id_, ["some_skill"], "ada") for id_ in ids[::-4]),
                decide(),
            )
        assert await applying.count() > 0
        held = await changes.page(None, 200, ChangeState.HELD)
        assert len({change.item_id for change in held}) == len(held)
