"""Counts the rows and points that one change touches, in a catalog of any size.

By hand, in a database and under aliases of its own (made from those of the environment, and removed at the end):

    python -m tests.e2e.bounded_writes --items 1000000 --skills 1000
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

from tests.chaos.fire.topics import TopicClassifier, item
from tests.conftest import fresh_database, fresh_installation
from toolscript.core.items import Item
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.retrieval.model import IndexCard, Point, PointVersion
from toolscript.core.retrieval.ports import Index
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill
from toolscript.core.values import silent
from toolscript.server import indexing
from toolscript.server.indexing import IndexWriter
from toolscript.server.skills import Classifying
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.versions import Opened, open_for_writing

SOURCE = "many"
BATCH = 5_000
LARGEST, SMALL, EMPTY = "s0000", "s0001", "s_empty"

_CONNECTIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
_WRITTEN = """
SELECT relname, n_tup_ins + n_tup_upd + n_tup_del, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
FROM pg_stat_user_tables WHERE schemaname = 'mcp'
"""


class CountingIndex:
    """An index that counts written points."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.written = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    async def put(self, points: Sequence[Point]) -> None:
        self.written += len(points)
        await self._index.put(points)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        self.written += len(points)
        await self._index.remove(points)


@dataclass(frozen=True)
class Touched:
    """Rows and points touched by one change, until every index has followed."""

    rows: Mapping[str, int]
    rows_read: int
    points: int
    skill_points: int

    def __str__(self) -> str:
        each = ", ".join(f"{table} {count}" for table, count in sorted(self.rows.items()))
        return (
            f"{sum(self.rows.values())} rows ({each}), {self.points} item points,"
            f" {self.skill_points} skill points; {self.rows_read} rows read"
        )


@dataclass
class Scene:
    stores: Stores
    writer: IndexWriter
    items: CountingIndex
    skills: CountingIndex
    _before: dict[str, tuple[int, int]] | None = None

    async def drain(self) -> None:
        await self.writer.worker(silent).drain()

    async def touched(self, act: Callable[[], Awaitable[object]]) -> Touched:
        before = self._before or await self._statistics()
        self.items.written = self.skills.written = 0
        await act()
        await self.drain()
        self._before = after = await self._statistics()
        rows = {
            table: after[table][0] - before[table][0] for table in after if after[table][0] != before[table][0]
        }
        read = sum(after[table][1] - before[table][1] for table in after)
        return Touched(rows, read, self.items.written, self.skills.written)

    async def _statistics(self) -> dict[str, tuple[int, int]]:
        """Return the statistics after all current connections have ended: they report only at their end."""
        now = await self._connections()
        await self.stores.pool.drain()
        while now & await self._connections():  # noqa: ASYNC110 - the engine tells nobody
            await asyncio.sleep(0.1)
        async with self.stores.pool.connection() as conn:
            rows = await (await conn.execute(_WRITTEN)).fetchall()
        return {str(row[0]): (int(str(row[1])), int(str(row[2]))) for row in rows}

    async def _connections(self) -> set[int]:
        async with self.stores.pool.connection() as conn:
            rows = await (await conn.execute(_CONNECTIONS)).fetchall()
        return {int(str(row[0])) for row in rows}


@asynccontextmanager
async def opened_scene(settings: Settings) -> AsyncIterator[Scene]:
    embedder = HashEmbedder()
    async with open_stores(settings) as stores:
        opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(embedder.model))
        items, skills = CountingIndex(opened.index), CountingIndex(opened.skills)
        counting: Opened = replace(opened, index=items, skills=skills)  # type: ignore[arg-type]
        yield Scene(stores, IndexWriter(stores, embedder, Classifying(TopicClassifier()), counting), items, skills)


async def fill(scene: Scene, items: int, skills: int) -> None:
    """A quarter of all items are in one skill; the others are spread evenly."""
    for name in (*(f"s{number:04}" for number in range(skills)), EMPTY):
        await scene.stores.taxonomy.add(Skill(name, name), "ann")
    for start in range(0, items, BATCH):
        batch = [_item(number, skills) for number in range(start, min(items, start + BATCH))]
        await scene.stores.catalog.store(SOURCE, batch)
        await scene.drain()
        sys.stderr.write(f"\r{start + len(batch)} of {items} items")


def _item(number: int, skills: int) -> Item:
    name = LARGEST if number % 4 == 0 else f"s{1 + number % (skills - 1):04}"
    return item(_key(number), [name], number % 50)


def _key(number: int) -> str:
    return f"k{number:07}"


async def measured(scene: Scene) -> dict[str, Touched]:
    """Measure one change of each kind, to an item of the largest skill."""
    catalog, assignments = scene.stores.catalog, scene.stores.assignments
    (stored,) = [each for each in await catalog.items([1]) if each.item.key == _key(0)]
    moved = item(_key(0), [SMALL, "s0002", "s0003"], 99)

    async def deactivate() -> None:
        await scene.stores.taxonomy.change(Skill(LARGEST, LARGEST, is_active=False), "ann")

    return {
        "change its text": await scene.touched(lambda: catalog.store(SOURCE, [item(_key(0), [LARGEST], 98)])),
        "move it to three other skills": await scene.touched(lambda: catalog.store(SOURCE, [moved])),
        "assign it by hand": await scene.touched(lambda: assignments.set_by_hand(stored.id, [LARGEST], "ann")),
        "give it back": await scene.touched(lambda: assignments.release(stored.id, "ann")),
        "add one": await scene.touched(lambda: catalog.store(SOURCE, [item("new", [LARGEST], 1)])),
        "remove one": await scene.touched(lambda: catalog.remove(SOURCE, ["new"])),
        "deactivate the largest skill": await scene.touched(deactivate),
    }


async def run(settings: Settings, items: int, skills: int) -> dict[str, Touched]:
    async with opened_scene(settings) as scene:
        await fill(scene, items, skills)
        return await measured(scene)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--skills", type=int, default=1_000)
    arguments = parser.parse_args()
    engines, started = Settings(), time.monotonic()
    with fresh_database(engines, "template1") as url:
        upgrade(url)
        # Large batches fill faster; single changes are counted one by one.
        with fresh_installation(engines, url, "hash") as fresh, patch.object(indexing, "BATCH", 2_000):
            touched = asyncio.run(run(fresh.settings, arguments.items, arguments.skills))
    sys.stdout.write(
        f"{arguments.items} items, {arguments.skills} skills, "
        f"filled and measured in {time.monotonic() - started:.0f} s\n"
    )
    for what, each in touched.items():
        sys.stdout.write(f"{what}: {each}\n")


if __name__ == "__main__":
    main()
