"""Files that appear, change and vanish in folders, told a moment after it has become quiet there."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from toolscript.core.errors import SetupError

QUIET_MS, PATIENCE_MS, LOOK_MS = 200, 2_000, 200
# So many that looking at everything is quicker than looking at each.
MAX_NAMED = 10_000
NO_WATCH = "allow more (fs.inotify.max_user_watches), or run the command without --watch now and then"


class FolderChanges:
    """What has changed since somebody last asked. Whoever is slow hears of it once, however often it changed."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._news = asyncio.Event()
        self._failure = ""

    async def next(self) -> list[str]:
        """Paths that are there or were; an empty list: too many to name."""
        await self._news.wait()
        self._news.clear()
        if self._failure:
            raise SetupError(f"the folders cannot be watched: {self._failure}", hint=NO_WATCH)
        changed, self._changed = list(self._changed), {}
        return changed if len(changed) <= MAX_NAMED else []

    def note(self, paths: Sequence[str]) -> None:
        self._changed |= dict.fromkeys(paths[: MAX_NAMED + 1 - len(self._changed)])
        self._news.set()

    def fail(self, reason: str) -> None:
        self._failure = reason
        self._news.set()


@asynccontextmanager
async def watched(paths: Sequence[str]) -> AsyncIterator[FolderChanges]:
    """Folders with all that is in them, and single files. Entered when nothing that happens is missed any more."""
    folders = await asyncio.to_thread(lambda: [path for path in paths if Path(path).is_dir()])
    files = frozenset(paths) - {*folders}
    # A file that is replaced is another one: only its folder hears of both.
    beside = sorted({Path(path).parent.as_posix() for path in files})
    changes = FolderChanges()
    watches = [_Watch(changes, folders, None)] if folders else []
    watches += [_Watch(changes, beside, files)] if beside else []
    tasks = [asyncio.create_task(watch.run()) for watch in watches]
    try:
        for watch in watches:
            await watch.begun.wait()
        yield changes
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Watch:
    def __init__(self, changes: FolderChanges, folders: Sequence[str], only: frozenset[str] | None) -> None:
        self._changes = changes
        self._folders = folders
        self._only = only
        self.begun = asyncio.Event()

    async def run(self) -> None:
        try:
            async with aclosing(self._told()) as told:
                async for paths in told:
                    self.begun.set()
                    self._note(paths)
        except (OSError, RuntimeError, ImportError) as error:
            self._changes.fail(str(error))
            self.begun.set()

    def _note(self, paths: set[str]) -> None:
        wanted = sorted(paths if self._only is None else paths & self._only)
        if wanted:
            self._changes.note(wanted)

    async def _told(self) -> AsyncGenerator[set[str], None]:
        """Now and then of nothing: whoever hears that knows that it has begun."""
        from watchfiles import awatch

        roots = [Path(folder) for folder in self._folders]
        async with aclosing(
            awatch(
                *roots,
                watch_filter=lambda _, path: not is_hidden(Path(path), roots),
                debounce=PATIENCE_MS,
                step=QUIET_MS,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
                recursive=self._only is None,
                ignore_permission_denied=True,
            )
        ) as changes:
            async for some in changes:
                yield {Path(path).as_posix() for _, path in some}


def is_hidden(path: Path, roots: Sequence[Path]) -> bool:
    """Below a root; where that lies is its own affair."""
    return all(
        any(part.startswith(".") for part in path.relative_to(root).parts)
        for root in roots
        if path.is_relative_to(root)
    )
