"""Watch folders for files that appear, change or vanish; changes are reported once the folder is quiet."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from toolscript.core.errors import SetupError

QUIET_MS, PATIENCE_MS, POLL_MS = 200, 2_000, 200
# Beyond this, scanning everything is faster than checking each path.
MAX_NAMED = 10_000
NO_WATCH = "allow more (fs.inotify.max_user_watches), or run the command without --watch now and then"


class FolderChanges:
    """Paths changed since the last `next()`. A slow reader gets each path once, however often it changed."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._news = asyncio.Event()
        self._failure = ""

    async def next(self) -> list[str]:
        """Wait for changes and return their paths, vanished ones included; an empty list: too many to name."""
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
    """Watch folders recursively, and single files. Enters once no change can be missed."""
    folders = await asyncio.to_thread(lambda: [path for path in paths if Path(path).is_dir()])
    files = frozenset(paths) - {*folders}
    # A replaced file is a new inode: only a watch on its folder sees both.
    parents = sorted({Path(path).parent.as_posix() for path in files})
    changes = FolderChanges()
    watches = [_Watch(changes, folders, None)] if folders else []
    watches += [_Watch(changes, parents, files)] if parents else []
    tasks = [asyncio.create_task(watch.run()) for watch in watches]
    try:
        for watch in watches:
            await watch.started.wait()
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
        self.started = asyncio.Event()

    async def run(self) -> None:
        try:
            async with aclosing(self._changed_paths()) as changed_paths:
                async for paths in changed_paths:
                    self.started.set()
                    self._note(paths)
        except (OSError, RuntimeError, ImportError) as error:
            self._changes.fail(str(error))
            self.started.set()

    def _note(self, paths: set[str]) -> None:
        watched_paths = sorted(paths if self._only is None else paths & self._only)
        if watched_paths:
            self._changes.note(watched_paths)

    async def _changed_paths(self) -> AsyncGenerator[set[str], None]:
        """Yield batches of changed paths. Empty batches (timeouts) show the reader that the watch has started."""
        from watchfiles import awatch

        roots = [Path(folder) for folder in self._folders]
        async with aclosing(
            awatch(
                *roots,
                watch_filter=lambda _, path: not is_hidden(Path(path), roots),
                debounce=PATIENCE_MS,
                step=QUIET_MS,
                rust_timeout=POLL_MS,
                yield_on_timeout=True,
                recursive=self._only is None,
                ignore_permission_denied=True,
            )
        ) as changes:
            async for batch in changes:
                yield {Path(path).as_posix() for _, path in batch}


def is_hidden(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a part of the path below its root is hidden; the root's own path does not count."""
    return all(
        any(part.startswith(".") for part in path.relative_to(root).parts)
        for root in roots
        if path.is_relative_to(root)
    )
