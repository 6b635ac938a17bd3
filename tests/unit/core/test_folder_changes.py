"""Folders are watched from the moment somebody is told so."""

import asyncio
from pathlib import Path

import pytest

from toolscript.core.folder_changes import MAX_NAMED, FolderChanges, watched

pytestmark = pytest.mark.slow

SOON = 30.0


async def heard(changes: FolderChanges, *wanted: Path) -> set[str]:
    """What is told until all of these were."""
    told: set[str] = set()
    while not {str(path) for path in wanted} <= told:
        told |= {*await asyncio.wait_for(changes.next(), SOON)}
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path.resolve() / "inner"
    inner.mkdir()
    (inner / "old.md").write_text("old", "utf-8")
    return inner.parent


async def test_what_is_added_changed_and_removed_is_told(folder: Path) -> None:
    new, old = folder / "new.md", folder / "inner" / "old.md"
    async with watched([str(folder)]) as changes:
        new.write_text("new", "utf-8")
        old.write_text("changed", "utf-8")
        await heard(changes, new, old)
        old.unlink()
        await heard(changes, old)


async def test_hidden_files_are_nobodys_business(folder: Path) -> None:
    new = folder / "new.md"
    (folder / ".git").mkdir()
    async with watched([str(folder)]) as changes:
        (folder / ".git" / "index.md").write_text("x", "utf-8")
        (folder / ".swap.md").write_text("x", "utf-8")
        new.write_text("new", "utf-8")
        assert await heard(changes, new) == {str(new)}


async def test_of_a_single_file_only_itself_is_told_and_also_when_it_is_replaced(folder: Path) -> None:
    old, other = folder / "inner" / "old.md", folder / "inner" / "other.md"
    async with watched([str(old)]) as changes:
        other.write_text("x", "utf-8")
        other.rename(old)
        assert await heard(changes, old) == {str(old)}
        old.write_text("again", "utf-8")
        await heard(changes, old)


async def test_more_than_can_be_named_is_told_as_anything_may_have_changed() -> None:
    changes = FolderChanges()
    for at in range(0, MAX_NAMED + 10, 1_000):
        changes.note([f"/x/{number}" for number in range(at, at + 1_000)])
    assert await changes.next() == []
