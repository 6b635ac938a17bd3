"""All operations on the same items at once, on PostgreSQL: no deadlocks, and the tables stay consistent."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.contracts.builders import FIRST, tool
from tests.engines.postgres_stores import NAMES, Parts, opened
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.taxonomy import Classification, Classified, Skill, SuggestedSkill

SUGGESTIONS = [f"wish {number}" for number in range(24)]
TOOLS = [f"tool {number}" for number in range(60)]
ROUNDS = 12


@pytest.fixture
async def parts(postgres_url: str) -> AsyncIterator[Parts]:
    async with opened(postgres_url) as parts:
        yield parts


class Bustle:
    """Operations of different people and workers, each in its own order."""

    def __init__(self, parts: Parts, seed: int) -> None:
        self._parts = parts
        self._choose = random.Random(seed)

    async def store(self) -> None:
        some = self._choose.sample(TOOLS, 30)
        await self._parts.catalog.store("file", [tool(name, str(self._choose.random())) for name in some])

    async def remove(self) -> None:
        await self._parts.catalog.remove("file", [tool(name).key for name in self._choose.sample(TOOLS, 10)])

    async def classify(self) -> None:
        await self._parts.assignments.record(
            await self._parts.classifications(self._choose, self._choose.choice(SUGGESTIONS))
        )

    async def suggest(self) -> None:
        wished = [
            Classified(
                seen.item_id, seen.version, Classification((), SuggestedSkill(self._choose.choice(SUGGESTIONS)))
            )
            for seen in await self._parts.classifications(self._choose)
        ]
        await self._parts.assignments.record(wished)

    async def decide_by_hand(self) -> None:
        ids = [seen.id for seen in await self._parts.catalog.scan(0, 100)]
        for item_id in self._choose.sample(ids, min(4, len(ids))):
            await allowed(self._parts.assignments.set_by_hand(item_id, self._choose.sample(NAMES, 2), "ann"))
            if self._choose.random() < 0.7:
                await allowed(self._parts.assignments.release(item_id, "ann"))

    async def review(self) -> None:
        for suggestion in await self._parts.suggestions.page(0, 2):
            if suggestion.id % 2:
                await allowed(
                    self._parts.suggestions.approve(suggestion.id, Skill(f"skill_{suggestion.id}", "New"), "ann")
                )
            else:
                await allowed(self._parts.suggestions.merge(suggestion.id, self._choose.choice(NAMES), "ann"))

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
    Bustle.suggest,
    Bustle.suggest,
    Bustle.decide_by_hand,
    Bustle.review,
    Bustle.change_skills,
    Bustle.reclassify,
    Bustle.follow,
)


async def allowed(doing: Awaitable[object]) -> None:
    """Allow conflicts and missing items, but no deadlock."""
    try:
        await doing
    except (Conflict, NotFound):
        return


@pytest.mark.nightly
@pytest.mark.requirement("SK-008", "SK-009")
async def test_all_operations_on_the_same_items_run_concurrently_without_errors(parts: Parts) -> None:
    await parts.catalog.store("file", [tool(name) for name in TOOLS])
    await Bustle(parts, 0).suggest()

    async def keep_doing(what: Callable[[Bustle], Awaitable[None]], seed: int) -> None:
        bustle = Bustle(parts, seed)
        for _ in range(ROUNDS):
            await what(bustle)

    await asyncio.gather(*(keep_doing(what, seed) for seed, what in enumerate(WORK)))
    done = {row[0] for row in await parts.rows("SELECT DISTINCT action FROM mcp.audit")}
    assert done >= {"item.assign", "item.release", "skill.change", "suggestion.merge", "suggestion.approve"}
    await require_sound(parts)


async def require_sound(parts: Parts) -> None:
    """Check the invariants of the tables."""
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
