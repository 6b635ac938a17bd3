"""The folder of a backup: whole or refused, and for its owner alone."""

import json
import stat
from pathlib import Path

import pytest

from toolscript.core.backup_folder import MANIFEST, BackupReader, BackupWriter
from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.values import silent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a finished backup of two files."""
    writer = BackupWriter(tmp_path / "backup")
    with writer.file("postgres/items.gz") as file:
        file.write(b"one\ntwo\n")
    with writer.file("qdrant/0001.snapshot", compressed=False) as file:
        file.write(b"points")
    writer.finish({"scope": "everything"})
    return writer.folder


def test_what_was_written_is_read_again(folder: Path) -> None:
    reader = BackupReader(folder)
    assert reader.manifest["scope"] == "everything"
    assert reader.verify(silent) == sum(entry["bytes"] for entry in reader.manifest["files"].values())
    with reader.file("postgres/items.gz") as file:
        assert list(file) == [b"one\n", b"two\n"]


def test_nobody_else_can_read_it(folder: Path) -> None:
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}


@pytest.mark.parametrize("name", ["postgres/items.gz", "qdrant/0001.snapshot"])
def test_a_file_with_another_byte_is_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InvalidRequest, match=name):
        BackupReader(folder).verify(silent)


def test_a_file_that_is_missing_or_cut_off_is_damage(folder: Path) -> None:
    (folder / "postgres" / "items.gz").write_bytes(b"")
    with pytest.raises(InvalidRequest, match="damaged"):
        BackupReader(folder).verify(silent)
    (folder / "postgres" / "items.gz").unlink()
    with pytest.raises(InvalidRequest, match="cannot be read"):
        BackupReader(folder).verify(silent)


def test_a_manifest_that_someone_changed_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "scope": "tenant"}))
    with pytest.raises(InvalidRequest, match=MANIFEST):
        BackupReader(folder)
    (folder / MANIFEST).write_text("[]")
    with pytest.raises(InvalidRequest, match=MANIFEST):
        BackupReader(folder)


def test_a_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    writer = BackupWriter(tmp_path / "backup")
    with writer.file("postgres/items.gz") as file:
        file.write(b"half of it")
    with pytest.raises(NotFound, match="no backup"):
        BackupReader(writer.folder)
    writer.discard()
    assert not writer.folder.exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InvalidRequest, match="not empty"):
        BackupWriter(tmp_path)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_format_of_later_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolscript.core.backup_folder.FORMAT", 2)
    BackupWriter(tmp_path / "backup").finish({"toolscript": "9.0"})
    monkeypatch.undo()
    with pytest.raises(SetupError, match=r"newer toolscript \(9.0\)"):
        BackupReader(tmp_path / "backup")
