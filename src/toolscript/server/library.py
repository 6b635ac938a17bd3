"""library: lists and removes sources, and reindexes them for another model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.values import OnProgress, Progress
from toolscript.knowledge.ingest.file import LEASE_SECONDS
from toolscript.knowledge.ingest.reindex import LibraryReindex
from toolscript.knowledge.ingest.sources import Remove, removing
from toolscript.knowledge.model.ingest import IngestResult, KnownSource, LibraryPlace
from toolscript.knowledge.model.library import Source
from toolscript.knowledge.ports import LibraryWriter
from toolscript.server.audit import recorded
from toolscript.server.ingest import open_library_resources
from toolscript.server.library_stores import open_reader_and_writer
from toolscript.server.settings import load_settings

# In the audit.
MAX_NAMES_SHOWN = 20

PAGE = 256


def list_library(*, folder: str, after: str, limit: int) -> Sequence[Source]:
    """Return a page of sources in order of path, of one folder or of all."""

    async def run() -> Sequence[Source]:
        async with _open_writer() as writer:
            name = (await _locate(writer, folder)).name if folder else ""
            sources = await writer.known_under(name, after, limit)
            return [source.source for source in sources]

    return asyncio.run(run())


def find_in_library(paths: Sequence[str]) -> Sequence[LibraryPlace]:
    async def run() -> Sequence[LibraryPlace]:
        async with _open_writer() as writer:
            return [await _locate(writer, path) for path in paths]

    return asyncio.run(run())


def remove_from_library(names: Sequence[str], on_progress: OnProgress) -> Sequence[IngestResult]:
    """Remove sources and return a result for each. Run again after an interruption, it removes the rest."""

    async def run() -> Sequence[IngestResult]:
        settings = load_settings()
        async with open_library_resources(settings) as opened:
            remove = removing(await opened.write_context(), LEASE_SECONDS, lambda _: True)
            return await _remove(opened.writer, remove, names, change.following(on_progress))

    with recorded("library.remove", ", ".join(names[:MAX_NAMES_SHOWN]), needed=False) as change:
        return asyncio.run(run())


async def _remove(
    writer: LibraryWriter, remove: Remove, names: Sequence[str], on_progress: OnProgress
) -> list[IngestResult]:
    results: list[IngestResult] = []
    for name in names:
        after = ""
        while page := await _next_page(writer, name, after):
            for source in page:
                results.append(await remove(source))
                on_progress(Progress("files", len(results)))
                raise_if_cancelled()
            after = page[-1].source.path
    return results


async def _next_page(writer: LibraryWriter, name: str, after: str) -> Sequence[KnownSource]:
    """Return the next page of sources: the named one itself, and those below it."""
    itself = [] if after else list((await writer.known([name])).values())
    return itself or await writer.known_under(name, max(after, name), PAGE)


async def _locate(writer: LibraryWriter, path: str) -> LibraryPlace:
    """Find sources by name in the library, or by path on this machine, whether the file still exists or not."""
    names = dict.fromkeys((path.rstrip("/") or path, await asyncio.to_thread(_full_path, path)))
    counts = [LibraryPlace(name, await _count(writer, name)) for name in names]
    return next((place for place in counts if place.sources), counts[-1])


async def _count(writer: LibraryWriter, name: str) -> int:
    count, after = 0, ""
    while page := await _next_page(writer, name, after):
        count += len(page)
        after = page[-1].source.path
    return count


def _full_path(path: str) -> str:
    return Path(path).expanduser().resolve().as_posix()


@asynccontextmanager
async def _open_writer() -> AsyncIterator[LibraryWriter]:
    async with open_reader_and_writer(load_settings()) as (_, writer):
        yield writer


def reindex_library(*, drop_previous: bool, on_progress: OnProgress) -> dict[str, object]:
    async def run() -> dict[str, object]:
        settings = load_settings()
        async with open_library_resources(settings) as opened:
            await opened.writer.prepare()
            await opened.indexes.create(opened.card)
            reindex = LibraryReindex(
                await opened.write_context(),
                opened.indexes,
                on_progress=on_progress,
            )
            report = await reindex.run()
            is_dropped = drop_previous and bool(report.previous)
            if is_dropped:
                await opened.indexes.drop(report.previous)
            return {**asdict(report), "model": opened.card.model.name, "dropped": is_dropped}

    with recorded("index.switch", "knowledge", needed=False) as change:
        done = asyncio.run(run())
        change.count = 1
        change.details |= done
    return done
