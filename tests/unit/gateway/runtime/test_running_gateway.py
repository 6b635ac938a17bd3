"""The record of a running gateway, valid only while its process lives."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.core.file_locks import take
from toolscript.gateway import discovery
from toolscript.gateway.discovery import RunningFile
from toolscript.gateway.record import RunningGateway

pytestmark = pytest.mark.requirement("TS-002")

URL, VERSION, CHOICES = "http://127.0.0.1:7355", "1.2.3", {"search_model": "some/model", "search_alpha": 0.7}
RUNNING = RunningGateway(os.getpid(), URL, VERSION, CHOICES, "token", "some-workspace")
GATEWAY = """
import os, sys
from pathlib import Path
from toolscript.gateway.discovery import RunningFile
from toolscript.gateway.record import RunningGateway
with RunningFile(Path(sys.argv[1])).held() as record:
    record.write(RunningGateway(os.getpid(), "http://127.0.0.1:1", "1"))
    print("ready", flush=True)
    sys.stdin.readline()
"""


def file_in(folder: Path) -> RunningFile:
    return RunningFile(folder / "run")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    with file_in(folder).held() as record:
        record.write(RUNNING)
        yield


@contextmanager
def another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a gateway in a separate process."""
    command = [sys.executable, "-c", GATEWAY, str(folder / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_running_gateway_is_read_with_all_its_fields(tmp_path: Path) -> None:
    with held(tmp_path):
        running = file_in(tmp_path).read()
        assert running is not None
        assert running == RUNNING
    assert file_in(tmp_path).read() is None
    assert not file_in(tmp_path).path.exists()


def test_without_a_record_no_gateway_runs(tmp_path: Path) -> None:
    assert file_in(tmp_path).read() is None


def test_a_gateway_of_another_process_is_found(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        running = file_in(tmp_path).read()
        assert running is not None
        assert running.pid == process.pid


def test_a_killed_gateway_is_not_running_and_another_may_start(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert file_in(tmp_path).path.exists()
        assert file_in(tmp_path).read() is None
    with held(tmp_path):
        assert file_in(tmp_path).read() is not None


def test_a_reused_pid_is_not_taken_for_the_gateway(tmp_path: Path) -> None:
    with held(tmp_path):
        written = file_in(tmp_path).path.read_text("utf-8")
    file_in(tmp_path).path.write_text(written)
    assert json.loads(written)["pid"] == os.getpid()
    assert file_in(tmp_path).read() is None


def test_a_second_gateway_is_refused(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        with pytest.raises(SetupError, match="already running"), held(tmp_path):
            pass
        running = file_in(tmp_path).read()
        assert running is not None
        assert running.pid == process.pid


def test_a_reader_of_the_record_does_not_prevent_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader holds the lock for a moment."""
    tries = iter([False, False])
    monkeypatch.setattr(discovery, "take", lambda lock, **how: next(tries, True) and take(lock, **how))
    with held(tmp_path):
        assert file_in(tmp_path).read() is not None


def test_another_data_folder_has_another_gateway(tmp_path: Path) -> None:
    with held(tmp_path / "a"), held(tmp_path / "b"):
        assert file_in(tmp_path / "a").read() is not None
        assert file_in(tmp_path / "c").read() is None


def test_a_gateway_that_starts_removes_the_record_of_a_killed_one(tmp_path: Path) -> None:
    """Else its lock would make the old record look alive."""
    with held(tmp_path):
        written = file_in(tmp_path).path.read_text("utf-8")
    file_in(tmp_path).path.write_text(written)
    with file_in(tmp_path).held():
        assert file_in(tmp_path).read() is None


def test_a_released_record_makes_room_for_another_gateway(tmp_path: Path) -> None:
    with file_in(tmp_path).held() as record:
        record.write(RUNNING)
        record.release()
        with another(tmp_path) as process:
            running = file_in(tmp_path).read()
            assert running is not None
            assert running.pid == process.pid
        record.release()


@pytest.mark.parametrize("pid", [0, -1, pytest.param(-os.getpid(), id="own group"), "x", None, [], float("inf")])
def test_a_pid_of_a_process_group_is_rejected(tmp_path: Path, pid: object) -> None:
    """0 and -1 mean process groups in a call of kill."""
    file = file_in(tmp_path)
    with held(tmp_path):
        data = json.loads(file.path.read_text("utf-8"))
        file.path.write_text(json.dumps({**data, "pid": pid}))
        assert file.read() is None


def test_a_truncated_file_is_ignored(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    with held(tmp_path):
        whole = file.path.read_bytes()
        for length in range(len(whole)):
            file.path.write_bytes(whole[:length])
            assert file.read() is None, length


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", "[" * 99_999, "\x00"])
def test_any_content_of_the_file_is_not_fatal(tmp_path: Path, content: str) -> None:
    file = file_in(tmp_path)
    with held(tmp_path):
        file.path.write_text(content)
        assert file.read() is None


def test_an_unwritable_folder_is_reported_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with (
        pytest.raises(SetupError, match="cannot be written") as refused,
        held(tmp_path),
    ):
        pass
    assert "--data-dir" in refused.value.hint
