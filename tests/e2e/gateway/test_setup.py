"""`toolscript setup`: from a home folder with other clients to a search through a connected one, and back."""

import json
import resource
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.gateway.machines import Machine, mcp_server, new_machine
from tests.support.folder_state import folder_state
from toolscript.gateway.autostart_files import UNIT

pytestmark = pytest.mark.requirement("GW-007")

MACHINE_SECONDS = 60.0
CURSOR = ".cursor/mcp.json"
CODE = ".config/Code/User/mcp.json"
CODEX = ".codex/config.toml"
PROJECT = ".toolscript.json"


@pytest.fixture
def person(tmp_path: Path) -> Machine:
    """Return a machine with three clients, a server in two of them, and no model but that of the package."""
    machine = new_machine(tmp_path / "machine", Path("builtin")).without("TOOLSCRIPT_SEARCH_MODEL")
    plain, paged = {**mcp_server("plain"), "env": {"API_KEY": "sk-secret-one"}}, mcp_server("paged", "whole")
    _write(machine.home / CURSOR, json.dumps({"mcpServers": {"plain": plain}}, indent=4) + "\n\n")
    _write(machine.home / CODE, '{\n\t// servers\n\t"servers": {"paged": ' + json.dumps(paged) + "}}")
    _write(machine.home / CODEX, 'model = "x"  # kept\n')
    (machine.home / CURSOR).chmod(0o640)
    return machine.also(XDG_RUNTIME_DIR="")


def without_data(machine: Machine) -> dict[str, str]:
    """Return the home folder without the gateway's own folder, which stays."""
    own = machine.data.relative_to(machine.home).parts[0]
    return {path: state for path, state in folder_state(machine.home).items() if Path(path).parts[0] != own}


def files(state: dict[str, str]) -> dict[str, str]:
    return {path: what for path, what in state.items() if not what.endswith(" folder")}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _entry(machine: Machine, file: str = CURSOR) -> dict[str, Any]:
    text = (machine.home / file).read_text("utf-8")
    if file.endswith(".toml"):
        return dict(tomllib.loads(text)["mcp_servers"]["toolscript"])
    servers = json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))
    return dict((servers.get("mcpServers") or servers["servers"])["toolscript"])


async def _search(machine: Machine, entry: dict[str, Any], query: str) -> str:
    """Search as a client does, with nothing but the entry that setup wrote."""
    started_by = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        env={**machine.whole_environment(), **entry.get("env", {})},
        cwd=machine.home,
    )
    async with Client(stdio_client(started_by)) as client:
        answer = await client.call_tool("search_tools", {"query": query})
    return "\n".join(block.text for block in answer.content if block.type == "text")


async def test_from_nothing_to_a_first_search_through_a_connected_client_takes_less_than_a_minute(
    person: Machine,
) -> None:
    before, began, used = without_data(person), time.monotonic(), _cpu_seconds()
    person.run("setup", "--yes")
    found = await _search(person, _entry(person), "add two numbers")
    assert "plain__add" in found
    assert "sk-secret-one" not in found
    assert min(_cpu_seconds() - used, time.monotonic() - began) < MACHINE_SECONDS
    person.run("setup", "--undo", "--yes")
    assert without_data(person) == before


