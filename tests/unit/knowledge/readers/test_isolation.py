"""Files are read in another process: whatever a file does there, the next one is read as usual."""

import asyncio
import hashlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.knowledge.readers.builders import WORDS, pdf_bomb, pdf_of, read, read_or_reason
from toolscript.core.errors import FileSkipped
from toolscript.knowledge.ports import SourceFiles
from toolscript.knowledge.readers.blocks import ReadingLimits
from toolscript.knowledge.readers.files import IsolatedFiles, open_source_files

pytestmark = [pytest.mark.requirement("KN-005"), pytest.mark.slow]

MEGABYTE = 1024 * 1024
GOOD = b"# Good\n\nText.\n"
# Takes a parser minutes, so that every limit is reached.
ENDLESS = "[" * 1_000_000


@pytest.fixture
async def files() -> AsyncIterator[IsolatedFiles]:
    async with open_source_files() as opened:
        yield opened


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.md"
    path.write_bytes(GOOD)
    return path


async def reason(files: SourceFiles, path: Path) -> str:
    with pytest.raises(FileSkipped) as skipped:
        await files.read(str(path))
    return skipped.value.message


def pid_of(files: IsolatedFiles) -> int:
    assert files._process is not None
    return files._process._child.pid


async def test_a_reading_crosses_over_whole(files: IsolatedFiles, good: Path) -> None:
    reading = await files.read(str(good))
    assert reading == read("good.md", GOOD)
    assert reading.content_hash == hashlib.sha256(GOOD).hexdigest()


async def test_hostile_files_end_in_a_reason_and_the_next_is_read_as_usual(
    files: IsolatedFiles, good: Path, tmp_path: Path
) -> None:
    hostile = {
        "bomb.pdf": (pdf_bomb(), "unpacks to far more"),
        "broken.pdf": (pdf_of(b"x")[:150], "damaged|no text"),
        "deep.html": (b"<div>" * 30_000, "nested too deeply"),
        "deep.md": (b"> " * 100_000 + b"x", "nested too deeply"),
        "binary.txt": (bytes(range(256)) * 100, "other than text"),
        "empty.md": (b"", "is empty"),
        "strange.docx": (b"PK", "files of this kind are not supported"),
    }
    for name, (data, expected) in hostile.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FileSkipped, match=expected):
            await files.read(str(path))
        assert (await files.read(str(good))).title == "Good"


async def test_only_a_file_is_opened_and_none_behind_a_link(
    files: IsolatedFiles, good: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "link.md").symlink_to(good)
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "inner")
    (tmp_path / "inner" / "a.md").write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.md"))
        assert await reason(files, tmp_path / "socket.md") == "it is a socket"
    assert await reason(files, tmp_path / "pipe.md") == "it is a pipe"
    assert await reason(files, tmp_path / "link.md") == "it is a symbolic link"
    assert await reason(files, tmp_path / "folder.md") == "it is a folder"
    assert await reason(files, tmp_path / "way" / "a.md") == "its path contains a symbolic link"
    assert await reason(files, tmp_path / "none.md") == "it does not exist"
    assert await reason(files, tmp_path / "inner" / ".." / "good.md") == "its path is not absolute"
    assert await reason(files, tmp_path / ("n" * 300 + ".md")) == "it cannot be opened: File name too long"
    (tmp_path / "device.txt").symlink_to("/dev/zero")
    assert await reason(files, tmp_path / "device.txt") == "it is a symbolic link"


async def test_too_large_a_file_is_left_out(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(3 * MEGABYTE)
    async with open_source_files(ReadingLimits(other_bytes=2 * MEGABYTE)) as files:
        assert await reason(files, large) == "it is larger than 2 MB"


async def test_a_file_that_takes_too_much_memory_is_skipped_and_the_next_is_read(
    tmp_path: Path, good: Path
) -> None:
    greedy = tmp_path / "greedy.txt"
    # One letter beyond the BMP makes every letter of the string take four bytes.
    greedy.write_text("a" * 40 * MEGABYTE + "\U0001f600")
    async with open_source_files(ReadingLimits(memory=200 * MEGABYTE)) as files:
        assert "more memory than 200 MB" in await reason(files, greedy)
        assert (await files.read(str(good))).title == "Good"


async def test_a_file_that_takes_too_much_cpu_time_is_skipped_and_the_next_is_read(
    tmp_path: Path, good: Path
) -> None:
    endless = tmp_path / "endless.md"
    endless.write_text(ENDLESS)
    async with open_source_files(ReadingLimits(cpu_seconds=1)) as files:
        assert await reason(files, endless) == "reading it takes longer than 1 s"
        assert (await files.read(str(good))).title == "Good"


async def test_a_file_that_takes_too_long_is_skipped_and_the_next_is_read(tmp_path: Path, good: Path) -> None:
    endless = tmp_path / "endless.md"
    endless.write_text(ENDLESS)
    async with open_source_files(ReadingLimits(seconds=3)) as files:
        await files.read(str(good))
        assert await reason(files, endless) == "reading it takes longer than 3 s"
        assert (await files.read(str(good))).title == "Good"


async def test_a_process_killed_between_two_files_is_replaced(files: IsolatedFiles, good: Path) -> None:
    await files.read(str(good))
    killed = pid_of(files)
    os.kill(killed, signal.SIGKILL)
    assert (await files.read(str(good))).title == "Good"
    assert pid_of(files) != killed


async def test_a_process_killed_within_a_file_costs_that_file(
    files: IsolatedFiles, tmp_path: Path, good: Path
) -> None:
    endless = tmp_path / "endless.md"
    endless.write_text(ENDLESS)
    reading = asyncio.create_task(files.read(str(endless)))
    while files._process is None or not files._process.files:
        await anyio.lowlevel.checkpoint()
    os.kill(pid_of(files), signal.SIGKILL)
    with pytest.raises(FileSkipped, match="crashed the reader process"):
        await reading
    assert (await files.read(str(good))).title == "Good"


async def test_a_cancelled_reader_leaves_no_process_behind(
    files: IsolatedFiles, tmp_path: Path, good: Path
) -> None:
    endless = tmp_path / "endless.md"
    endless.write_text(ENDLESS)
    reading = asyncio.create_task(files.read(str(endless)))
    while files._process is None or not files._process.files:
        await anyio.lowlevel.checkpoint()
    pid = pid_of(files)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (await files.read(str(good))).title == "Good"


async def test_many_at_once_take_turns(files: IsolatedFiles, tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"{number} {WORDS}")
    readings = await asyncio.gather(*(files.read(str(tmp_path / f"{number}.txt")) for number in range(8)))
    assert [reading.blocks[0].text[0] for reading in readings] == [*"01234567"]


@given(data=st.binary(max_size=300), ending=st.sampled_from([".md", ".txt", ".html", ".pdf"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_left_out(data: bytes, ending: str) -> None:
    for whole in (data, b"%PDF-1.7\n" + data, b"<p>" + data, b"# a\n" + data):
        assert read_or_reason(f"a{ending}", whole)
