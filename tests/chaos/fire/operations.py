"""Random operations on both the system and the model, deterministic for a seed."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.chaos.fire import topics
from tests.chaos.fire.model import Model
from tests.chaos.fire.topics import SOURCES, source_of
from toolscript.core.errors import CatalogUnavailable
from toolscript.core.taxonomy import Skill, SuggestionState
from toolscript.server.stores import Stores

TRIES = 20

Operation = Callable[[], Awaitable[None]]


@dataclass
class Round:
    """`lanes` run concurrently; operations within a lane run in order."""

    lanes: list[list[Operation]]
    moving: frozenset[int]


class Operations:
    def __init__(self, stores: Stores, model: Model, chance: random.Random, max_items: int) -> None:
        self._stores = stores
        self._model = model
        self._chance = chance
        self._max_items = max_items
        self.done: dict[str, int] = {}

    def round(self, count: int) -> Round:
        chance = self._chance
        moving = frozenset(chance.sample(range(topics.GROUPS), topics.GROUPS // 4))
        still = [group for group in range(topics.GROUPS) if group not in moving]
        people = [item for group in sorted(moving) if (item := self._of_people(group))]
        lanes: list[list[Operation]] = [[] for _ in range(SOURCES)]
        for _ in range(count - len(people)):
            number = chance.randrange(self._max_items)
            lanes[number % SOURCES].append(self._of_item(f"k{number:05}", still))
        return Round([*lanes, people], moving)

    def _of_item(self, key: str, still: Sequence[int]) -> Operation:
        """Choose an operation now; whether the item exists is only known when it runs."""
        chance = self._chance
        what, salt, group = chance.random(), chance.randrange(40), chance.choice(still)
        numbers = range(topics.TOPICS_PER_GROUP)
        names = [topics.topic(group, n) for n in chance.sample(numbers, chance.randint(0, 3))]
        wish = [topics.topic(chance.choice(still), n) for n in chance.sample(numbers, 2)]

        async def run() -> None:
            existing = self._model.items.get(key)
            if existing is None or what < 0.55:
                await self._store(key, names, salt, "change" if existing else "add")
            elif what < 0.75:
                await self._remove(key)
            elif what < 0.9:
                await self._by_hand(key, [skill for skill in wish if self._model.active.get(skill)])
            elif existing.by_hand and self._group(key) in (None, *still):
                await self._release(key)

        return run

    def _group(self, key: str) -> int | None:
        names = topics.topics_of(self._model.items[key].item)
        return topics.group_of(names[0]) if names else None

    async def _store(self, key: str, names: Sequence[str], salt: int, kind: str) -> None:
        item = topics.item(key, names, salt)
        await self._do(kind, lambda: self._stores.catalog.store(source_of(key), [item]))
        self._model.store(item)

    async def _remove(self, key: str) -> None:
        await self._do("remove", lambda: self._stores.catalog.remove(source_of(key), [key]))
        self._model.remove(key)

    async def _by_hand(self, key: str, skills: list[str]) -> None:
        id_ = await self._id(key)
        await self._do("reassign", lambda: self._stores.assignments.set_by_hand(id_, skills, "ann"))
        self._model.set_by_hand(key, skills)

    async def _release(self, key: str) -> None:
        id_ = await self._id(key)
        await self._do("release", lambda: self._stores.assignments.release(id_, "ann"))
        self._model.release(key)

    def _of_people(self, group: int) -> Operation | None:
        """Choose one decision about one group in a settled state: pending suggestions and existing skills."""
        model = self._model
        requests = sorted(name for name in model.asked() if topics.group_of(name) == group)
        skills = sorted(name for name in model.active if topics.group_of(name) == group)
        active = [name for name in skills if model.active[name]]
        # The suggested skill may have been deactivated: its id is taken.
        choices = [partial(self._approve, name) for name in requests[:3] if name not in model.active]
        choices += [partial(self._reject, name) for name in requests[2:3]]
        choices += [partial(self._merge, name, into) for name in requests[:1] for into in active]
        choices += [partial(self._switch, name) for name in skills]
        choices += [partial(self._edit, name) for name in skills[:1]]
        return self._chance.choice(choices) if choices else None

    async def add_skill(self, name: str) -> None:
        await self._do("add skill", lambda: self._stores.taxonomy.add(Skill(name, name, "At first"), "ann"))
        self._model.active[name], self._model.descriptions[name] = True, "At first"

    async def _approve(self, name: str) -> None:
        id_, skill = await self._suggestion(name), Skill(name, name, f"About {name}")
        await self._do("approve", lambda: self._stores.suggestions.approve(id_, skill, "ann"))
        self._model.decide(name, SuggestionState.APPROVED, name)

    async def _reject(self, name: str) -> None:
        id_ = await self._suggestion(name)
        await self._do("reject", lambda: self._stores.suggestions.reject(id_, "ann"))
        self._model.decide(name, SuggestionState.REJECTED, None)

    async def _merge(self, name: str, into: str) -> None:
        id_ = await self._suggestion(name)
        await self._do("merge", lambda: self._stores.suggestions.merge(id_, into, "ann"))
        self._model.decide(name, SuggestionState.MERGED, into)

    async def _switch(self, name: str) -> None:
        active = not self._model.active[name]
        skill = Skill(name, name, self._model.descriptions[name], is_active=active)
        kind = "activate" if active else "deactivate"
        await self._do(kind, lambda: self._stores.taxonomy.change(skill, "ann"))
        self._model.active[name] = active

    async def _edit(self, name: str) -> None:
        text = f"{self._model.descriptions[name]} and more"[-200:]
        skill = Skill(name, name, text, is_active=self._model.active[name])
        await self._do("edit", lambda: self._stores.taxonomy.change(skill, "ann"))
        self._model.descriptions[name] = text

    async def _do(self, kind: str, act: Callable[[], Awaitable[object]]) -> None:
        """Run a decision, and retry on a conflict."""
        for left in reversed(range(TRIES)):
            try:
                await act()
                break
            except CatalogUnavailable:
                if not left:
                    raise
                await asyncio.sleep(0.05)
        self.done[kind] = self.done.get(kind, 0) + 1

    async def _id(self, key: str) -> int:
        return await self._one("SELECT id FROM mcp.items WHERE source = %s AND key = %s", (source_of(key), key))

    async def _suggestion(self, name: str) -> int:
        return await self._one("SELECT id FROM mcp.skill_suggestions WHERE key = %s", (name,))

    async def _one(self, query: str, values: tuple[str, ...]) -> int:
        async with self._stores.pool.connection() as conn:
            row = await (await conn.execute(query.encode(), values)).fetchone()
        assert row, values
        return int(str(row[0]))
