"""The items of a judged set as points of a collection, and their skills as points of another."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.index import PointVersion
from toolscript.model.items import Item, StoredItem
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress
from toolscript.ports import Embedder, Index, Indexes
from toolscript.service.judged_skills import ItemsBySkill, JudgedSkills
from toolscript.service.skills import default_skills
from toolscript.sync.item_vectors import embed_items
from toolscript.sync.points import point_of

BATCH = 500
VERSION = 1


@dataclass(frozen=True)
class Collections:
    """Where items go, and where skills go; None where nothing is routed, so that nothing has to be classified."""

    items: Indexes
    skills: Indexes | None = None


@dataclass(frozen=True)
class Loaded:
    """What can be searched, and which items there are by skill; without skills, nobody asks for any."""

    items: Index
    skills: Index
    by_skill: ItemsBySkill | None


class JudgedPoints:
    """What is loaded next is put and removed, not built anew."""

    def __init__(self, collections: Collections, embedder: Embedder, on_progress: OnProgress) -> None:
        self._collections = collections
        self._embedder = embedder
        self._on_progress = on_progress
        self._card = IndexCard(embedder.model)
        self._skills = None if collections.skills is None else JudgedSkills(embedder, default_skills())
        self._ids: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._there: set[str] = set()
        self._loaded: Loaded | None = None

    def key_of(self, id_: int) -> str:
        return self._keys[id_]

    async def load(self, items: Sequence[Item]) -> Loaded:
        """The same items are not opened again: an index knows its words by a sample, and each time by another."""
        wanted = {item.key for item in items}
        if self._loaded is None or wanted != self._there:
            for item in items:
                self._keys[self._ids.setdefault(item.key, len(self._ids) + 1)] = item.key
            await self._fill(items)
            self._there = wanted
            self._loaded = await self._open()
        return self._loaded

    async def _fill(self, items: Sequence[Item]) -> None:
        indexes = self._collections.items
        if self._there:
            await self._follow(await indexes.open(self._card), items)
            return
        async with indexes.loading(self._card):
            await self._follow(await indexes.open(self._card), items)

    async def _open(self) -> Loaded:
        """When all is in it: an index looks at its points then."""
        items = await self._collections.items.open(self._card)
        if self._skills is None or self._collections.skills is None:
            return Loaded(items, items, None)
        await self._skills.follow(await self._collections.skills.open(self._card))
        by_skill = ItemsBySkill({self._keys[id_]: one for id_, one in self._skills.of_items().items()})
        return Loaded(items, await self._collections.skills.open(self._card), by_skill)

    async def _follow(self, index: Index, items: Sequence[Item]) -> None:
        wanted = {item.key for item in items}
        gone = [self._ids[key] for key in sorted(self._there - wanted)]
        for start in range(0, len(gone), BATCH):
            await index.remove([PointVersion(id_, VERSION) for id_ in gone[start : start + BATCH]])
        if self._skills is not None:
            self._skills.forget(gone)
        new = [item for item in items if item.key not in self._there]
        for start in range(0, len(new), BATCH):
            await self._put(index, new[start : start + BATCH])
            if not self._there:
                self._on_progress(Progress("fill", min(start + BATCH, len(new)), len(new)))

    async def _put(self, index: Index, items: Sequence[Item]) -> None:
        vectors = await embed_items(self._embedder, items)
        stored = [StoredItem(self._ids[item.key], VERSION, item) for item in items]
        if self._skills is not None:
            stored = await self._skills.settled(stored, vectors)
        await index.put([point_of(one, vector) for one, vector in zip(stored, vectors, strict=True)])
