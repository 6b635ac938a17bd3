"""Sources that leave the library: those whose files are gone."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from toolscript.errors import Conflict
from toolscript.model.ingest import IngestOutcome, IngestResult, KnownSource
from toolscript.ports import LibraryWriter
from toolscript.sync.ingest_run import Telling
from toolscript.sync.source_claim import claimed
from toolscript.sync.source_writing import Shelves, SourceWriting

PAGE = 256

IsGone = Callable[[str], bool]


class SourceRemoval:
    """`is_gone` tells of the path a source is known by whether its file is not there any more."""

    def __init__(
        self, shelves: Shelves, is_gone: IsGone, telling: Telling, *, lease_seconds: float, dry: bool = False
    ) -> None:
        self._shelves = shelves
        self._is_gone = is_gone
        self._telling = telling
        self._lease_seconds = lease_seconds
        self._dry = dry

    async def prune(self, folders: Sequence[str]) -> None:
        """All that lies in one of the folders and is gone."""
        for folder in folders:
            async for page in _pages(self._shelves.writer, folder):
                await self._remove_gone(page)

    async def remove(self, paths: Sequence[str]) -> None:
        """Those of the paths that are gone, and whatever lies in those of them that were folders."""
        known = await self._shelves.writer.known(paths)
        await self._remove_gone(list(known.values()))
        await self.prune([path for path in paths if path not in known])

    async def _remove_gone(self, page: Sequence[KnownSource]) -> None:
        gone = await asyncio.to_thread(lambda: [one for one in page if self._is_gone(one.source.path)])
        for one in gone:
            self._telling.tell(await self._remove(one))

    async def _remove(self, known: KnownSource) -> IngestResult:
        path, shelves = known.source.path, self._shelves
        if self._dry:
            return IngestResult(path, IngestOutcome.REMOVED)
        try:
            async with claimed(shelves.writer, known.source, self._lease_seconds) as claim:
                await shelves.require_live()
                writing = SourceWriting(shelves, claim, await shelves.writer.marks(known.source.id))
                await writing.remove(writing.stored)
                await claim.discard()
        except Conflict as error:
            return IngestResult(path, IngestOutcome.SKIPPED, problem=f"cannot be removed: {error.message}")
        return IngestResult(path, IngestOutcome.REMOVED)


async def _pages(writer: LibraryWriter, folder: str) -> AsyncIterator[Sequence[KnownSource]]:
    after = ""
    while page := await writer.known_under(folder, after, PAGE):
        yield page
        after = page[-1].source.path
