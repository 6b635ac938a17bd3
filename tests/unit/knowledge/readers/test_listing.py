"""The files of a folder: in a stable order, without links and hidden files."""

import os
from pathlib import Path

import pytest

from toolscript.core.errors import NotFound
from toolscript.knowledge.readers.files import MAX_DEPTH, list_files

pytestmark = pytest.mark.requirement("KN-005")


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def names(folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder.resolve()) for file in list_files(str(folder))]


def test_files_of_known_kinds_in_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.txt", "a/b/c.html", "a.PDF", "c.png", ".hidden.md", ".git/x.md", "a/.obsidian/y.md"):
        write(tmp_path / name)
    assert names(tmp_path) == ["a/b/c.html", "a/z.txt", "a.PDF", "b.md"]
    assert names(tmp_path) == names(tmp_path)


def test_links_are_not_followed_within_a_folder(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "secret.md")
    inside = tmp_path / "inside"
    write(inside / "a.md")
    (inside / "way").symlink_to(outside.parent)
    (inside / "loop").symlink_to(inside)
    (inside / "b.md").symlink_to(outside)
    # It is listed, so that the report has it; reading it is refused.
    assert names(inside) == ["a.md", "b.md"]


def test_a_link_passed_as_the_path_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real" / "a.md")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert [file.path for file in list_files(str(tmp_path / "link"))] == [
        (tmp_path / "real" / "a.md").resolve().as_posix()
    ]


def test_a_file_passed_as_the_path_is_listed_whatever_its_kind(tmp_path: Path) -> None:
    path = write(tmp_path / "thing.bin")
    assert [file.path for file in list_files(str(path))] == [path.resolve().as_posix()]


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no"):
        list(list_files(str(tmp_path / "none")))


def test_a_name_that_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))).write_text("x")
    assert [file.problem for file in list_files(str(tmp_path))] == ["its name is not UTF-8"]


def test_endlessly_nested_folders_end_with_a_problem(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(MAX_DEPTH + 3):
        deep /= "d"
    write(deep / "a.md")
    assert [file.problem for file in list_files(str(tmp_path))] == ["its folders are nested too deeply"]


def test_a_folder_that_cannot_be_read_is_a_problem_and_not_an_empty_one(tmp_path: Path) -> None:
    """Pruning must not take the files of such a folder for removed."""
    write(tmp_path / "a.md")
    listed = list_files(str(tmp_path))
    gone = tmp_path / "zz"
    gone.mkdir()
    assert next(listed).path.endswith("a.md")
    gone.rmdir()
    assert [file.problem for file in listed] == ["the folder cannot be read: No such file or directory"]
