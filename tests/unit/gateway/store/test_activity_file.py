"""The activity log's file: what survives a kill, who may read it, how large it gets, and when it fails."""

import asyncio
import logging
import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from toolscript.gateway.activity import Action, ActivityFilter, Ending, Entry, Outcome, Record, Usage
from toolscript.gateway.savings import savings_of
from toolscript.gateway.store import activity_log
from toolscript.gateway.store.activity_file import (
    SESSION_SECONDS,
    Limits,
    clear,
    open_file,
    read_page,
    read_usage,
    reading,
)
from toolscript.gateway.store.activity_log import SqliteActivity

pytestmark = pytest.mark.requirement("GW-005")

CALL = Entry(Action.CALL, 1_700_000_000.5, "cursor", "files", "read_file", 20)
DONE = Ending(Outcome.OK, 12.5, measure=lambda: 300)
ANY = ActivityFilter()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "activity.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[SqliteActivity]:
    activity = SqliteActivity(path)
    yield activity
    await activity.close()


@contextmanager
def writer(path: Path, *, begun: int, done: int) -> Iterator["subprocess.Popen[str]"]:
    program = [sys.executable, "-m", "tests.unit.gateway.store.activity_writer", str(path), str(begun), str(done)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "written\n"
            yield process
        finally:
            process.kill()


def records(path: Path) -> list[Record]:
    with reading(path) as connection:
        assert connection is not None
        return read_page(connection, ANY, None, 10_000)


def outcomes(path: Path) -> dict[str, str]:
    rows = records(path)
    by_tool = {record.entry.tool: record.outcome.value for record in rows}
    assert len(by_tool) == len(rows), "a call is in the log twice"
    return by_tool


def test_a_killed_process_loses_no_call_and_those_it_was_making_are_unknown(path: Path) -> None:
    with writer(path, begun=2, done=3) as process:
        process.kill()
        process.wait()
    ended = outcomes(path)
    assert ended == {**{f"done_{n}": "ok" for n in range(3)}, **{f"begun_{n}": "unknown" for n in range(2)}}
    assert {record.entry.client for record in records(path) if record.outcome is Outcome.UNKNOWN} == {"cursor"}
    assert [*(path.parent / "run").iterdir()] == [], "the lock of the dead process is removed"


async def test_no_process_declares_the_calls_of_a_living_one_unknown(path: Path, log: SqliteActivity) -> None:
    with writer(path, begun=2, done=1) as other:
        log.add(CALL, DONE)
        await log.written()
        assert outcomes(path) == {"done_0": "ok", "begun_0": "running", "begun_1": "running", "read_file": "ok"}
        other.kill()
        other.wait()
        assert outcomes(path)["begun_0"] == "unknown"


def test_a_process_that_ends_as_it_should_leaves_no_call_running(path: Path) -> None:
    with writer(path, begun=1, done=1) as process:
        process.communicate("")
        assert process.returncode == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT outcome FROM activity ORDER BY id").fetchall() == [("ok",), ("unknown",)]


def test_two_processes_log_at_once(path: Path) -> None:
    with writer(path, begun=0, done=300) as first, writer(path, begun=0, done=300) as second:
        assert (first.communicate("")[0], second.communicate("")[0]) == ("", "")
    assert len(records(path)) == 600


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o644)


async def test_only_this_user_can_read_it(path: Path, log: SqliteActivity) -> None:
    put(path, b"")
    log.add(CALL, DONE)
    await log.written()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("activity.db*")}
    assert set(modes) == {"activity.db", "activity.db-wal", "activity.db-shm"}
    assert set(modes.values()) == {0o600}


async def test_the_oldest_rows_make_room_in_batches_and_those_that_run_stay(path: Path) -> None:
    log = SqliteActivity(path, Limits(rows=1_000))
    running = log.begin(replace(CALL, tool="runs"))
    for number in range(3_000):
        log.add(replace(CALL, tool=f"tool_{number}"), DONE)
        if number % 100 == 0:
            await log.written()
    names = [record.entry.tool for record in await log.page(ANY, None, 10_000)]
    assert 1_000 <= len(names) <= 1_000 + activity_log.PRUNE_EVERY + 101
    assert (names[0], names[-1]) == ("tool_2999", "runs")
    log.finish(running, DONE)
    [record] = await log.page(ActivityFilter(tool="runs"), None, 10)
    assert record.outcome is Outcome.OK
    await log.close()


