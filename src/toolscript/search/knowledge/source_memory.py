"""What hits show of their sources, remembered: a source has many chunks, and hardly ever changes.

One that was ingested anew is shown as it was for a minute at most. What has left is not shown at all, because its
chunks are read anew by every search.
"""

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from toolscript.model.library import Source
from toolscript.ports import LibraryReader

REMEMBERED = 20_000
REMEMBERED_SECONDS = 60.0


class SourceMemory:
    def __init__(
        self, library: LibraryReader, size: int = REMEMBERED, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._size = size
        self._now = now
        self._sources: OrderedDict[str, tuple[float, Source]] = OrderedDict()

    async def read(self, ids: Iterable[str]) -> Mapping[str, Source]:
        """Those that are there, the others in one read."""
        known, missing, now = dict[str, Source](), list[str](), self._now()
        for id_ in ids:
            held = self._sources.get(id_)
            if held is not None and held[0] > now:
                self._sources.move_to_end(id_)
                known[id_] = held[1]
            else:
                missing.append(id_)
        if missing:
            known.update(await self._read(missing))
        return known

    async def _read(self, ids: list[str]) -> Mapping[str, Source]:
        read = await self._library.sources(ids)
        for id_, source in read.items():
            self._sources[id_] = self._until(), source
            self._sources.move_to_end(id_)
        while len(self._sources) > self._size:
            self._sources.popitem(last=False)
        return read

    def _until(self) -> float:
        """Not all that was read at once is forgotten at once."""
        return self._now() + REMEMBERED_SECONDS * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
