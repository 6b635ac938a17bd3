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
from toolscript.server.processes import bind_unix_socket

pytestmark = pytest.mark.requirement("TR-004")


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder) / "admin.sock"


@pytest.mark.parametrize(("mode", "bits"), [("600", 0o600), ("660", 0o660)])
def test_the_file_has_the_configured_mode_whatever_the_umask(path: Path, mode: str, bits: int) -> None:
    before = os.umask(0)
    try:
        with bind_unix_socket(str(path), mode):
            assert stat.S_IMODE(path.stat().st_mode) == bits
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_file_that_a_killed_server_left_behind_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    with bind_unix_socket(str(path), "600") as bound:
        bound.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_socket_in_use_is_left_alone(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(SetupError, match="another process listens there"), bind_unix_socket(str(path), "600"):
            pass
    assert path.exists()


def test_a_file_that_is_not_a_socket_is_never_removed(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(SetupError, match="not a socket") as refused, bind_unix_socket(str(path), "600"):
        pass
    assert path.read_text() == "precious"
    assert "--socket" in refused.value.hint


@pytest.mark.parametrize("name", ["missing/admin.sock", "x" * 200])
def test_a_socket_that_cannot_be_created_is_reported_with_a_hint(path: Path, name: str) -> None:
    with pytest.raises(SetupError, match="cannot listen on"), bind_unix_socket(str(path.parent / name), "600"):
        pass


def test_the_socket_is_identified_by_its_absolute_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/ann")
    assert full_path("~/admin.sock") == "/people/ann/admin.sock"
    assert full_path("admin.sock") == str(Path.cwd() / "admin.sock")
    assert full_path("") == ""