async def test_its_size_is_bounded(path: Path) -> None:
    log = SqliteActivity(path, Limits(megabytes=1))
    large = replace(CALL, arguments="x" * 4_000)
    for number in range(3_000):
        log.add(large, DONE)
        if number % 100 == 0:
            await log.written()
    await log.written()
    assert 0 < len(records(path)) < 1_000
    await log.close()
    assert sum(file.stat().st_size for file in path.parent.glob("activity.db*")) < 6 << 20


async def test_clearing_deletes_all_but_what_runs_and_leaves_no_trace(path: Path, log: SqliteActivity) -> None:
    log.add(replace(CALL, tool="embarrassing"), DONE)
    running = log.begin(CALL)
    await log.written()
    assert clear(path) == 1
    assert b"embarrassing" not in b"".join(file.read_bytes() for file in path.parent.glob("activity.db*"))
    log.finish(running, DONE)
    await log.written()
    assert outcomes(path) == {"read_file": "ok"}


def test_clearing_what_is_not_there_does_nothing(path: Path) -> None:
    assert clear(path) == 0
    assert not path.exists()


async def test_a_file_that_is_removed_while_it_is_open_begins_anew(path: Path, log: SqliteActivity) -> None:
    ticket = log.begin(CALL)
    log.add(CALL, DONE)
    await log.written()
    for file in path.parent.glob("activity.db*"):
        file.unlink()
    log.begin(replace(CALL, tool="another"))
    log.finish(ticket, DONE)
    await log.written()
    assert outcomes(path) == {"another": "running", "read_file": "ok"}


def hold_lock(path: Path) -> sqlite3.Connection:
    blocking = open_file(path)
    blocking.execute("BEGIN IMMEDIATE")
    return blocking


async def test_a_locked_file_delays_calls_once_and_is_written_when_it_is_free(
    path: Path, log: SqliteActivity, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = hold_lock(path)
    ticket = log.begin(CALL)
    await log.written()
    assert "cannot be written: database is locked" in log.problem
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(100):
        log.finish(log.begin(replace(CALL, tool="other")), DONE)
        await log.written()
    # Each of them would wait as long, if the first did not wait for all.
    assert loop.time() - began < 100 * activity_log.WAIT_SECONDS / 4
    log.finish(ticket, DONE)
    blocking.close()
    async with asyncio.timeout(30):
        while log.problem:
            await asyncio.to_thread(_wait_for_the_thread, log)
    assert len(records(path)) == 101
    assert {record.outcome for record in records(path)} == {Outcome.OK}
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "the activity log cannot be written; calls go on without it",
        "the activity log is written again",
    ]


def _wait_for_the_thread(log: SqliteActivity) -> None:
    thread = log._thread
    assert thread is not None
    thread.join(0.05)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 5_000])
async def test_a_file_that_is_no_log_stops_nothing_and_can_be_cleared(
    path: Path, log: SqliteActivity, content: bytes
) -> None:
    put(path, content)
    log.finish(log.begin(CALL), DONE)
    await log.written()
    assert str(path) in log.problem
    assert list(await log.page(ANY, None, 10)) == []
    assert await asyncio.to_thread(path.read_bytes) == content
    clear(path)
    log.add(replace(CALL, tool="later"), DONE)
    async with asyncio.timeout(30):
        while log.problem:
            await asyncio.to_thread(_wait_for_the_thread, log)
    assert "later" in outcomes(path)


async def test_a_log_of_a_later_version_is_left_alone(path: Path, log: SqliteActivity) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    log.add(CALL, DONE)
    await log.written()
    assert "another version of Toolscript wrote it" in log.problem


