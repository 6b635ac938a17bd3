"""Undo of the whole setup: what it may delete, what it goes on after, and who may run meanwhile."""

import json
from pathlib import Path

import pytest

from tests.support.folder_state import folder_state
from toolscript.core.errors import SetupError
from toolscript.gateway import autostart
from toolscript.gateway.config.connect import Scope, apply_connect, connect_client
from toolscript.gateway.discovery import running_file
from toolscript.gateway.settings import load_gateway_settings
from toolscript.gateway.setup import Setup, StepName, Undone, undo_setup
from toolscript.gateway.undo_journal import UndoJournal

NOT_OURS = ["trusted/a.json", "approvals/decided.json", "capabilities.toml", "models/mine/model.onnx", "notes"]
OTHERS = [step for step in StepName if step is not StepName.CONNECT]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("TOOLSCRIPT_DATA_DIR", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(home)
    return home


def _take_a_step(home: Path) -> Path:
    """Take a step, and leave in the data folder what a gateway makes there; return the data folder."""
    data = home / ".toolscript"
    with UndoJournal(data).recorded("import", [home / "file"]):
        (home / "file").write_text("ours")
    for name in ("cache/words/a", "models/models--a/b", "models/refused.json", "run/token", "approvals/a.json"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("x")
    for name in ("gateway.log", "activity.db", "activity.db-wal", "activity.db-shm"):
        (data / name).write_text("x")
    return data


def _undo() -> Undone:
    return undo_setup(UndoJournal(load_gateway_settings({}).data_folder).names(), flags={})


def test_a_data_folder_with_nothing_but_files_of_the_gateway_is_removed(home: Path) -> None:
    data = _take_a_step(home)
    assert _undo().removed == str(data)
    assert folder_state(home) == {}


@pytest.mark.parametrize("name", NOT_OURS)
def test_a_data_folder_with_something_else_stays_whole(home: Path, name: str) -> None:
    data = _take_a_step(home)
    (data / name).parent.mkdir(parents=True, exist_ok=True)
    (data / name).write_text("a person's")
    assert _undo().removed == ""
    assert (data / name).read_text() == "a person's"
    assert (data / "cache" / "words" / "a").exists()


def test_a_link_in_the_data_folder_is_not_ours(home: Path) -> None:
    data = _take_a_step(home)
    (home / "elsewhere").mkdir()
    (data / "gateway.log").unlink()
    (data / "gateway.log").symlink_to(home / "elsewhere")
    assert _undo().removed == ""
    assert (data / "activity.db").exists()


def test_nothing_is_deleted_while_a_file_is_kept(home: Path) -> None:
    data = _take_a_step(home)
    (home / "file").write_text("a person's")
    done = _undo()
    assert (done.kept, done.removed) == ((str(home / "file"),), "")
    assert (data / "cache" / "words" / "a").exists()


def test_no_other_gateway_starts_during_the_undo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _take_a_step(home)
    seen = []

    def start_one(journal: UndoJournal, name: str) -> list[str]:
        with pytest.raises(SetupError, match="already running"), running_file(load_gateway_settings({})).held():
            pass
        seen.append(name)
        journal.forget(name)
        return []

    monkeypatch.setattr(UndoJournal, "undo", start_one)
    assert _undo().removed == str(data)
    assert seen == ["import"]


def test_the_data_folder_of_a_gateway_that_was_faster_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _take_a_step(home)
    with running_file(load_gateway_settings({})).held():
        assert _undo().removed == ""
    assert (data / "run").is_dir()


def test_an_error_keeps_its_record_and_the_other_steps_are_taken_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _take_a_step(home)
    with UndoJournal(data).recorded("autostart", [home / "unit"]):
        (home / "unit").write_text("ours")

    def fail(**_: object) -> None:
        raise SetupError("the bus is down", hint="wait")

    monkeypatch.setattr(autostart, "uninstall", fail)
    done = undo_setup(["autostart", "import"], flags={})
    assert (done.steps, done.removed) == (("import",), "")
    assert done.errors == ("autostart: the bus is down (wait)",)
    assert UndoJournal(data).names() == ["autostart"]
    assert not (home / "file").exists()


@pytest.fixture
def claude(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's file of Claude Code, connected by a setup in a folder that the shell has left by now."""
    file, project, elsewhere = home / ".claude.json", home / "project", home / "elsewhere"
    file.write_text('{"numStartups": 1}')
    project.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(project)
    for step in Setup(clients=["claude-code"]).steps(OTHERS):
        step.apply()
    assert not list(project.iterdir())
    monkeypatch.chdir(elsewhere)
    return file


def test_a_connection_is_taken_back_byte_for_byte(claude: Path) -> None:
    assert Path(json.loads(claude.read_text())["mcpServers"]["toolscript"]["command"]).is_absolute()
    assert _undo().errors == ()
    assert claude.read_text() == '{"numStartups": 1}'


def test_a_connection_is_taken_out_of_a_file_that_its_client_wrote_since(claude: Path) -> None:
    config = json.loads(claude.read_text())
    config["mcpServers"]["mine"] = {"command": "mine"}
    claude.write_text(json.dumps({**config, "numStartups": 2}))
    done = _undo()
    assert (done.steps, done.errors) == (("connect claude-code",), ())
    assert claude.read_text() == '{"numStartups": 2, "mcpServers": {"mine": {"command": "mine"}}}'


def test_a_connection_that_cannot_be_taken_out_keeps_its_record(claude: Path) -> None:
    claude.write_text("{ damaged")
    done = _undo()
    assert (done.steps, len(done.errors)) == ((), 1)
    assert UndoJournal(load_gateway_settings({}).data_folder).names() == ["connect claude-code"]


def test_a_changed_connection_of_a_project_is_taken_out_where_it_was_made(home: Path) -> None:
    (home / "project").mkdir()
    plan = connect_client("claude-code", home, home / "project", "linux", {}, scope=Scope.PROJECT)
    with UndoJournal(home / ".toolscript").recorded("connect claude-code", [plan.path, plan.backup]):
        apply_connect(plan)
    config = json.loads(plan.path.read_text())
    config["mcpServers"]["mine"] = {"command": "mine"}
    plan.path.write_text(json.dumps(config))
    assert _undo().errors == ()
    assert set(json.loads(plan.path.read_text())["mcpServers"]) == {"mine"}
