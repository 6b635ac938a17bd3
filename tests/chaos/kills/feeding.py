"""Creates work for workers: items change, disappear and return."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

from toolscript.core.items import Item
from toolscript.server.stores import Stores

SOURCE = "file"
PORTION = 200


class Feeding:
    def __init__(self, stores: Stores, items: Sequence[Item], chance: random.Random) -> None:
        self._stores = stores
        self._items = items
        self._chance = chance
        self._gone: set[str] = set()
        self._turn = asyncio.Lock()
        self.changes = 0

    @property
    def active(self) -> int:
        return len(self._items) - len(self._gone)

    async def change_some(self) -> None:
        # Sequential: with concurrent changes the expected state would be unknown.
        async with self._turn:
            await self._change_some()

    async def _change_some(self) -> None:
        picked = self._chance.sample(self._items, min(PORTION, len(self._items)))
        going = {item.key for item in picked[: len(picked) // 10]} - self._gone
        await self._stores.catalog.remove(SOURCE, sorted(going))
        staying = [item for item in picked if item.key not in going]
        self.changes += len(picked)
        # Half with another text, half unchanged: removed items return, unchanged ones stay.
        message = [
            replace(item, description=f"{item.description} Said {self.changes} times.") if number % 2 else item
            for number, item in enumerate(staying)
        ]
        await self._stores.catalog.store(SOURCE, message)
        self._gone = (self._gone | going) - {item.key for item in staying}
