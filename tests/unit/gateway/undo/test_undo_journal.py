"""What a step wrote is taken back: files, links, folders and modes, and never what a person changed since."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.folder_state import folder_state
from toolscript.core.errors import SetupError
from toolscript.gateway.undo_journal import UndoJournal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kept").write_bytes(b"caf\xe9\r\n")
    (home / "kept").chmod(0o640)
    (home / "link").symlink_to("kept")
    return home


def test_changed_new_and_linked_files_and_their_folders_are_taken_back(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data" / "toolscript")
    new, deep = home / "new", home / "a" / "b" / "c"
    with journal.recorded("write", [home / "kept", home / "link", new, deep]):
        (home / "kept").write_text("other")
        (home / "kept").chmod(0o600)
        (home / "link").unlink()
        (home / "link").symlink_to("new")
        new.write_text("new")
        deep.parent.mkdir(parents=True)
        deep.symlink_to("elsewhere")
    assert journal.names() == ["write"]
    assert journal.undo("write") == []
    assert folder_state(home) == before


def test_steps_are_taken_back_in_any_order_and_folders_go_with_the_last(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")
    for name in ("first", "second"):
        file = home / ".data" / "shared" / name
        with journal.recorded(name, [file]):
            file.parent.mkdir(exist_ok=True)
            file.write_text(name)
    journal.undo("first")
    assert journal.names() == ["second"]
    assert (home / ".data" / "shared" / "second").exists()
    journal.undo("second")
    assert folder_state(home) == before


def test_a_step_that_is_taken_twice_goes_back_to_what_was_before_the_first(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")
    for text in ("one", "two"):
        with journal.recorded("write", [home / "kept"]):
            (home / "kept").write_text(text)
    journal.undo("write")
    assert folder_state(home) == before


def test_a_step_that_failed_half_way_is_taken_back_too(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")

    def fail() -> None:
        with journal.recorded("write", [home / "kept", home / "never"]):
            (home / "kept").write_text("half")
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        fail()
    journal.undo("write")
    assert folder_state(home) == before


def test_a_file_that_was_changed_since_stays_with_its_backup(home: Path) -> None:
    journal = UndoJournal(home / ".data")
    with journal.recorded("write", [home / "kept", home / "kept.bak"]):
        (home / "kept.bak").write_bytes((home / "kept").read_bytes())
        (home / "kept").write_text("ours")
    (home / "kept").write_text("a person's")
    assert journal.undo("write") == [str(home / "kept")]
    assert (home / "kept").read_text() == "a person's"
    assert (home / "kept.bak").exists()
    assert journal.names() == []


def test_what_was_taken_back_by_hand_is_no_fault(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")
    with journal.recorded("write", [home / "new"]):
        (home / "new").write_text("ours")
    (home / "new").unlink()
    assert journal.undo("write") == []
    assert folder_state(home) == before


def test_the_record_is_for_its_user_alone_and_a_damaged_one_is_named(home: Path) -> None:
    journal = UndoJournal(home / ".data")
    with journal.recorded("write", [home / "kept"]):
        (home / "kept").write_text("ours")
    file = home / ".data" / "undo.json"
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"steps": [{}]}')
    with pytest.raises(SetupError, match=r"undo\.json cannot be read"):
        journal.names()


def _interrupt(data: Path) -> None:
    """Make the record that of a process which was killed before it finished its steps."""
    record: dict[str, Any] = json.loads((data / "undo.json").read_text("utf-8"))
    for step in record["steps"]:
        for change in step["changes"]:
            change["after"] = None
    (data / "undo.json").write_text(json.dumps(record), "utf-8")


def test_an_interrupted_step_keeps_a_file_that_it_may_not_have_written(home: Path) -> None:
    journal = UndoJournal(home / ".data")
    with journal.recorded("write", [home / "kept", home / "new"], {home / "kept": "ours"}):
        (home / "kept").write_text("ours")
    _interrupt(home / ".data")
    (home / "new").write_text("a person's")
    assert journal.undo("write") == [str(home / "new")]
    assert (home / "new").read_text() == "a person's"


def test_an_interrupted_step_takes_back_what_it_planned_to_write(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")
    with journal.recorded("write", [home / "kept", home / "new"], {home / "kept": "ours"}):
        (home / "kept").write_text("ours")
    _interrupt(home / ".data")
    assert journal.undo("write") == []
    assert folder_state(home) == before


def test_a_cache_is_taken_back_whatever_it_holds_by_now(home: Path) -> None:
    before = folder_state(home)
    journal = UndoJournal(home / ".data")
    file = home / ".data" / "cache" / "check" / "tools.json"
    with journal.recorded_cache("check", home / ".data" / "cache"):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    file.write_text("newer")
    assert journal.undo("check") == []
    assert folder_state(home) == before


@pytest.mark.parametrize("decided", [False, True])
def test_new_files_of_a_folder_go_unless_they_were_changed_since(home: Path, decided: bool) -> None:
    before, file = folder_state(home), home / ".data" / "approvals" / "a.json"
    journal = UndoJournal(home / ".data")
    with journal.recorded_new("check", file.parent):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    if decided:
        file.write_text("a person's")
    assert journal.undo("check") == ([str(file)] if decided else [])
    assert file.exists() == decided
    assert decided or folder_state(home) == before
