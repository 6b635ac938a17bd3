"""Whether a file changed is known without reading what it says."""

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
async def test_it_is_the_hash_that_the_reading_has_and_another_for_other_bytes(folder: Path) -> None:
    async with open_source_files() as files:
        first = await files.content_hash(f"{folder}/bees.md")
        assert first == (await files.read(f"{folder}/bees.md")).content_hash
        assert first != await files.content_hash(f"{folder}/others.md")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("bees.md", "larger than"), ("link.md", "link"), ("bees.exe", "of this kind"), ("none.md", "not there")],
)
async def test_what_cannot_be_read_has_none_and_the_reason_is_said(folder: Path, name: str, reason: str) -> None:
    async with open_source_files(ReadingLimits(other_bytes=5)) as files:
        with pytest.raises(FileSkipped, match=reason):
            await files.content_hash(f"{folder}/{name}")
