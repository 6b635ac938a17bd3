"""A changed file is detected by its hash, without parsing it."""

from pathlib import Path

import pytest

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.readers.blocks import ReadingLimits
from toolscript.knowledge.readers.files import open_source_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    whole = tmp_path.resolve()
    (whole / "bees.md").write_text("# Bees\n\nThey fly.", "utf-8")
    (whole / "others.md").write_text("# Bees\n\nThey fly!", "utf-8")
    (whole / "link.md").symlink_to(whole / "bees.md")
    (whole / "bees.exe").write_bytes(b"x")
    return whole


@pytest.mark.requirement("KN-005")
async def test_the_hash_equals_that_of_the_reading_and_changes_with_the_bytes(folder: Path) -> None:
    async with open_source_files() as files:
        first = await files.content_hash(f"{folder}/bees.md")
        assert first == (await files.read(f"{folder}/bees.md")).content_hash
        assert first != await files.content_hash(f"{folder}/others.md")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("bees.md", "larger than"), ("link.md", "link"), ("bees.exe", "of this kind"), ("none.md", "does not exist")],
)
async def test_an_unreadable_file_has_no_hash_but_a_reason(folder: Path, name: str, reason: str) -> None:
    async with open_source_files(ReadingLimits(other_bytes=5)) as files:
        with pytest.raises(FileSkipped, match=reason):
            await files.content_hash(f"{folder}/{name}")
