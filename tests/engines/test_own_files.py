"""Only regular files are opened, of this user if required, and opening never blocks."""

import os
import socket
from pathlib import Path

import pytest

from toolscript.core.own_files import NotRegular, is_own, open_regular


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("said")
    return tmp_path / "file"


def read(path: Path | str, *, follow_links: bool = False, dir_fd: int | None = None) -> str:
    with os.fdopen(open_regular(path, follow_links=follow_links, dir_fd=dir_fd)) as opened:
        return opened.read()


def test_a_regular_file_is_opened_by_its_path_or_within_a_folder(file: Path) -> None:
    assert read(file) == "said"
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        assert read("file", dir_fd=folder) == "said"
    finally:
        os.close(folder)


def test_a_link_is_followed_only_where_people_link_their_files(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert read(link, follow_links=True) == "said"
    with pytest.raises(OSError, match="symbolic links"):
        read(link)


def test_a_pipe_without_a_writer_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular):
        read(tmp_path / "pipe")


def test_neither_a_folder_nor_a_socket_is_opened(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError):  # noqa: PT011 - each system has words of its own for it
            read(tmp_path / "socket")


@pytest.mark.parametrize(("me", "strictly", "or_roots"), [(0, True, True), (1, False, True)])
def test_a_file_of_root_is_accepted_unless_it_must_be_the_users_own(
    monkeypatch: pytest.MonkeyPatch, me: int, strictly: bool, or_roots: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: me)
    of_root = os.stat_result((0o100600, 1, 1, 1, 0, 0, 4, 0, 0, 0))
    assert (is_own(of_root, or_root=False), is_own(of_root)) == (strictly, or_roots)


def test_a_file_of_another_user_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert not is_own(os.stat_result((0o100600, 1, 1, 1, 2, 2, 4, 0, 0, 0)))
