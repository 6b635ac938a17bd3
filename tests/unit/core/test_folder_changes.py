"""Folders are watched for changes as soon as the context is entered."""

import asyncio
from pathlib import Path

import pytest

from toolscript.core.folder_changes import MAX_NAMED, FolderChanges, watched

pytestmark = pytest.mark.slow

SOON = 30.0


async def reported(changes: FolderChanges, *expected: Path) -> set[str]:
    """Return all paths reported until the expected ones were among them."""
    paths: set[str] = set()
    while not {str(path) for path in expected} <= paths:
        paths |= {*await asyncio.wait_for(changes.next(), SOON)}
    return paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path.resolve() / "inner"
    inner.mkdir()
    (inner / "old.md").write_text("old", "utf-8")
    return inner.parent


async def test_added_changed_and_removed_files_are_reported(folder: Path) -> None:
    new, old = folder / "new.md", folder / "inner" / "old.md"
    async with watched([str(folder)]) as changes:
        new.write_text("new", "utf-8")
        old.write_text("changed", "utf-8")
        await reported(changes, new, old)
        old.unlink()
        await reported(changes, old)


async def test_hidden_files_are_ignored(folder: Path) -> None:
    new = folder / "new.md"
    (folder / ".git").mkdir()
    async with watched([str(folder)]) as changes:
        (folder / ".git" / "index.md").write_text("x", "utf-8")
        (folder / ".swap.md").write_text("x", "utf-8")
        new.write_text("new", "utf-8")
        assert await reported(changes, new) == {str(new)}


async def test_a_single_watched_file_is_reported_also_when_it_is_replaced(folder: Path) -> None:
    old, other = folder / "inner" / "old.md", folder / "inner" / "other.md"
    async with watched([str(old)]) as changes:
        other.write_text("x", "utf-8")
        other.rename(old)
        assert await reported(changes, old) == {str(old)}
        old.write_text("again", "utf-8")
        await reported(changes, old)


async def test_too_many_changes_are_reported_as_an_empty_list() -> None:
    changes = FolderChanges()
    for start in range(0, MAX_NAMED + 10, 1_000):
        changes.note([f"/x/{number}" for number in range(start, start + 1_000)])
    assert await changes.next() == []
