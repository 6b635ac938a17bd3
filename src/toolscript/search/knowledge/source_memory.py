"""What hits show of their sources, remembered: a source has many chunks, and hardly ever changes.

One that was ingested anew is shown as it was for a minute at most. What has left is not shown at all, because its
chunks are read anew by every search.
"""

import time
from collections.abc import Callable, Collection, Mapping

from toolscript.model.library import Source
from toolscript.ports import LibraryReader
from toolscript.search.short_memory import ShortMemory

REMEMBERED = 20_000
REMEMBERED_SECONDS = 60.0


class SourceMemory:
    def __init__(
        self, library: LibraryReader, size: int = REMEMBERED, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._sources = ShortMemory[str, Source](size, REMEMBERED_SECONDS, now)

    async def read(self, ids: Collection[str]) -> Mapping[str, Source]:
        """Those that are there, the others in one read."""
        known = {id_: source for id_ in ids if (source := self._sources.get(id_)) is not None}
        missing = [id_ for id_ in ids if id_ not in known]
        if not missing:
            return known
        read = await self._library.sources(missing)
        self._sources.put(read)
        return {**known, **read}
