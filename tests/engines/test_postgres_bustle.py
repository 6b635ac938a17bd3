"""All that can be done to the same items at once, on PostgreSQL: nobody deadlocks, and the tables stay sound."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.contracts.builders import FIRST, tool
from tests.engines.postgres_parts import NAMES, Parts, opened
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.taxonomy import Classification, Classified, Skill, SuggestedSkill

WISHES = [f"wish {number}" for number in range(24)]
TOOLS = [f"tool {number}" for number in range(60)]
ROUNDS = 12


@pytest.fixture
async def parts(postgres_url: str) -> AsyncIterator[Parts]:
    async with opened(postgres_url) as parts:
        yield parts


class Bustle:
    """What different people and workers do, each in an order of its own."""

    def __init__(self, parts: Parts, seed: int) -> None:
        self._parts = parts
        self._choose = random.Random(seed)

    async def store(self) -> None:
        some = self._choose.sample(TOOLS, 30)
        await self._parts.catalog.store("file", [tool(name, str(self._choose.random())) for name in some])

    async def remove(self) -> None:
        await self._parts.catalog.remove("file", [tool(name).key for name in self._choose.sample(TOOLS, 10)])

    async def classify(self) -> None:
        await self._parts.assignments.record(await self._parts.words(self._choose, self._choose.choice(WISHES)))

    async def wish(self) -> None:
        wished = [
            Classified(one.item_id, one.version, Classification((), SuggestedSkill(self._choose.choice(WISHES))))
            for one in await self._parts.words(self._choose)
        ]
        await self._parts.assignments.record(wished)

    async def decide_by_hand(self) -> None:
        ids = [seen.id for seen in await self._parts.catalog.scan(0, 100)]
        for one in self._choose.sample(ids, min(4, len(ids))):
            await allowed(self._parts.assignments.set_by_hand(one, self._choose.sample(NAMES, 2), "ann"))
            if self._choose.random() < 0.7:
                await allowed(self._parts.assignments.release(one, "ann"))

    async def review(self) -> None:
        for one in await self._parts.suggestions.page(0, 2):
            if one.id % 2:
                await allowed(self._parts.suggestions.approve(one.id, Skill(f"skill_{one.id}", "New"), "ann"))
            else:
                await allowed(self._parts.suggestions.merge(one.id, self._choose.choice(NAMES), "ann"))

    async def change_skills(self) -> None:
        await self._parts.taxonomy.change(Skill(self._choose.choice(NAMES), str(self._choose.random())), "ann")

    async def reclassify(self) -> None:
        await self._parts.assignments.reclassify(0, 100, skill_id=self._choose.choice((None, *NAMES)))

    async def follow(self) -> None:
        await self._parts.dirty.clear(FIRST, await self._parts.dirty.claim(FIRST, 20, 60))
        await self._parts.dirty.begin(f"model {self._choose.randrange(2)}")


WORK: tuple[Callable[[Bustle], Awaitable[None]], ...] = (
    Bustle.store,
    Bustle.remove,
    Bustle.classify,
    Bustle.wish,
    Bustle.wish,
    Bustle.decide_by_hand,
    Bustle.review,
    Bustle.change_skills,
    Bustle.reclassify,
    Bustle.follow,
)


async def allowed(doing: Awaitable[object]) -> None:
    """Somebody else was first, or took it away: that is an answer. A deadlock is none."""
    try:
        await doing
    except (Conflict, NotFound):
        return


@pytest.mark.requirement("SK-008", "SK-009")
async def test_all_that_can_be_done_to_the_same_items_at_once_ends_well(parts: Parts) -> None:
    await parts.catalog.store("file", [tool(name) for name in TOOLS])
    await Bustle(parts, 0).wish()

    async def keep_doing(what: Callable[[Bustle], Awaitable[None]], seed: int) -> None:
        bustle = Bustle(parts, seed)
        for _ in range(ROUNDS):
            await what(bustle)

    await asyncio.gather(*(keep_doing(what, seed) for seed, what in enumerate(WORK)))
    done = {row[0] for row in await parts.rows("SELECT DISTINCT action FROM mcp.audit")}
    assert done >= {"item.assign", "item.release", "skill.change", "suggestion.merge", "suggestion.approve"}
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
        WHERE (status IN ('approved', 'merged')) <> (skill_id IS NOT NULL)
           OR (status = 'pending') <> (reviewed_by IS NULL)
    """
    for query in (wrong_primaries, by_hand_and_not, asking_twice, unfollowed, decided_without_skill):
        assert await parts.rows(query) == [], query
