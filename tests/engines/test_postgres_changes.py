"""What only the real catalog can get wrong about changes: how much it asks, and who waits for whom."""

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
    """The statements that are sent."""
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


async def test_what_did_not_change_is_not_sent_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = PostgresCatalog(pool)
    await catalog.store("file", tools(50))
    with counted(monkeypatch) as sent:
        assert await catalog.store("file", tools(50)) == StoreReport(unchanged=50)
    # When a source was synced last is written down, whatever it sent.
    written = [one for one in sent if "INSERT" in one or "UPDATE mcp" in one]
    assert not [one for one in written if "mcp.sources" not in one]


async def test_stores_removals_decisions_and_assignments_at_once_never_wait_in_a_ring(postgres_url: str) -> None:
    async with open_pool(postgres_url, size=12) as pool:
        applying, holding = PostgresCatalog(pool), PostgresCatalog(pool, hold_changes=True)
        changes, assignments = PostgresItemChanges(pool), PostgresAssignments(pool)
        await PostgresTaxonomy(pool).add(Skill("some_skill", "Some skill"), "ada")
        await applying.store("file", tools(60))
        ids = [seen.id for seen in await applying.scan(0, 100)][:20]

        async def decide() -> None:
            for one in await changes.page(None, 20, ChangeState.HELD):
                # Its source may have moved on, or the item be gone.
                with suppress(Conflict, NotFound):
                    await changes.approve(one.id, "ada")

        for number in range(4):
            backwards = tools(60, f"round {number}")[::-1]
            await asyncio.gather(
                applying.store("file", backwards[:40]),
                holding.store("file", tools(60, f"other {number}")[:50]),
                holding.store("file", tools(60, f"held {number}")),
                applying.remove("file", [one.key for one in backwards[:5]]),
                applying.keep_only("file", [one.key for one in backwards[3:]]),
                assignments.reclassify(0, 100),
                *(assignments.set_by_hand(id_, ["some_skill"], "ada") for id_ in ids[::-4]),
                decide(),
            )
        assert await applying.count() > 0
        held = await changes.page(None, 200, ChangeState.HELD)
        assert len({one.item_id for one in held}) == len(held)
