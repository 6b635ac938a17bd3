"""`toolscript gateway install` and `uninstall`, with a program in place of systemctl that notes its calls."""

import json
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Machine, new_machine
from tests.support.folder_state import folder_state
from toolscript.gateway.autostart_files import UNIT

SYSTEMCTL = """#!/bin/sh
echo "$@" >> {log}
[ "$2" != "{fails}" ] || {{ echo "Failed to connect to bus" >&2; exit 1; }}
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine that ranks with the model of the package."""
    return new_machine(tmp_path / "machine", Path("builtin"))


@pytest.fixture
def session(machine: Machine) -> Machine:
    """Return a machine in a session that systemd runs."""
    return _with_systemctl(machine)


def _with_systemctl(machine: Machine, fails: str = "nothing") -> Machine:
    programs, runtime = machine.folder / "programs", machine.folder / "runtime"
    programs.mkdir()
    (runtime / "systemd").mkdir(parents=True)
    (runtime / "systemd" / "private").touch()
    systemctl = programs / "systemctl"
    systemctl.write_text(SYSTEMCTL.format(log=machine.folder / "calls", fails=fails), "utf-8")
    systemctl.chmod(0o755)
    path = f"{programs}:{machine.whole_environment()['PATH']}"
    return machine.here().also(PATH=path, XDG_RUNTIME_DIR=str(runtime))


def files(machine: Machine) -> dict[str, str]:
    return {path: what for path, what in folder_state(machine.home).items() if not what.endswith(" folder")}


def _unit(machine: Machine) -> Path:
    return machine.home / ".config" / "systemd" / "user" / UNIT


def test_install_writes_a_unit_that_login_starts_and_starts_it_now(session: Machine) -> None:
    session.run("gateway", "install")
    link = _unit(session).parent / "default.target.wants" / UNIT
    assert link.resolve() == _unit(session)
    calls = (session.folder / "calls").read_text("utf-8").splitlines()
    assert calls == ["--user daemon-reload", f"--user start {UNIT}"]


def test_uninstall_leaves_the_home_folder_as_it_was(session: Machine) -> None:
    before = files(session)
    session.run("gateway", "install")
    session.run("gateway", "install")
    session.run("gateway", "uninstall")
    assert files(session) == before
    assert f"--user stop {UNIT}" in (session.folder / "calls").read_text("utf-8")
    assert "`toolscript gateway install`" in session.run("gateway", "uninstall", code=2).stderr


def test_a_preview_writes_nothing_and_shows_the_file_and_the_commands(session: Machine) -> None:
    before = folder_state(session.folder)
    shown = session.run("gateway", "install", "--preview").stdout
    assert "ExecStart=" in shown
    assert f"systemctl --user start {UNIT}" in shown
    session.run("gateway", "uninstall", "--preview")
    assert folder_state(session.folder) == before


def test_the_unit_has_what_was_set_and_no_secret(session: Machine) -> None:
    own = session.also(
        TOOLSCRIPT_GATEWAY_TOKEN="very-secret",
        TOOLSCRIPT_TEXT_API_KEY="sk-secret",
        HTTPS_PROXY="http://me:secret@proxy:1",
        TOOLSCRIPT_SEARCH_MODEL="builtin",
    )
    own.run("gateway", "install", "--port", "7400")
    unit = _unit(own).read_text("utf-8")
    assert "secret" not in unit
    (command,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert command.endswith('"gateway" "start" "--model" "builtin" "--port" "7400"')
    assert command.startswith('ExecStart="/')


def test_where_systemd_refuses_nothing_is_left(machine: Machine) -> None:
    session = _with_systemctl(machine, fails="start")
    before = files(session)
    refused = session.run("gateway", "install", code=2)
    assert "Failed to connect to bus" in refused.stderr
    assert "hint: start the gateway from your shell's profile" in refused.stderr
    assert files(session) == before


def test_where_systemd_is_not_running_it_says_what_to_do_instead(machine: Machine) -> None:
    before = folder_state(machine.home)
    told = machine.here().without("XDG_RUNTIME_DIR").also(XDG_RUNTIME_DIR="").run("gateway", "install", code=2)
    assert "systemd is not running" in told.stderr
    assert "toolscript gateway start --background" in told.stderr
    assert folder_state(machine.home) == before


def test_a_unit_that_a_person_wrote_anew_stays(session: Machine) -> None:
    session.run("gateway", "install")
    _unit(session).write_text("[Service]\n", "utf-8")
    session.run("gateway", "uninstall", code=2)
    assert _unit(session).read_text("utf-8") == "[Service]\n"


def test_a_unit_of_someone_else_is_neither_replaced_nor_removed(session: Machine) -> None:
    _unit(session).parent.mkdir(parents=True)
    _unit(session).write_text("[Service]\n", "utf-8")
    before = folder_state(session.home)
    assert "is not ours" in session.run("gateway", "install", code=2).stderr
    session.run("gateway", "uninstall", code=2)
    assert folder_state(session.home) == before


def test_json_names_the_system_and_the_files(session: Machine) -> None:
    data = json.loads(session.run("gateway", "install", "--json").stdout)
    assert (data["system"], data["written"], data["files"][0]) == ("systemd", True, str(_unit(session)))
