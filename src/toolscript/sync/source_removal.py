"""Sources that leave the library: those whose files are gone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from toolscript.errors import Conflict
from toolscript.model.ingest import IngestOutcome, IngestResult, KnownSource
from toolscript.ports import LibraryWriter
from toolscript.sync.cancelling import go_on_unless_cancelled
from toolscript.sync.ingest_run import Telling
from toolscript.sync.source_claim import claimed
from toolscript.sync.source_writing import Shelves, SourceWriting

PAGE = 256

Remove = Callable[[KnownSource], Awaitable[IngestResult]]


class GoneSources:
    """`is_gone` tells of the path a source is known by whether its file is not there any more."""

    def __init__(
        self, writer: LibraryWriter, is_gone: Callable[[str], bool], telling: Telling, remove: Remove
    ) -> None:
        self._writer = writer
        self._is_gone = is_gone
        self._telling = telling
        self._remove = remove

    async def prune(self, folders: Sequence[str]) -> None:
        """All that lies in one of the folders and is gone."""
        for folder in folders:
            async for page in self._pages(folder):
                await self._remove_gone(page)

    async def count(self, folder: str) -> int:
        return sum([len(page) async for page in self._pages(folder)])

    async def remove(self, paths: Sequence[str]) -> None:
        """Those of the paths that are gone, and whatever lies in those of them that were folders."""
        known = await self._writer.known(paths)
        await self._remove_gone(list(known.values()))
        await self.prune([path for path in paths if path not in known])

    async def _remove_gone(self, page: Sequence[KnownSource]) -> None:
        gone = await asyncio.to_thread(lambda: [one for one in page if self._is_gone(one.source.path)])
        self._telling.expect(len(gone))
        for one in gone:
            self._telling.tell(await self._remove(one))
            go_on_unless_cancelled()

    async def _pages(self, folder: str) -> AsyncIterator[Sequence[KnownSource]]:
        after = ""
        while page := await self._writer.known_under(folder, after, PAGE):
            go_on_unless_cancelled()
            yield page
            after = page[-1].source.path


def removing(shelves: Shelves, lease_seconds: float, is_gone: Callable[[str], bool]) -> Remove:
    async def remove(known: KnownSource) -> IngestResult:
        path = known.source.path
        try:
            async with claimed(shelves.writer, known.source, lease_seconds) as claim:
                await shelves.require_live()
                if not await asyncio.to_thread(is_gone, path):
                    # It came back, and another run may have ingested it before this one had the source.
                    return IngestResult(path, IngestOutcome.UNCHANGED)
                writing = SourceWriting(shelves, claim, await shelves.writer.marks(known.source.id))
                await writing.remove(writing.stored)
                await claim.discard()
        except Conflict as error:
            return IngestResult(path, IngestOutcome.SKIPPED, problem=f"cannot be removed: {error.message}")
        return IngestResult(path, IngestOutcome.REMOVED)

    return remove


async def only_said(known: KnownSource) -> IngestResult:
    """For whoever wants to know what would be removed."""
    return IngestResult(known.source.path, IngestOutcome.REMOVED)
