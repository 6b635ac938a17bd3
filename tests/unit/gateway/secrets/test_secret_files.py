"""Secrets in a file: only for its user, and none is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway.secret_store import Secrets, open_secret_store

pytestmark = pytest.mark.requirement("GW-002")

# Sets a number of secrets, as a command does.
WRITER = """
import sys
from pathlib import Path
from toolscript.gateway.secret_store import open_secret_store

folder, name, count = sys.argv[1:]
for number in range(int(count)):
    open_secret_store(Path(folder), find=lambda: None).set(f"{name}_{number}", str(number))
"""


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return open_secret_store(tmp_path, find=lambda: None)


@pytest.fixture
def file(secrets: Secrets, tmp_path: Path) -> Path:
    secrets.set("TOKEN", "x")
    return tmp_path / "secrets" / "secrets.json"


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_only_its_user_can_read_the_folder_and_what_is_in_it(file: Path) -> None:
    assert mode_of(file.parent) == 0o700
    assert {mode_of(path) for path in file.parent.iterdir()} == {0o600}


def test_a_folder_that_was_open_is_closed_by_the_next_secret(secrets: Secrets, file: Path) -> None:
    file.parent.chmod(0o755)
    secrets.set("OTHER", "y")
    assert mode_of(file.parent) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_use_is_refused_and_left_as_it_is(secrets: Secrets, file: Path, mode: int) -> None:
    before = file.read_bytes()
    file.chmod(mode)
    for use in (lambda: secrets.get("TOKEN"), lambda: secrets.set("A", "y"), lambda: secrets.remove("TOKEN")):
        with pytest.raises(SetupError, match="other users can read") as refusal:
            use()
        assert f"chmod 600 {file}" in refusal.value.hint
    assert (file.read_bytes(), mode_of(file)) == (before, mode)


def test_a_link_is_refused(secrets: Secrets, file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(SetupError, match="cannot be read"):
        secrets.get("TOKEN")


def test_a_folder_that_is_a_link_gets_no_secret(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "secrets").symlink_to(tmp_path / "other")
    with pytest.raises(SetupError, match="is a link"):
        open_secret_store(tmp_path, find=lambda: None).set("TOKEN", "x")
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(secrets: Secrets, file: Path) -> None:
    os.chown(file, 65534, 65534)
    with pytest.raises(SetupError, match="belongs to another user"):
        secrets.get("TOKEN")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', "null", "[" * 100_000])
def test_a_damaged_file_is_said_to_be_one_and_not_overwritten(secrets: Secrets, file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(SetupError, match="damaged"):
        secrets.set("OTHER", "y")
    assert file.read_text() == text


def test_no_secret_of_several_processes_is_lost(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name, "15"]) for name in ("a", "b", "c")
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    secrets = open_secret_store(tmp_path, find=lambda: None)
    assert secrets.names() == sorted(f"{name}_{number}" for name in "abc" for number in range(15))
    assert {secrets.get(name) for name in secrets.names()} == {str(number) for number in range(15)}


def test_a_lock_that_is_held_bounds_the_wait(
    secrets: Secrets, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("toolscript.gateway.secret_store.LOCK_SECONDS", 0.05)
    with (file.parent / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="another process"):
            secrets.set("OTHER", "y")
    assert json.loads(file.read_text()) == {"TOKEN": "x"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot be written") as refusal:
        open_secret_store(tmp_path / "file", find=lambda: None).set("TOKEN", "x")
    assert "TOOLSCRIPT_DATA_DIR" in refusal.value.hint
