"""Whose config a client is connected in, and the command that is written into it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.config.builders import NODE, write
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway import client_configs, program
from toolscript.gateway.config.connect import Change, Running, Scope, apply_connect, connect_client

pytestmark = pytest.mark.requirement("TS-001")

PROJECT_FILES = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def entry_in(path: Path, section: str = "mcpServers") -> dict[str, Any]:
    return dict(json.loads(path.read_text())[section]["toolscript"])


def test_claude_code_is_connected_for_its_user_and_in_all_folders(home: Path) -> None:
    state = {"numStartups": 3, "projects": {"/elsewhere": {"mcpServers": {"theirs": NODE}}}}
    before = write(home / ".claude.json", state).read_text()
    plan = client_configs.connect("claude-code", undo=False, write=True)
    assert plan.path == home / ".claude.json"
    assert json.loads(plan.path.read_text()) == {**state, "mcpServers": {"toolscript": entry_in(plan.path)}}
    assert not list((home / "project").iterdir())
    client_configs.connect("claude-code", undo=True, write=True)
    assert plan.path.read_text() == before


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_a_project_is_connected_where_it_is_asked_for_with_nothing_of_this_machine(
    home: Path, client: str
) -> None:
    path = home / "project" / PROJECT_FILES[client]
    path.parent.mkdir(exist_ok=True)
    plan = client_configs.connect(client, undo=False, write=True, scope=Scope.PROJECT)
    assert plan.path == path
    entry = entry_in(path, "servers" if client == "vscode" else "mcpServers")
    assert {key: entry[key] for key in ("command", "args")} == {"command": "toolscript", "args": ["mcp"]}
    client_configs.connect(client, undo=True, write=True, scope=Scope.PROJECT)
    assert not path.exists()


@pytest.mark.parametrize(("client", "variable"), [("claude-code", ""), ("cursor", "env:"), ("vscode", "env:")])
def test_no_token_is_written_into_the_file_of_a_project(home: Path, client: str, variable: str) -> None:
    path = home / "project" / PROJECT_FILES[client]
    path.parent.mkdir(exist_ok=True)
    running = Running("http://127.0.0.1:7355", "the-token")
    plan = connect_client(client, home, home / "project", "linux", {}, running, scope=Scope.PROJECT)
    apply_connect(plan)
    entry = entry_in(path, "servers" if client == "vscode" else "mcpServers")
    assert entry["headers"] == {"Authorization": f"Bearer ${{{variable}TOOLSCRIPT_GATEWAY_TOKEN}}"}


def test_undo_names_the_scope_in_which_the_client_is_connected(home: Path) -> None:
    client_configs.connect("claude-code", undo=False, write=True, scope=Scope.PROJECT)
    plan = client_configs.connect("claude-code", undo=True, write=True)
    assert plan.change is Change.SAME
    assert f"for {home / 'project' / '.mcp.json'} say --scope project" in str(plan)
    with pytest.raises(ConfigInvalid) as caught:
        client_configs.connect("claude-code", undo=False, write=True, scope=Scope.PROJECT, direct=True)
    assert "--undo --scope project" in caught.value.hint


def test_a_client_without_config_in_projects_is_told_and_a_project_gets_the_folder_of_a_client(home: Path) -> None:
    with pytest.raises(ConfigInvalid, match="Claude Desktop has no config of a project"):
        client_configs.connect("claude-desktop", undo=False, write=True, scope=Scope.PROJECT)
    plan = client_configs.connect("cursor", undo=False, write=True, scope=Scope.PROJECT)
    assert plan.path == home / "project" / ".cursor" / "mcp.json"
    assert plan.path.is_file()


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_a_client_is_given_the_whole_path_of_this_program(
    home: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    plan = client_configs.connect(client, undo=False, write=True)
    command = Path(entry_in(plan.path)["command"])
    assert command.is_absolute()
    assert command.is_file()
    assert client_configs.connect(client, undo=False, write=True).change is Change.SAME


@pytest.mark.parametrize("cache", [".cache/uv", "elsewhere"])
def test_a_program_of_uvx_is_started_by_uvx_again(home: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / cache / "archive-v0" / "x1y2"
    folder.mkdir(parents=True)
    write(home / cache / "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    uvx = write(home / "uvx", "#!/bin/sh")
    uvx.chmod(0o755)
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.setattr("sys.prefix", str(folder))
    entry = entry_in(client_configs.connect("cursor", undo=False, write=True).path)
    assert entry["command"] == str(uvx)
    assert entry["args"][-2:] == ["toolscript", "mcp"]
    assert program.search_path({"PATH": f"{folder / 'bin'}:/usr/bin"}) == "/usr/bin"
    assert client_configs.connect("cursor", undo=True, write=True).change is Change.REMOVE
