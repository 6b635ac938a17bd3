"""The Unix socket that `serve` listens on as well."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from toolscript.core.errors import SetupError
from toolscript.server.access import full_path
from toolscript.server.processes import bound_file

pytestmark = pytest.mark.requirement("TR-004")


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder) / "admin.sock"


@pytest.mark.parametrize(("mode", "bits"), [("600", 0o600), ("660", 0o660)])
def test_its_file_has_the_mode_it_was_given_whatever_the_process_usually_gives(
    path: Path, mode: str, bits: int
) -> None:
    before = os.umask(0)
    try:
        with bound_file(str(path), mode):
            assert stat.S_IMODE(path.stat().st_mode) == bits
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_file_that_a_killed_server_left_behind_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    with bound_file(str(path), "600") as bound:
        bound.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_socket_that_somebody_listens_on_is_left_to_them(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(SetupError, match="somebody listens there"), bound_file(str(path), "600"):
            pass
    assert path.exists()


def test_a_file_that_is_no_socket_is_never_removed(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(SetupError, match="no socket") as refused, bound_file(str(path), "600"):
        pass
    assert path.read_text() == "precious"
    assert "--socket" in refused.value.hint


@pytest.mark.parametrize("name", ["missing/admin.sock", "x" * 200])
def test_where_none_can_be_made_is_said_with_what_to_do(path: Path, name: str) -> None:
    with pytest.raises(SetupError, match="cannot listen on"), bound_file(str(path.parent / name), "600"):
        pass


def test_it_is_known_by_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/ann")
    assert full_path("~/admin.sock") == "/people/ann/admin.sock"
    assert full_path("admin.sock") == str(Path.cwd() / "admin.sock")
    assert full_path("") == ""
