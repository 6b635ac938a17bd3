"""Skills on PostgreSQL: many at work on the same items at once, and what a batch costs."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, AsyncCursor
from psycopg_pool import AsyncConnectionPool

from tests.contracts.scenes import sure, tool, tools
from toolscript.adapters.postgres import (
    Pool,
    PostgresAssignments,
    PostgresCatalog,
    PostgresDirtySet,
    PostgresSuggestions,
    PostgresTaxonomy,
    open_pool,
)
from toolscript.adapters.postgres.assignments import AT_ONCE
from toolscript.errors import Conflict, NotFound
from toolscript.model.dirty import GenerationState
from toolscript.model.skills import Classification, Classified, Skill, SuggestedSkill, SuggestionState

FIRST = 1
NAMES = ("mail", "maps", "news", "files")
WISHES = ("Post", "Harbour", "Ship", "Crane")


class Parts:
    """All of the record on one pool."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.catalog = PostgresCatalog(pool)
        self.dirty = PostgresDirtySet(pool)
        self.taxonomy = PostgresTaxonomy(pool)
        self.assignments = PostgresAssignments(pool)
        self.suggestions = PostgresSuggestions(pool)

    async def rows(self, query: str, *values: object) -> list[Any]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query.encode(), values)).fetchall()

    async def words(self, choose: random.Random, asks_for: str = "") -> list[Classified]:
        """What a classifier may say of all items as they are now, in any order."""
        seen = [*await self.catalog.scan(0, 10_000)]
        choose.shuffle(seen)
        wish = SuggestedSkill(asks_for) if asks_for else None
        return [
            Classified(one.id, one.version, Classification((sure(choose.choice(NAMES)),), wish)) for one in seen
        ]


@pytest.fixture
async def parts(postgres_url: str) -> AsyncIterator[Parts]:
    async with open_pool(postgres_url, size=12, wait_seconds=30) as pool:
        made = Parts(pool)
        for name in NAMES:
            await made.taxonomy.add(Skill(name, name.title()), "ann")
        yield made


