"""Which gateway runs: written down by it, believed only while its process lives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolscript.adapters.running_gateway import RunningFile

pytestmark = pytest.mark.requirement("TS-002")

URL, VERSION, MODEL = "http://127.0.0.1:7355", "1.2.3", "some/model"


def file_in(folder: Path, *configs: str) -> RunningFile:
    return RunningFile(folder / "run", [Path(one) for one in configs or ("a.json",)])


def written(folder: Path, **changes: object) -> RunningFile:
    file = file_in(folder)
    file.write(URL, VERSION, MODEL)
    data = json.loads(file.path.read_text("utf-8"))
    file.path.write_text(json.dumps({**data, **changes}))
    return file


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_a_gateway_that_lives_is_known_with_all_it_wrote(tmp_path: Path) -> None:
    running = written(tmp_path).read()
    assert running is not None
    assert (running.pid, running.url, running.version, running.model) == (os.getpid(), URL, VERSION, MODEL)
    assert running.files == ("a.json",)


def test_nothing_runs_where_nothing_is_written(tmp_path: Path) -> None:
    assert file_in(tmp_path).read() is None


def test_a_gateway_whose_process_is_gone_does_not_run(tmp_path: Path) -> None:
    file = written(tmp_path, pid=dead_pid())
    assert file.read() is None
    file.remove()
    assert not file.path.exists()


def test_other_config_files_have_another_gateway(tmp_path: Path) -> None:
    written(tmp_path)
    assert file_in(tmp_path, "b.json").read() is None
    assert file_in(tmp_path, "a.json", "b.json").read() is None


@pytest.mark.parametrize("pid", [0, -1, -os.getpid(), 10**30, "x", None, [], float("inf")])
def test_what_is_no_process_is_never_believed(tmp_path: Path, pid: object) -> None:
    """0 and -1 mean whole groups of processes to whoever ends them."""
    assert written(tmp_path, pid=pid).read() is None


def test_a_file_cut_short_anywhere_is_as_good_as_none(tmp_path: Path) -> None:
    file = written(tmp_path)
    whole = file.path.read_bytes()
    for length in range(len(whole)):
        file.path.write_bytes(whole[:length])
        assert file.read() is None, length


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", "[" * 99_999, "\x00"])
def test_whatever_is_in_the_file_it_is_not_fatal(tmp_path: Path, content: str) -> None:
    file = written(tmp_path)
    file.path.write_text(content)
    assert file.read() is None


def test_a_gateway_removes_its_own_file_and_no_other(tmp_path: Path) -> None:
    own = written(tmp_path)
    own.remove()
    assert not own.path.exists()
    own.remove()
    other = written(tmp_path, pid=os.getppid())
    other.remove()
    assert other.path.exists()


def test_writing_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    file = written(tmp_path, pid=dead_pid())
    file.write(URL, VERSION, MODEL)
    assert file.read() is not None
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]
