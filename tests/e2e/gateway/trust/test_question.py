"""The trust question: what the user sees, and the effect of the answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Machine
from tests.e2e.gateway.trust.traps import Trap, set_up
from toolscript.gateway.config.entries import KEYS, OAUTH_KEYS

pytestmark = pytest.mark.requirement("TR-001")

LISTS = ("args", "includeTools", "excludeTools", "envPassthrough")


@pytest.fixture
def trap(machine: Machine) -> Iterator[Trap]:
    with set_up(machine) as trap:
        yield trap


def test_all_that_decides_what_runs_is_shown(trap: Trap) -> None:
    entry = {
        "command": "npx",
        "args": ["-y", "some-server", "${HOME}/x"],
        "env": {"PATH": "./bin", "NODE_OPTIONS": "--require ./evil.js"},
        "cwd": "tools",
        "envPassthrough": ["AWS_*"],
    }
    text = json.dumps({"envPassthrough": ["GITHUB_TOKEN"], "mcpServers": {"a": entry}})
    trap.put(trap.machine.project, text)
    message = trap.look(None, "trust", "--yes")
    for output in (
        "npx -y some-server",
        "PATH=./bin",
        "--require ./evil.js",
        "(in tools)",
        "AWS_*",
        "GITHUB_TOKEN",
    ):
        assert output in message
    assert "the values of HOME" in message


def test_a_file_named_by_another_way_is_the_same_file(trap: Trap) -> None:
    path = trap.put(trap.machine.project, trap.harmless)
    sub = trap.machine.project / "sub"
    sub.mkdir()
    (trap.machine.folder / "link").symlink_to(trap.machine.project)
    for way in ("../.toolscript.json", str(trap.machine.folder / "link" / path.name)):
        trap.look(sub, "trust", way, "--yes")
        assert str(path) in trap.look(sub, "trust", "--list")
        assert "no longer trusted" in trap.look(sub, "trust", way, "--forget")


def test_a_no_revokes_trust_and_records_of_missing_files_can_be_removed(trap: Trap) -> None:
    path = trap.put(trap.machine.project)
    trap.trust(path)
    trap.machine.on_a_terminal("trust", answer="n\n")
    trap.look()
    assert trap.sprung() == []
    path.unlink()
    assert "no longer trusted" in trap.look(None, "trust", str(path), "--forget")
    assert str(path) not in trap.look(None, "trust", "--list")


def test_an_agent_gets_a_hint_to_ask_the_user_and_an_unusual_path_is_quoted(trap: Trap) -> None:
    folder = trap.machine.project / "a;touch x $(id)"
    path = trap.put(folder)
    message = trap.look(folder, "search", "x", "--json")
    assert f"toolscript trust '{path}'" in message
    assert "a person must review it" in message
    assert "--yes" not in message
    assert "--yes" not in trap.look(folder, "trust")


def test_an_unreadable_file_affects_no_other_answer(trap: Trap) -> None:
    path = trap.put(trap.machine.project, "{ not json")
    for words in (("list-tools",), ("get-types",)):
        message = trap.look(None, *words)
        assert "Traceback" not in message
        assert "error:" not in message
    assert path.name in trap.look()


def test_servers_of_a_project_are_imported_only_when_asked_for(trap: Trap) -> None:
    """Project files come from anyone, but imported servers count as the user's own."""
    (trap.machine.project / ".mcp.json").write_text(trap.text, "utf-8")
    assert "no other client's servers" in trap.look(None, "config", "import", "--yes")
    assert "2 servers written" in trap.look(None, "config", "import", "--yes", "--project")
    assert trap.sprung() == []


def test_a_server_is_never_started_in_the_folder_that_a_command_is_run_in(trap: Trap) -> None:
    """`python -m` and `npx` load files from it."""
    marker = trap.machine.home / "where"
    trap.machine.configure({"where": {"command": "/bin/sh", "args": ["-c", f"pwd > {marker}; sleep 1"]}})
    trap.look()
    assert Path(marker.read_text("utf-8").strip()).samefile(trap.machine.home)


def test_a_folder_named_like_the_model_is_not_the_model(trap: Trap) -> None:
    folder = trap.machine.project / "Xenova" / "bge-small-en-v1.5"
    folder.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json", "config.json"):
        (folder / name).write_text("evil", "utf-8")
    trap.machine.configure({"off": {"command": "true", "startupTimeout": 1}})
    message = trap.look(None, "doctor", TOOLSCRIPT_SEARCH_MODEL="Xenova/bge-small-en-v1.5")
    assert "is not on this machine" in message


@pytest.mark.parametrize("key", [*KEYS, *(f"oauth.{name}" for name in OAUTH_KEYS)])
def test_every_key_whose_variables_are_filled_in_is_in_the_question(trap: Trap, key: str) -> None:
    outer, _, inner = key.partition(".")
    text = f"${{VAR_{outer}_{inner}}}"
    whole = outer in ("env", "headers", "oauth")
    value: object = {inner or "NAME": text} if whole else [text] if outer in LISTS else text
    trap.put(trap.machine.project, json.dumps({"mcpServers": {"x": {"url": "https://h.example", outer: value}}}))
    message = trap.look(None, "trust", "--yes")
    assert f"the values of VAR_{outer}_{inner}" in message
    if whole:
        assert text in message


def test_what_cannot_be_seen_is_spelled_out(trap: Trap) -> None:
    hidden = "a\x1b[2Kb\nc\u202ed\u200b"
    entry = {"command": "sh", "args": ["-c", hidden], "env": {"E\u2066": hidden}}
    trap.put(trap.machine.project, json.dumps({"mcpServers": {"x": entry}}))
    message = trap.look(None, "trust", "--yes")
    assert message.count("a[U+001B][2Kb[U+000A]c[U+202E]d[U+200B]") == 2
    assert "E[U+2066]=" in message
    assert "\x1b" not in message.replace("\x1b[?", "")
