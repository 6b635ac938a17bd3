"""Watches config files and reports each change once."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

# How long files must be quiet, and how long a noisy folder can hold a change back.
QUIET_MS = 100
PATIENCE_MS = 1000
# Missing folders, links into other folders and network drives send no events, so files are polled, too.
LOOK_SECONDS = 2.0

_Files = Callable[[], Sequence[Path]]
_Seen = tuple[bytes | None, ...]


def config_changes(
    paths: Sequence[Path], stop: asyncio.Event, *, named: _Files = tuple, look_seconds: float = LOOK_SECONDS
) -> AsyncIterator[None]:
    """Yield when the content of the files differs: created, changed, replaced or removed.

    The call takes the first snapshot: call it before reading the files, and no change is missed. `named` are the
    files that these name at the time; another one is a change, too.
    """
    always = [path.absolute() for path in paths]

    def files() -> Sequence[Path]:
        return [*always, *named()]

    return _changes(files, stop, _contents(files()), look_seconds)


async def _changes(files: _Files, stop: asyncio.Event, seen: _Seen, look_seconds: float) -> AsyncIterator[None]:
    async with aclosing(_occasions(files, stop, look_seconds)) as occasions:
        async for _ in occasions:
            now = await asyncio.to_thread(_contents, files())
            if now != seen:
                seen = now
                yield


async def _occasions(files: _Files, stop: asyncio.Event, look_seconds: float) -> AsyncGenerator[None, None]:
    """Yield when to compare: at once, on an event of a folder, and every few seconds."""
    yield
    while not stop.is_set():
        with suppress(ImportError, OSError, RuntimeError):
            async with aclosing(_folder_events(files, stop, look_seconds)) as events:
                async for _ in events:
                    yield
        if await _stopped(stop, look_seconds):
            return
        yield


async def _folder_events(files: _Files, stop: asyncio.Event, look_seconds: float) -> AsyncGenerator[None, None]:
    """Watch only the folders, not their subfolders: one of them is the home folder."""
    paths = files()
    names, watched = {path.name for path in paths}, _folders(paths)
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
            if files() != paths or _folders(paths) != watched:
                return


def _folders(paths: Sequence[Path]) -> set[Path]:
    return {path.parent for path in paths if path.parent.is_dir()}


class _Stop:
    """Wraps the caller's event, because watchfiles sets its event when it is cancelled."""

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
