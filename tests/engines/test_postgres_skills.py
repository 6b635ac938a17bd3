"""Skills on PostgreSQL: locks, the cost of a batch, and constraints of the tables."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncCursor

from tests.contracts.builders import FIRST, sure, tools
from tests.engines.postgres_stores import Parts, opened
from toolscript.core.postgres.pool import open_pool
from toolscript.core.taxonomy import (
    MAX_COUNTED,
    Classification,
    Classified,
    Skill,
    SuggestedSkill,
    SuggestionState,
)
from toolscript.tools.model.catalog import IndexVersionState
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.suggestions import CALLED_AT_ONCE


@pytest.fixture
async def parts(postgres_url: str) -> AsyncIterator[Parts]:
    async with opened(postgres_url) as parts:
        yield parts


@pytest.mark.requirement("SK-006")
async def test_a_suggestion_concurrent_with_an_approval_is_included_or_follows_it(parts: Parts) -> None:
    await parts.catalog.store("file", tools(2))
    first, second = await parts.classifications(random.Random(0), "Post")
    await parts.assignments.record([first])
    (pending,) = await parts.suggestions.page(0, 10)
    async with parts.other_connection() as other:
        await other.execute("SELECT FROM mcp.skill_suggestions WHERE id = %s FOR UPDATE", (pending.id,))
        approving = asyncio.create_task(parts.suggestions.approve(pending.id, Skill("post", "Post"), "ann"))
        await parts.until_a_lock_is_awaited()
        recording = asyncio.create_task(parts.assignments.record([second]))
        await other.commit()
    decided, taken = await asyncio.gather(approving, recording)
    assert decided.state is SuggestionState.APPROVED
    has_skill = "post" in {assignment.skill_id for _, assigned in taken.values() for assignment in assigned}
    (stored,) = await parts.catalog.items([second.item_id])
    assert has_skill or stored.needs_skills


@pytest.mark.requirement("SK-004")
async def test_a_skill_deactivated_during_classification_gets_no_item(parts: Parts) -> None:
    await parts.catalog.store("file", tools(1))
    (seen,) = await parts.catalog.scan(0, 10)
    classified = Classified(seen.id, seen.version, Classification((sure("mail"), sure("maps", 0.7))))
    async with parts.other_connection() as other:
        await other.execute("UPDATE mcp.skill_categories SET is_active = false WHERE id = 'mail'")
        recording = asyncio.create_task(parts.assignments.record([classified]))
        await parts.until_a_lock_is_awaited()
        await other.commit()
    ((_, assigned),) = (await recording).values()
    assert assigned == (sure("maps", 0.7),)


@pytest.mark.requirement("SK-008")
async def test_a_classification_that_waited_for_a_manual_decision_is_dropped(parts: Parts) -> None:
    await parts.catalog.store("file", tools(1))
    (seen,) = await parts.catalog.scan(0, 10)
    word = Classified(seen.id, seen.version, Classification((sure("mail"),), SuggestedSkill("Post")))
    async with parts.other_connection() as other:
        await other.execute("UPDATE mcp.items SET skills_by_hand = true, needs_skills = false")
        recording = asyncio.create_task(parts.assignments.record([word]))
        await parts.until_a_lock_is_awaited()
        await other.commit()
    assert await recording == {}
    assert await parts.suggestions.page(0, 10, None) == []


@pytest.mark.requirement("SK-008")
async def test_a_page_with_concurrent_manual_decisions_does_not_end_reclassification(parts: Parts) -> None:
    await parts.catalog.store("file", tools(3))
    first, second, _ = [seen.id for seen in await parts.catalog.scan(0, 10)]
    async with parts.other_connection() as other:
        await other.execute("UPDATE mcp.items SET skills_by_hand = true WHERE id = %s", (first,))
        reclassifying = asyncio.create_task(parts.assignments.reclassify(0, 1))
        await parts.until_a_lock_is_awaited()
        await other.commit()
    assert await reclassifying == [second]


@pytest.mark.requirement("SK-006")
async def test_a_decision_reclassifies_the_first_requesters_at_once_and_the_rest_page_by_page(
    parts: Parts,
) -> None:
    count = 2 * CALLED_AT_ONCE + 50
    await parts.catalog.store("file", tools(count))
    await parts.assignments.record(await parts.classifications(random.Random(0), "Post"))
    (pending,) = await parts.suggestions.page(0, 10)
    assert pending.asked_by == MAX_COUNTED
    await parts.suggestions.approve(pending.id, Skill("post", "Post"), "ann")
    assert [await parts.suggestions.reclassify_more() for _ in range(3)] == [CALLED_AT_ONCE, 50, 0]
    (waiting,) = await parts.rows(
        "SELECT count(*), min(items.version) FROM mcp.items JOIN mcp.dirty_items dirty "
        "ON item_id = items.id AND dirty.version = items.version WHERE needs_skills"
    )
    assert waiting[0] == count


class Counting(AsyncCursor[Any]):
    statements = 0

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        Counting.statements += 1
        return await super().execute(*args, **kwargs)


@pytest.mark.requirement("SK-004")
async def test_a_batch_takes_as_many_statements_as_one_item(parts: Parts) -> None:
    await parts.catalog.store("file", tools(101))
    words = await parts.classifications(random.Random(0), "Post")
    async with open_pool(parts.url, size=1) as pool:
        async with pool.connection() as its_only_one:
            its_only_one.cursor_factory = Counting
        assignments = PostgresAssignments(pool)
        costs = []
        for batch in (words[:1], words[1:]):
            Counting.statements = 0
            assert len(await assignments.record(batch)) == len(batch)
            costs.append(Counting.statements)
    assert costs[0] == costs[1] > 1


@pytest.mark.requirement("SK-001", "SK-007")
async def test_tools_are_counted_by_the_index_that_is_live(parts: Parts) -> None:
    building = await parts.dirty.begin("two")
    counts = "UPDATE mcp.skill_vectors SET members = %s WHERE generation = %s AND skill_id = 'mail' RETURNING 1"
    for members, index_version in ((7, FIRST), (9, building.id)):
        assert await parts.rows(counts, members, index_version)
    assert (await parts.taxonomy.find("mail")).tool_count == 7
    await parts.dirty.set_state(building.id, IndexVersionState.LIVE)
    assert (await parts.taxonomy.find("mail")).tool_count == 9


async def test_a_changed_skill_is_behind_in_every_index_version(parts: Parts) -> None:
    building = await parts.dirty.begin("two")
    await parts.rows("UPDATE mcp.skill_vectors SET point_version = version RETURNING 1")
    await parts.taxonomy.change(Skill("mail", "Post"), "ann")
    behind = await parts.rows("SELECT generation, skill_id FROM mcp.skill_vectors WHERE point_version < version")
    assert sorted(behind) == [(FIRST, "mail"), (building.id, "mail")]


@pytest.mark.requirement("SK-002")
async def test_no_row_can_name_a_second_primary_skill(parts: Parts) -> None:
    await parts.catalog.store("file", tools(1))
    (seen,) = await parts.catalog.scan(0, 10)
    insert = "INSERT INTO mcp.tool_skill_assignments VALUES (%s, %s, 1, true, 'human') RETURNING 1"
    await parts.rows(insert, seen.id, "mail")
    with pytest.raises(psycopg.errors.UniqueViolation):
        await parts.rows(insert, seen.id, "maps")
