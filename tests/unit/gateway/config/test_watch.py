"""Watching config files on a real file system."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import watchfiles

from toolscript.gateway.config.watch import config_changes

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]

NEVER = 3600.0
AT_ONCE = 0.01


@pytest.fixture
def stop() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / ".toolscript.json"
    path.parent.mkdir()
    path.write_text("first")
    return path


async def soon(changes: AsyncIterator[None]) -> bool:
    """Return whether there is another change; False at the end."""
    async with asyncio.timeout(20):
        return await anext(changes, True) is None


async def watching(file: Path, stop: asyncio.Event, look: float = NEVER) -> AsyncIterator[None]:
    """Watch changes by folder events only, after a first change."""
    changes = config_changes([file], stop, look_seconds=look)
    await asyncio.to_thread(file.write_text, "passed")
    assert await soon(changes)
    return changes


async def is_reported(changes: AsyncIterator[None], *steps: Callable[[], object]) -> bool:
    """Return whether a change is reported while the folders are watched."""
    waiting = asyncio.ensure_future(soon(changes))
    await asyncio.sleep(0)
    for step in steps:
        step()
    return await waiting


def replaced(file: Path) -> None:
    new = file.with_name("new.tmp")
    new.write_text("replaced")
    new.replace(file)


def removed_and_made(file: Path) -> None:
    file.unlink()
    file.write_text("made again")


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("changed"),
        lambda file: file.unlink(),
        replaced,
        removed_and_made,
    ],
    ids=["changed", "removed", "replaced", "removed and made"],
)
async def test_the_folder_reports_every_kind_of_change(
    file: Path, stop: asyncio.Event, change: Callable[[Path], object]
) -> None:
    assert await is_reported(await watching(file, stop), lambda: change(file))


async def test_the_creation_of_a_file_is_reported(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop)
    assert await is_reported(changes, file.unlink)
    assert await is_reported(changes, lambda: file.write_text("made"))


async def test_a_change_between_the_call_and_the_first_wait_is_not_lost(file: Path, stop: asyncio.Event) -> None:
    changes = config_changes([file], stop, look_seconds=NEVER)
    await asyncio.to_thread(file.write_text, "changed")
    assert await soon(changes)


async def test_many_changes_at_once_are_reported_a_few_times_at_most(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop)

    def burst() -> None:
        for number in range(5000):
            file.write_text(f"burst {number}")
        file.write_text("end")

    began, writing = time.monotonic(), asyncio.ensure_future(asyncio.to_thread(burst))
    reports = 0
    while await soon(changes):
        reports += 1
        if await asyncio.to_thread(file.read_text) == "end":
            break
    await writing
    # A writer that gets no turn for a moment leaves the file quiet for that moment.
    assert 1 <= reports <= 5 + 10 * (time.monotonic() - began)


async def test_other_files_and_unchanged_content_are_not_reported(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop)

    def noise() -> None:
        file.with_name("other").write_text("x")
        os.utime(file)
        file.write_text(file.read_text())

    assert await is_reported(
        changes, noise, lambda: file.with_name("more").write_text("x"), lambda: file.write_text("y")
    )
    assert not await is_reported(changes, noise, stop.set)


async def test_a_link_to_another_folder_is_followed(tmp_path: Path, file: Path, stop: asyncio.Event) -> None:
    link = tmp_path / ".toolscript.json"
    link.symlink_to(file)
    changes = config_changes([link], stop, look_seconds=0.05)
    assert await is_reported(changes, lambda: file.write_text("changed"))
    assert await is_reported(changes, lambda: file.write_text("again"))


async def test_a_folder_that_does_not_exist_yet_is_waited_for(tmp_path: Path, stop: asyncio.Event) -> None:
    path = tmp_path / "later" / ".toolscript.json"
    changes = config_changes([path], stop, look_seconds=AT_ONCE)
    assert await is_reported(changes, path.parent.mkdir, lambda: path.write_text("made"))
    assert await is_reported(changes, lambda: path.write_text("changed"))


async def test_a_folder_that_is_removed_and_made_again_is_followed(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop, look=0.05)
    assert await is_reported(changes, file.unlink, file.parent.rmdir)
    assert await is_reported(changes, file.parent.mkdir, lambda: file.write_text("again"))
    assert await is_reported(changes, lambda: file.write_text("changed"))


@pytest.mark.parametrize(
    "error", [OSError("no space left for watches"), RuntimeError("broken watcher"), ImportError()]
)
async def test_files_are_polled_where_folders_cannot_be_watched(
    file: Path, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(watchfiles, "awatch", refuse)
    changes = config_changes([file], stop, look_seconds=AT_ONCE)
    assert await is_reported(changes, lambda: file.write_text("changed"))
    assert await is_reported(changes, file.unlink)


async def test_it_ends_when_it_is_stopped_at_any_time(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop)
    waiting = asyncio.ensure_future(soon(changes))
    await asyncio.sleep(0)
    stop.set()
    assert not await waiting
    assert not await soon(config_changes([file], stop))


async def test_a_cancelled_watcher_does_not_stop_the_others(file: Path, stop: asyncio.Event) -> None:
    changes = await watching(file, stop)
    waiting = asyncio.ensure_future(soon(changes))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not stop.is_set()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the kernel's watches")
async def test_nothing_below_the_folders_is_watched(file: Path, stop: asyncio.Event) -> None:
    for number in range(100):
        (file.parent / f"sub{number}" / "deep").mkdir(parents=True)
    before = kernel_watches()
    changes = await watching(file, stop)
    waiting = asyncio.ensure_future(soon(changes))
    await asyncio.sleep(0)
    assert kernel_watches() - before == 1
    stop.set()
    assert not await waiting


def kernel_watches() -> int:
    infos = Path("/proc/self/fdinfo").iterdir()
    return sum(text.count("inotify wd:") for info in infos if (text := read_if_there(info)))


def read_if_there(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("toolscript.gateway.config", ["anyio", "asyncio", "difflib", "tempfile", "tomllib", "watchfiles"]),
        ("toolscript.gateway.config.watch", ["anyio", "watchfiles"]),
        # Its OpenBLAS reads the environment then, which the command line sets.
        ("toolscript.__main__", ["numpy"]),
    ],
)
def test_the_slow_library_is_imported_on_first_use(module: str, late: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {late} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "[]"


async def test_a_file_that_becomes_named_is_watched_from_then_on(file: Path, stop: asyncio.Event) -> None:
    other = file.parent.parent / "other" / "rules.json"
    other.parent.mkdir()
    named: list[Path] = []
    changes = config_changes([file], stop, named=lambda: named, look_seconds=0.2)
    await asyncio.to_thread(file.write_text, "names the other")
    assert await soon(changes)
    named.append(other)
    await asyncio.to_thread(other.write_text, "one")
    assert await soon(changes)
    await asyncio.to_thread(other.write_text, "two")
    assert await soon(changes)
