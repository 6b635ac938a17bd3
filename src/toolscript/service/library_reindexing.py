"""ingest --reindex: the library's indexes, built from the library alone."""

import asyncio
from dataclasses import asdict

from toolscript.model.progress import OnProgress
from toolscript.service.library_shelves import open_library_parts
from toolscript.settings.service import load_settings
from toolscript.sync.library_reindex import LibraryReindex


def reindex_library(*, drop_previous: bool, on_progress: OnProgress) -> dict[str, object]:
    async def run() -> dict[str, object]:
        settings = load_settings()
        async with open_library_parts(settings) as parts:
            await parts.writer.prepare()
            await parts.indexes.create(parts.card)
            reindex = LibraryReindex(
                await parts.shelves(),
                parts.indexes,
                lease_seconds=settings.lease_seconds,
                on_progress=on_progress,
            )
            done = await reindex.run()
            is_dropped = drop_previous and bool(done.previous)
            if is_dropped:
                await parts.indexes.drop(done.previous)
            return {**asdict(done), "model": parts.card.model.name, "dropped": is_dropped}

    return asyncio.run(run())