async def test_a_link_in_its_place_is_not_followed(path: Path, log: SqliteActivity, tmp_path: Path) -> None:
    path.parent.mkdir()
    await asyncio.to_thread(path.symlink_to, tmp_path / "elsewhere")
    log.add(CALL, DONE)
    await log.written()
    assert "not a regular file" in log.problem
    assert not (tmp_path / "elsewhere").exists()


async def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = SqliteActivity(tmp_path / "file" / "activity.db")
    log.finish(log.begin(CALL), DONE)
    await log.written()
    assert "cannot be written" in log.problem
    await log.close()


def test_a_full_disk_stops_nothing_and_is_reported(path: Path) -> None:
    """A limit of the size of files stands for the disk."""
    open_file(path).close()
    program = f"""
import asyncio, signal
from pathlib import Path
from toolscript.gateway.activity import Action, Ending, Entry, Outcome
from toolscript.gateway.store.activity_log import SqliteActivity
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def main():
    log = SqliteActivity(Path({str(path)!r}))
    for _ in range(500):
        log.finish(log.begin(Entry(Action.CALL, 1.0, "cursor", "files", "x" * 200)), Ending(Outcome.OK, 1.0))
        await log.written()
    print(log.problem)
    await log.close()

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert "cannot be written" in done.stdout
    assert done.stderr.count("cannot be written") == 1, "one warning, though a smaller entry may find room again"
    assert 0 < len(records(path)) < 500, "what was written before is there"


async def test_what_cannot_be_measured_ends_neither_the_log_nor_its_neighbours(log: SqliteActivity) -> None:
    def measure() -> int:
        raise RuntimeError("a secret")

    log.add(CALL, replace(DONE, measure=measure))
    log.add(CALL, DONE)
    assert len(await log.page(ANY, None, 10)) == 1
    log.add(CALL, DONE)
    assert len(await log.page(ANY, None, 10)) == 2
    assert log.problem == ""


def found(at: float, client: str, size: int = 100) -> tuple[Entry, Ending]:
    entry = Entry(Action.SEARCH, at, client, argument_bytes=size)
    return entry, Ending(Outcome.OK, 1.0, measure=lambda: 10 * size)


async def test_usage_counts_searches_calls_and_the_sessions_of_mcp_clients(
    path: Path, log: SqliteActivity
) -> None:
    day, pause = 100_000.0, SESSION_SECONDS
    # Two sessions of one client, one of another; commands and what is older are none.
    for at, client in ((0, "cursor"), (pause - 1, "cursor"), (2 * pause, "cursor"), (5, "claude"), (6, "cli")):
        log.add(*found(day + at, client))
    log.add(*found(day - 1, "cursor"))
    log.add(replace(CALL, at=day), DONE)
    await log.written()
    with reading(path) as connection:
        assert connection is not None
        assert read_usage(connection, day) == Usage(searches=5, calls=1, sessions=3, searched_bytes=4 * 1_100)


async def test_the_table_of_sessions_of_an_earlier_version_is_cleared(path: Path, log: SqliteActivity) -> None:
    log.add(CALL, DONE)
    await log.written()
    with reading(path) as connection:
        assert connection is not None
        connection.execute("CREATE TABLE sessions (client TEXT)")
        connection.execute("INSERT INTO sessions VALUES ('embarrassing')")
    assert clear(path) == 1
    assert b"embarrassing" not in b"".join(file.read_bytes() for file in path.parent.glob("activity.db*"))


def test_saved_is_what_sessions_did_not_list_less_what_they_searched() -> None:
    usage = Usage(searches=4, calls=2, sessions=3, searched_bytes=900)
    saved = savings_of(usage, all_bytes=9_900, own_bytes=900)
    assert saved.saved_tokens == (3 * 9_000 - 900) / 4.5
    assert str(saved) == "in 30 days: 4 searches, 2 calls; about 5,800 tokens saved in 3 sessions of MCP clients"
    assert str(savings_of(Usage(1), 9_900, 900)) == "in 30 days: 1 searches, 0 calls"
