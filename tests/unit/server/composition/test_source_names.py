"""Paths of files and names of their sources."""

from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.knowledge.ingest.file import FoundFile
from toolscript.knowledge.model.ingest import IngestResult
from toolscript.server.ingest import SourceNames


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "shelf"
    (folder / "inner").mkdir(parents=True)
    for name in ("a.md", "b.txt", "c.exe", ".hidden.md", "inner/d.html"):
        (folder / name).write_text("text", "utf-8")
    return folder


def names(of: SourceNames) -> list[str]:
    return [item.name for item in of.found() if isinstance(item, FoundFile)]


def test_sources_are_known_by_their_full_path(shelf: Path) -> None:
    result = SourceNames([str(shelf)])
    assert names(result) == [f"{shelf}/{name}" for name in ("a.md", "b.txt", "inner/d.html")]
    assert result.count() == 3


def test_with_a_base_names_are_relative_to_it(shelf: Path) -> None:
    result = SourceNames([str(shelf / "inner"), str(shelf / "a.md")], str(shelf))
    assert names(result) == ["inner/d.html", "a.md"]
    assert result.folders == ["inner"]
    assert SourceNames([str(shelf)], str(shelf)).folders == []


def test_a_path_outside_the_base_is_refused(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is not in"):
        SourceNames([str(tmp_path)], str(shelf))


def test_a_missing_path_is_refused(shelf: Path) -> None:
    with pytest.raises(NotFound, match="there is no"):
        SourceNames([str(shelf / "none")])


def test_a_path_within_another_is_read_once(shelf: Path) -> None:
    inner = str(shelf / "inner")
    assert SourceNames([inner, str(shelf), str(shelf), f"{inner}/d.html"]).roots == [str(shelf)]


def test_only_a_missing_file_is_gone(shelf: Path) -> None:
    whole, based = SourceNames([str(shelf)]), SourceNames([str(shelf)], str(shelf))
    assert whole.is_gone(f"{shelf}/none.md")
    assert whole.is_gone(f"{shelf}/a.md/below.md")
    assert not whole.is_gone(f"{shelf}/a.md")
    assert based.is_gone("none.md")
    assert not based.is_gone("a.md")


def test_files_of_a_missing_root_are_not_gone(shelf: Path) -> None:
    result = SourceNames([str(shelf), str(shelf.parent)]), SourceNames([str(shelf)])
    file = SourceNames([str(shelf / "a.md")])
    shelf.rename(shelf.with_name("away"))
    assert [item.is_gone(f"{shelf}/a.md") for item in (*result, file)] == [True, False, True]


def test_a_source_of_another_naming_scheme_is_never_gone(shelf: Path) -> None:
    assert not SourceNames([str(shelf)]).is_gone("none.md")
    assert not SourceNames([str(shelf)], str(shelf)).is_gone(f"{shelf}/none.md")


def test_changed_paths_yield_files_of_known_types_and_contents_of_folders(shelf: Path) -> None:
    paths = [f"{shelf}/{name}" for name in ("a.md", "c.exe", "inner", "gone.md", "gone")]
    result = SourceNames([str(shelf)]).found_at(paths)
    assert [item.name for item in result if isinstance(item, FoundFile)] == [
        f"{shelf}/a.md",
        f"{shelf}/inner/d.html",
    ]


def test_a_name_that_is_no_text_is_skipped_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad\udcff.md").write_text("text", "utf-8")
    (skipped,) = SourceNames([str(tmp_path)]).found()
    assert isinstance(skipped, IngestResult)
    assert "UTF-8" in skipped.problem


def test_links_among_changed_paths_are_skipped_and_so_are_files_below_them(shelf: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("secret", "utf-8")
    (shelf / "link.md").symlink_to(elsewhere / "secret.md")
    (shelf / "folder").symlink_to(elsewhere)
    names = SourceNames([str(shelf)])
    changed = [str(shelf / "link.md"), str(shelf / "folder"), str(shelf / "folder" / "secret.md")]
    assert list(names.found_at(changed)) == []


def test_files_of_an_empty_folder_are_not_gone(tmp_path: Path) -> None:
    mounted = tmp_path / "disk"
    mounted.mkdir()
    names = SourceNames([str(mounted)])
    assert not names.is_gone(f"{mounted}/a.md")
    (mounted / "other.txt").write_text("x", "utf-8")
    assert names.is_gone(f"{mounted}/a.md")


def test_a_whole_base_is_not_pruned(shelf: Path) -> None:
    with pytest.raises(InvalidRequest, match="prune"):
        SourceNames([str(shelf)], str(shelf)).require_prunable()
    SourceNames([str(shelf / "inner")], str(shelf)).require_prunable()
