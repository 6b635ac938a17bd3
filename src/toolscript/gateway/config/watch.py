"""Changes of config files, told once each."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

# How long files must be quiet, and how long a noisy folder can hold a change back.
QUIET_MS = 100
PATIENCE_MS = 1000
# Folders that do not exist yet, links into other folders and network drives tell nothing: so files are looked at.
LOOK_SECONDS = 2.0

_Seen = tuple[bytes | None, ...]


def config_changes(
    paths: Sequence[Path], stop: asyncio.Event, *, look_seconds: float = LOOK_SECONDS
) -> AsyncIterator[None]:
    """Yields when what is in the files is no longer what was in them: made, changed, replaced or removed.

    The files are looked at when this is called: call it, then read them, and no change falls between the two.
    """
    return _changes([path.absolute() for path in paths], stop, _contents(paths), look_seconds)


async def _changes(
    paths: Sequence[Path], stop: asyncio.Event, seen: _Seen, look_seconds: float
) -> AsyncIterator[None]:
    async with aclosing(_occasions(paths, stop, look_seconds)) as occasions:
        async for _ in occasions:
            now = await asyncio.to_thread(_contents, paths)
            if now != seen:
                seen = now
                yield


async def _occasions(
    paths: Sequence[Path], stop: asyncio.Event, look_seconds: float
) -> AsyncGenerator[None, None]:
    """When to look: at once, when a folder tells of one of the files, and every few seconds."""
    yield
    while not stop.is_set():
        with suppress(ImportError, OSError, RuntimeError):
            async with aclosing(_told_by_folders(paths, stop, look_seconds)) as told:
                async for _ in told:
                    yield
        if await _stopped(stop, look_seconds):
            return
        yield


async def _told_by_folders(
    paths: Sequence[Path], stop: asyncio.Event, look_seconds: float
) -> AsyncGenerator[None, None]:
    """Only the folders themselves are watched, never what is below them: one of them is the home folder."""
    folders, names = {path.parent for path in paths}, {path.name for path in paths}
    watched = [folder for folder in folders if folder.is_dir()]
    if not watched:
        return
    from watchfiles import awatch

    async with aclosing(
        awatch(
            *watched,
            watch_filter=lambda _, path: Path(path).name in names,
            debounce=PATIENCE_MS,
            step=QUIET_MS,
            stop_event=_Stop(stop),
            rust_timeout=int(look_seconds * 1000),
            yield_on_timeout=True,
            recursive=False,
        )
    ) as changes:
        async for _ in changes:
            yield
            if {folder for folder in folders if folder.is_dir()} != set(watched):
                return


class _Stop:
    """The caller's event, which watchfiles would set when it is cancelled. It is not for it to set."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._cancelled = False

    def is_set(self) -> bool:
        return self._cancelled or self._stop.is_set()

    def set(self) -> None:
        self._cancelled = True


async def _stopped(stop: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


def _contents(paths: Sequence[Path]) -> _Seen:
    return tuple(_content(path) for path in paths)


def _content(path: Path) -> bytes | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None
