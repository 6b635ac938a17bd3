"""Undo of the whole setup, on files of all clients: our entry goes, and all else stays byte for byte."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway import autostart
from toolscript.gateway.config.clients import Client
from toolscript.gateway.config.importing import backup_of
from toolscript.gateway.setup import Setup, StepName, Undone, steps_taken, undo_setup

pytestmark = pytest.mark.requirement("GW-007")

GOLDEN = Path(__file__).parent / "golden"
FILES = {
    Client.CLAUDE_DESKTOP: ".config/Claude/claude_desktop_config.json",
    Client.CLAUDE_CODE: ".claude.json",
    Client.CURSOR: ".cursor/mcp.json",
    Client.VS_CODE: ".config/Code/User/mcp.json",
    Client.CODEX: ".codex/config.toml",
}
NOT_CONNECTED = [step for step in StepName if step is not StepName.CONNECT]
NOT_IMPORTED = [step for step in StepName if step is not StepName.IMPORT]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder with the files of all clients, in a folder that is no project."""
    home = tmp_path / "home"
    (home / "elsewhere").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("TOOLSCRIPT_DATA_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home / "elsewhere")
    monkeypatch.setattr("sys.platform", "linux")
    for client, file in FILES.items():
        path = home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(golden(client))
        path.chmod(0o640)
    return home


def golden(client: Client) -> bytes:
    return (GOLDEN / client.value / Path(FILES[client]).name).read_bytes()


def connect(*clients: Client) -> None:
    for step in Setup(clients=[client.value for client in clients]).steps(NOT_CONNECTED):
        step.apply()


def undo(*names: str) -> Undone:
    return undo_setup(names or steps_taken(flags={}), flags={})


@pytest.mark.parametrize("client", FILES)
def test_a_file_that_nobody_wrote_since_is_as_it_was(home: Path, client: Client) -> None:
    connect(client)
    path = home / FILES[client]
    assert b"toolscript" in path.read_bytes()
    assert undo() == Undone((f"connect {client}",))
    assert path.read_bytes() == golden(client)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [*path.parent.glob("*backup*")] == []


@pytest.mark.parametrize("client", FILES)
def test_of_a_file_that_its_client_wrote_since_our_entry_alone_goes(home: Path, client: Client) -> None:
    connect(client)
    path = home / FILES[client]
    old, new = (b"first", b"changed")
    path.write_bytes(path.read_bytes().replace(old, new))
    assert undo().errors == ()
    assert path.read_bytes() == golden(client).replace(old, new)


@pytest.mark.parametrize("client", FILES)
def test_a_client_without_a_file_has_none_afterwards(home: Path, client: Client) -> None:
    (home / FILES[client]).unlink()
    connect(client)
    assert (home / FILES[client]).exists()
    undo()
    assert not (home / FILES[client]).exists()


def of_another_user(backup: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives a file away")
    os.chown(backup, 65534, 65534)


def writable_by_others(backup: Path) -> None:
    backup.chmod(0o666)


def linked(backup: Path) -> None:
    backup.rename(backup.with_name("linked"))
    backup.symlink_to("linked")


SPOILT = (of_another_user, writable_by_others, linked)


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_backup_that_others_can_write_is_not_obeyed(home: Path, spoil: Callable[[Path], None]) -> None:
    connect(Client.CLAUDE_DESKTOP)
    path = home / FILES[Client.CLAUDE_DESKTOP]
    backup = path.with_name(f"{path.name}.toolscript-backup")
    spoil(backup)
    undo()
    # Our entry is taken out instead, and the backup is not touched.
    assert path.read_bytes() == golden(Client.CLAUDE_DESKTOP)
    assert os.path.lexists(backup)


def imported(home: Path) -> Path:
    target = home / ".toolscript.json"
    for step in Setup().steps(NOT_IMPORTED):
        step.apply()
    assert '"first"' in target.read_text()
    return target


MINE = '{"mcpServers": {"mine": {"command": "mine"}}, "rules": []}  // mine\n'


@pytest.mark.parametrize("before", [None, MINE])
def test_imported_servers_go_with_the_backup(home: Path, before: str | None) -> None:
    if before is not None:
        (home / ".toolscript.json").write_text(before)
    target = imported(home)
    assert undo() == Undone(("import",))
    assert (target.read_text() if target.exists() else None) == before
    assert not backup_of(target).exists()
    assert steps_taken(flags={}) == []


@pytest.mark.parametrize("before", [None, MINE])
def test_imported_servers_of_a_file_that_was_written_since_stay(home: Path, before: str | None) -> None:
    if before is not None:
        (home / ".toolscript.json").write_text(before)
    target = imported(home)
    now = target.read_text()
    os.utime(target)
    assert undo() == Undone(("import",), (str(target),))
    assert target.read_text() == now


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_backup_of_others_takes_no_server_out(home: Path, spoil: Callable[[Path], None]) -> None:
    (home / ".toolscript.json").write_text(MINE)
    target = imported(home)
    now, time = target.read_text(), target.stat().st_mtime_ns
    backup_of(target).write_text("{}\n")
    os.utime(backup_of(target), ns=(time, time))
    spoil(backup_of(target))
    assert steps_taken(flags={}) == []
    assert target.read_text() == now


def test_a_journal_that_another_version_left_is_not_obeyed(home: Path) -> None:
    (home / ".toolscript").mkdir()
    before = {"kind": "file", "content": "cHduZWQ=", "mode": 420, "digest": "x"}
    change = {"path": str(home / "victim"), "before": before, "after": None, "planned": "", "is_cache": True}
    record = {"steps": [{"name": "import", "changes": [change]}], "folders": []}
    (home / ".toolscript" / "undo.json").write_text(json.dumps(record))
    (home / "victim").write_text("kept")
    assert steps_taken(flags={}) == []
    assert (home / "victim").read_text() == "kept"


def test_an_error_keeps_no_other_step(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(Client.CURSOR)

    def fail(**_: object) -> None:
        raise SetupError("the bus is down", hint="wait")

    monkeypatch.setattr(autostart, "is_installed", lambda **_: True)
    monkeypatch.setattr(autostart, "uninstall", fail)
    done = undo()
    assert done == Undone(("connect cursor",), (), ("autostart: the bus is down (wait)",))


def test_a_damaged_file_of_a_client_that_was_connected_is_named(home: Path) -> None:
    connect(Client.CURSOR)
    for client in (Client.CURSOR, Client.VS_CODE):
        (home / FILES[client]).write_text("{ damaged")
    done = undo()
    assert (done.steps, len(done.errors)) == ((), 1)
    assert done.errors[0].startswith("connect cursor: ")