async def until_somebody_waits(parts: Parts) -> None:
    """Until a transaction is held up by another's lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(20):
        while (await parts.rows(query))[0][0] == 0:
            await asyncio.sleep(0)


async def allowed(doing: Awaitable[object]) -> None:
    """Somebody else was first, or took it away: that is an answer. A deadlock would not be."""
    try:
        await doing
    except (Conflict, NotFound):
        return


@pytest.mark.requirement("SK-008", "SK-009")
async def test_all_that_can_be_done_to_the_same_items_at_once_ends_well(parts: Parts) -> None:
    names = [f"tool {number}" for number in range(30)]
    await parts.catalog.store("file", [tool(name) for name in names])
    rounds = 12

    async def store(choose: random.Random) -> None:
        some = choose.sample(names, 12)
        await parts.catalog.store("file", [tool(name, str(choose.random())) for name in some])

    async def classify(choose: random.Random) -> None:
        await parts.assignments.record(await parts.words(choose, choose.choice(WISHES)))

    async def wish_all(choose: random.Random) -> None:
        words = [
            Classified(one.item_id, one.version, Classification((), SuggestedSkill(choose.choice(WISHES))))
            for one in await parts.words(choose)
        ]
        await parts.assignments.record(words)

    async def decide_by_hand(choose: random.Random) -> None:
        for one in choose.sample([seen.id for seen in await parts.catalog.scan(0, 100)], 4):
            await allowed(parts.assignments.set_by_hand(one, choose.sample(NAMES, 2), "ann"))
            if choose.random() < 0.7:
                await allowed(parts.assignments.release(one, "ann"))

    async def review(choose: random.Random) -> None:
        for one in await parts.suggestions.page(0, 2):
            if choose.random() < 0.5:
                await allowed(parts.suggestions.approve(one.id, Skill(f"skill_{one.id}", "New"), "ann"))
            else:
                await allowed(parts.suggestions.merge(one.id, choose.choice(NAMES), "ann"))

    async def change_taxonomy(choose: random.Random) -> None:
        await parts.taxonomy.change(Skill(choose.choice(NAMES), str(choose.random())), "ann")
        await parts.assignments.reclassify(0, 100, skill_id=choose.choice((None, *NAMES)))

    async def remove(choose: random.Random) -> None:
        await parts.catalog.remove("file", [tool(name).key for name in choose.sample(names, 3)])

    async def follow(choose: random.Random) -> None:
        await parts.dirty.clear(FIRST, await parts.dirty.claim(FIRST, 20, 60))
        await parts.dirty.begin(f"model {choose.randrange(2)}")

    async def keep_doing(what: Any, seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(rounds):
            await what(choose)

    work = (store, classify, classify, wish_all, decide_by_hand, review, change_taxonomy, remove, follow)
    await asyncio.gather(*(keep_doing(what, seed) for seed, what in enumerate(work)))
    await require_sound(parts)


async def require_sound(parts: Parts) -> None:
    """What must be true of the tables whoever did what in which order."""
    wrong_primaries = """
        SELECT tool_id FROM mcp.tool_skill_assignments GROUP BY tool_id
        HAVING count(*) FILTER (WHERE is_primary) <> 1 OR count(*) > 10
    """
    by_hand_and_not = """
        SELECT items.id FROM mcp.items JOIN mcp.tool_skill_assignments assigned ON tool_id = items.id
        WHERE (skills_by_hand AND (assigned.source <> 'human' OR needs_skills))
           OR (NOT skills_by_hand AND NOT needs_skills AND assigned.source = 'human')
    """
    asking_twice = """
        SELECT tool_id FROM mcp.skill_suggestion_items asks JOIN mcp.skill_suggestions asked
            ON asked.id = asks.suggestion_id
        WHERE status = 'pending' GROUP BY tool_id HAVING count(*) > 1
    """
    unfollowed = """
        SELECT items.id FROM mcp.items JOIN mcp.dirty_items dirty ON item_id = items.id
        WHERE dirty.generation = 1 AND dirty.version < items.version
    """
    decided_without_skill = """
        SELECT id FROM mcp.skill_suggestions
        WHERE (status IN ('approved', 'merged')) <> (skill_id IS NOT NULL) OR (status = 'pending') <> (reviewed_by IS NULL)
    """
    for query in (wrong_primaries, by_hand_and_not, asking_twice, unfollowed, decided_without_skill):
        assert await parts.rows(query) == [], query


@pytest.mark.requirement("SK-006")
async def test_a_wish_that_meets_an_approval_is_heard_by_it_or_follows_it(parts: Parts) -> None:
    await parts.catalog.store("file", tools(2))
    one, two = await parts.words(random.Random(0), "Post")
    await parts.assignments.record([one])
    (pending,) = await parts.suggestions.page(0, 10)
    async with await AsyncConnection.connect(parts.pool.conninfo) as other:
        await other.execute("SELECT FROM mcp.skill_suggestions WHERE id = %s FOR UPDATE", (pending.id,))
        approving = asyncio.create_task(parts.suggestions.approve(pending.id, Skill("post", "Post"), "ann"))
        await until_somebody_waits(parts)
        recording = asyncio.create_task(parts.assignments.record([two]))
        await other.commit()
    decided, taken = await asyncio.gather(approving, recording)
    assert decided.state is SuggestionState.APPROVED
    has_skill = "post" in {found.skill_id for _, assigned in taken.values() for found in assigned}
    (stored,) = await parts.catalog.items([two.item_id])
    assert has_skill or stored.needs_skills


@pytest.mark.requirement("SK-004")
async def test_a_skill_that_is_deactivated_while_a_classifier_s_word_comes_in_gets_no_item(parts: Parts) -> None:
    await parts.catalog.store("file", tools(1))
    (seen,) = await parts.catalog.scan(0, 10)
    word = Classified(seen.id, seen.version, Classification((sure("mail"), sure("maps", 0.7))))
    async with await AsyncConnection.connect(parts.pool.conninfo) as other:
        await other.execute("UPDATE mcp.skill_categories SET is_active = false WHERE id = 'mail'")
        recording = asyncio.create_task(parts.assignments.record([word]))
        await until_somebody_waits(parts)
        await other.commit()
    ((_, found),) = (await recording).values()
    assert found == (sure("maps", 0.7),)


@pytest.mark.requirement("SK-008")
async def test_a_word_that_waited_for_a_person_s_is_not_taken(parts: Parts) -> None:
    await parts.catalog.store("file", tools(1))
    (seen,) = await parts.catalog.scan(0, 10)
    word = Classified(seen.id, seen.version, Classification((sure("mail"),), SuggestedSkill("Post")))
    async with await AsyncConnection.connect(parts.pool.conninfo) as other:
        await other.execute("UPDATE mcp.items SET skills_by_hand = true, needs_skills = false")
        recording = asyncio.create_task(parts.assignments.record([word]))
        await until_somebody_waits(parts)
        await other.commit()
    assert await recording == {}
    assert await parts.suggestions.page(0, 10, None) == []


@pytest.mark.requirement("SK-008")
async def test_a_page_that_people_take_over_meanwhile_does_not_end_reclassifying(parts: Parts) -> None:
    await parts.catalog.store("file", tools(3))
    one, two, _ = [seen.id for seen in await parts.catalog.scan(0, 10)]
    async with await AsyncConnection.connect(parts.pool.conninfo) as other:
        await other.execute("UPDATE mcp.items SET skills_by_hand = true WHERE id = %s", (one,))
        reclassifying = asyncio.create_task(parts.assignments.reclassify(0, 1))
        await until_somebody_waits(parts)
        await other.commit()
    assert await reclassifying == [two]


@pytest.mark.requirement("SK-006")
async def test_a_wish_of_more_items_than_fit_in_one_statement_is_approved_at_once(parts: Parts) -> None:
    count = AT_ONCE + 50
    await parts.catalog.store("file", tools(count))
    await parts.assignments.record(await parts.words(random.Random(0), "Post"))
    (pending,) = await parts.suggestions.page(0, 10)
    assert pending.asked_by == count
    await parts.suggestions.approve(pending.id, Skill("post", "Post"), "ann")
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
    words = await parts.words(random.Random(0), "Post")
    counting: Any = AsyncConnectionPool(
        parts.pool.conninfo, min_size=1, max_size=1, open=False, kwargs={"cursor_factory": Counting}
    )
    async with counting as pool:
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
    for members, generation in ((7, FIRST), (9, building.id)):
        assert await parts.rows(counts, members, generation)
    assert (await parts.taxonomy.find("mail")).tool_count == 7
    await parts.dirty.set_state(building.id, GenerationState.LIVE)
    assert (await parts.taxonomy.find("mail")).tool_count == 9


async def test_a_changed_skill_is_behind_in_every_generation(parts: Parts) -> None:
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