def _cpu_seconds() -> float:
    """Return the time that processes of this one have used: a busy machine makes them wait, but no slower."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_every_client_that_is_found_is_connected_by_the_whole_path(person: Machine) -> None:
    machine = person.here()
    machine.run("setup", "--yes")
    for file in (CURSOR, CODE, CODEX):
        entry = _entry(machine, file)
        assert Path(entry["command"]).is_absolute()
        assert entry["args"][-1] == "mcp"
    assert "# kept" in (machine.home / CODEX).read_text("utf-8")
    imported = json.loads(machine.config.read_text("utf-8"))["mcpServers"]
    assert set(imported) == {"plain", "paged"}


def test_a_client_is_told_what_only_the_shell_of_the_setup_has_set(person: Machine) -> None:
    machine = person.here().also(TOOLSCRIPT_SEARCH_MODEL="none", TOOLSCRIPT_GATEWAY_TOKEN="very-secret")
    machine.run("setup", "--yes")
    assert _entry(machine)["env"] == {"TOOLSCRIPT_SEARCH_MODEL": "none"}
    assert _entry(machine, CODEX)["env"] == {"TOOLSCRIPT_SEARCH_MODEL": "none"}


def test_a_preview_writes_nothing_and_names_every_file(person: Machine) -> None:
    machine = person.here()
    before = folder_state(machine.folder)
    shown = machine.run("setup", "--preview").stderr
    for file in (CURSOR, CODE, CODEX):
        assert str(machine.home / file) in shown
    assert "plain (Cursor)" in shown
    assert "sk-secret-one" not in shown
    assert folder_state(machine.folder) == before


def test_without_a_terminal_nothing_is_asked_and_nothing_is_written(person: Machine) -> None:
    before = folder_state(person.folder)
    told = person.run("setup").stdout
    assert "no terminal to ask in; --yes takes the steps" in told
    assert folder_state(person.folder) == before


def test_a_person_is_asked_before_each_step_and_a_no_leaves_it_out(person: Machine) -> None:
    seen = person.on_a_terminal("setup", "--client", "cursor", "--skip", "model", answer="y\ny\nn\n")
    assert "write them to" in seen
    assert "connect Cursor? [Y/n]" in seen
    assert person.config.exists()
    assert "toolscript" not in json.loads((person.home / CURSOR).read_text("utf-8"))["mcpServers"]
    assert "2 of 2 servers answered" in seen
    assert person.json("setup", "--undo", "--preview")["would_undo"] == ["import"]


def test_steps_that_are_left_out_are_not_taken(person: Machine) -> None:
    machine = person.here()
    machine.run("setup", "--yes", "--skip", "connect", "--skip", "check")
    assert machine.json("setup", "--undo", "--preview")["would_undo"] == ["import"]


def test_each_step_is_taken_back_alone(person: Machine) -> None:
    machine = person.here()
    before = without_data(machine)
    steps = ["import", "connect cursor", "connect vscode", "connect codex"]
    machine.run("setup", "--yes")
    for step in steps:
        taken = machine.json("setup", "--undo", "--preview")["would_undo"]
        assert step in taken
        machine.run("setup", "--undo", "--yes", "--step", step)
    assert without_data(machine) == before
    assert "no step to take back" in machine.run("setup", "--undo", "--yes", code=1).stdout


def test_a_second_setup_has_nothing_left_to_do_and_is_taken_back_as_one(person: Machine) -> None:
    machine = person.here()
    before = without_data(machine)
    machine.run("setup", "--yes", "--skip", "check")
    after = folder_state(machine.home)
    machine.run("setup", "--yes", "--skip", "check")
    assert folder_state(machine.home) == after
    machine.run("setup", "--yes")
    machine.run("setup", "--undo", "--yes")
    assert without_data(machine) == before


def test_a_client_that_wrote_its_file_since_keeps_what_it_wrote(person: Machine) -> None:
    machine = person.here()
    machine.run("setup", "--yes")
    written = json.loads((machine.home / CURSOR).read_text("utf-8"))
    written["mcpServers"]["new"] = {"command": "new"}
    _write(machine.home / CURSOR, json.dumps(written))
    machine.run("setup", "--undo", "--yes")
    assert set(json.loads((machine.home / CURSOR).read_text("utf-8"))["mcpServers"]) == {"plain", "new"}


def test_servers_that_were_changed_since_the_import_stay_and_are_named(person: Machine) -> None:
    machine = person.here()
    machine.run("setup", "--yes")
    machine.configure({"mine": {"command": "mine"}})
    told = machine.run("setup", "--undo", "--yes").stderr
    assert f"{machine.config} was changed since, and stays" in told
    assert "mine" in machine.config.read_text("utf-8")


def test_a_project_is_trusted_by_a_person_alone(person: Machine) -> None:
    _write(
        person.project / PROJECT, json.dumps({"mcpServers": {"theirs": {"command": "theirs", "args": ["now"]}}})
    )
    assert "a person has to review it" in person.run("setup", "--yes").stderr
    assert person.json("trust", "--list")["files"] == []
    person.run("setup", "--undo", "--yes")
    skips = [word for step in ("import", "check", "model", "connect", "autostart") for word in ("--skip", step)]
    seen = person.on_a_terminal("setup", *skips, answer="y\n")
    assert "theirs: theirs now" in seen
    assert "`toolscript trust --forget` takes it back" in seen
    assert [file["trusted"] for file in person.json("trust", "--list")["files"]] == [True]


async def test_who_declines_the_model_has_clients_that_search_without_it(person: Machine) -> None:
    skips = ("--skip", "import", "--skip", "check", "--client", "cursor")
    seen = person.on_a_terminal("setup", *skips, answer="n\ny\n")
    assert "download it in the background" in seen
    assert _entry(person)["env"] == {"TOOLSCRIPT_SEARCH_MODEL": "builtin"}


def test_a_server_that_does_not_start_is_named_with_its_reason(person: Machine) -> None:
    machine = person.here()
    _write(machine.home / CURSOR, json.dumps({"mcpServers": {"broken": {"command": "no-such-program"}}}))
    told = machine.run("setup", "--yes").stderr
    assert "1 of 2 servers answered" in told
    assert "broken: failed" in told
    assert "no-such-program" in told


def test_the_gateway_starts_at_login_and_all_of_it_is_taken_back(person: Machine) -> None:
    programs, runtime = person.folder / "programs", person.folder / "runtime" / "systemd"
    programs.mkdir()
    runtime.mkdir(parents=True)
    (runtime / "private").touch()
    (programs / "systemctl").write_text("#!/bin/sh\n", "utf-8")
    (programs / "systemctl").chmod(0o755)
    path = f"{programs}:{person.whole_environment()['PATH']}"
    machine = person.here().also(PATH=path, XDG_RUNTIME_DIR=str(runtime.parent))
    before = files(without_data(machine))
    machine.run("setup", "--yes")
    assert (machine.home / ".config" / "systemd" / "user" / UNIT).exists()
    machine.run("setup", "--undo", "--yes")
    assert files(without_data(machine)) == before


def test_a_step_that_fails_is_named_and_the_others_are_taken(person: Machine) -> None:
    machine = person.here()
    # A folder in place of the backup: the client's file cannot be written safely.
    (machine.home / f"{CURSOR}.toolscript-backup").mkdir()
    told = machine.run("setup", "--yes", code=2).stderr
    assert "not done" in told
    assert machine.config.exists()
    assert "toolscript" in (machine.home / CODEX).read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--skip", "all"), "one of import, trust"),
        (("--client", "emacs"), "one of claude-desktop"),
        (("--step", "import"), "--skip leaves a step out"),
    ],
)
def test_what_it_does_not_know_is_refused_with_what_there_is(
    person: Machine, words: tuple[str, ...], hint: str
) -> None:
    assert hint in person.here().run("setup", *words, code=2).stderr


def test_without_any_server_setup_says_where_it_looked_and_how_to_begin(machine: Machine) -> None:
    done = machine.also(TOOLSCRIPT_SEARCH_MODEL="none").run("setup", "--yes", "--skip", "autostart")
    assert f"looked in {machine.home / '.cursor' / 'mcp.json'} (Cursor)" in done.stderr
    assert f"now: name a server in {machine.config}, such as " in done.stdout
    assert "toolscript search" not in done.stdout
