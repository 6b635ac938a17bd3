"""The query log file: rotation, several writers, and full disks."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.documents.query_log_builders import search
from toolscript.core.errors import SetupError, Unavailable
from toolscript.documents.query_log import QueryLogFile

pytestmark = [pytest.mark.requirement("DOC-007")]


def ids(path: Path) -> list[str]:
    return [json.loads(line)["query_id"] for line in path.read_text("utf-8").splitlines()]


async def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        QueryLogFile(tmp_path / "log").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


async def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    for number in (1, 2):
        file = QueryLogFile(tmp_path / "log")
        await file.write([search(number)])
        file.close()
    assert ids(tmp_path / "log") == ["query-1", "query-2"]


async def test_a_new_file_is_opened_after_the_old_one_was_moved(tmp_path: Path) -> None:
    path, moved = tmp_path / "log", tmp_path / "log.1"
    file = QueryLogFile(path)
    await file.write([search(1)])
    path.rename(moved)
    await file.write([search(2)])
    await file.write([search(3)])
    file.close()
    assert (ids(moved), ids(path)) == (["query-1"], ["query-2", "query-3"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_new_file_created_by_rotation_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = QueryLogFile(path)
    path.rename(tmp_path / "log.1")
    path.touch()
    await file.write([search(1)])
    file.close()
    assert ids(path) == ["query-1"]


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file"):
        QueryLogFile(tmp_path / "nowhere" / "log")
    with pytest.raises(SetupError, match="directory"):
        QueryLogFile(tmp_path)


async def test_a_write_fails_while_the_folder_is_missing_and_works_once_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    file = QueryLogFile(folder / "log")
    folder.rename(tmp_path / "away")
    with pytest.raises(Unavailable, match="No such file") as refused:
        await file.write([search(1)])
    assert "TOOLSCRIPT_QUERY_LOG" in refused.value.hint
    folder.mkdir()
    await file.write([search(2)])
    file.close()
    assert ids(folder / "log") == ["query-2"]


async def test_a_line_torn_by_a_full_disk_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = QueryLogFile(path)
    await file.write([search(1)])
    limit = path.stat().st_size + 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(Unavailable, match="File too large"):
            await file.write([search(2)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    await file.write([search(3)])
    file.close()
    lines = path.read_text().splitlines()
    assert [len(lines), json.loads(lines[0])["query_id"], json.loads(lines[2])["query_id"]] == [
        3,
        "query-1",
        "query-3",
    ]


WRITES = """
import asyncio, sys
from pathlib import Path
from tests.unit.documents.query_log_builders import search
from toolscript.documents.query_log import QueryLogFile
async def main():
    file = QueryLogFile(Path(sys.argv[1]))
    for batch in range(50):
        await file.write([search(f"{sys.argv[2]}-{batch}-{one}", text="x" * 500) for one in range(50)])
    file.close()
asyncio.run(main())
"""


def test_processes_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    root = Path(__file__).parents[3]
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITES, str(path), str(number)], cwd=root) for number in range(3)
    ]
    for process in processes:
        assert process.wait(60) == 0
    expected = [f"query-{who}-{batch}-{number}" for who in range(3) for batch in range(50) for number in range(50)]
    assert sorted(ids(path)) == sorted(expected)
