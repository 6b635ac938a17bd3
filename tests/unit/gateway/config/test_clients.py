"""Locations of other clients' config files."""

from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import write
from toolscript.gateway.config.clients import Client, Layout, find_clients

pytestmark = pytest.mark.requirement("TS-001")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("platform", "file", "client", "layout"),
    [
        ("linux", ".config/Claude/claude_desktop_config.json", Client.CLAUDE_DESKTOP, Layout.MCP_SERVERS),
        ("darwin", "Library/Application Support/Claude/claude_desktop_config.json", Client.CLAUDE_DESKTOP, None),
        ("win32", "AppData/Roaming/Claude/claude_desktop_config.json", Client.CLAUDE_DESKTOP, None),
        (
            "win32",
            "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            Client.CLAUDE_DESKTOP,
            None,
        ),
        ("linux", ".claude.json", Client.CLAUDE_CODE, Layout.CLAUDE_CODE),
        ("linux", ".cursor/mcp.json", Client.CURSOR, Layout.MCP_SERVERS),
        ("linux", ".config/Code/User/mcp.json", Client.VS_CODE, Layout.SERVERS),
        ("linux", ".config/Code/User/profiles/1a2b/mcp.json", Client.VS_CODE, Layout.SERVERS),
        ("linux", ".config/Code/User/settings.json", Client.VS_CODE, Layout.SETTINGS),
        ("linux", ".config/Code - Insiders/User/mcp.json", Client.VS_CODE, Layout.SERVERS),
        ("darwin", "Library/Application Support/Code/User/mcp.json", Client.VS_CODE, Layout.SERVERS),
        ("win32", "AppData/Roaming/Code/User/mcp.json", Client.VS_CODE, Layout.SERVERS),
        ("linux", ".codex/config.toml", Client.CODEX, Layout.CODEX),
    ],
)
def test_the_files_of_a_user_are_found(
    home: Path, project: Path, platform: str, file: str, client: Client, layout: Layout | None
) -> None:
    path = write(home / file, {})
    [config] = find_clients(home, project, platform, {})
    assert (config.path, config.client, config.of_project) == (path, client, False)
    assert config.layout is (layout or Layout.MCP_SERVERS)


@pytest.mark.parametrize(
    ("file", "client"),
    [
        (".mcp.json", Client.CLAUDE_CODE),
        (".cursor/mcp.json", Client.CURSOR),
        (".vscode/mcp.json", Client.VS_CODE),
        (".vscode/settings.json", Client.VS_CODE),
        (".codex/config.toml", Client.CODEX),
    ],
)
def test_the_files_of_a_project_are_found(home: Path, project: Path, file: str, client: Client) -> None:
    path = write(project / file, {})
    [config] = find_clients(home, project, "linux", {})
    assert (config.path, config.client, config.of_project) == (path, client, True)
    assert config.title.endswith("(project)")


@pytest.mark.parametrize(
    ("variable", "file", "platform"),
    [
        ("XDG_CONFIG_HOME", "Claude/claude_desktop_config.json", "linux"),
        ("APPDATA", "Code/User/mcp.json", "win32"),
        ("LOCALAPPDATA", "Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json", "win32"),
        ("CLAUDE_CONFIG_DIR", ".claude.json", "linux"),
        ("CODEX_HOME", "config.toml", "linux"),
    ],
)
def test_a_folder_named_by_the_environment_is_searched(
    home: Path, project: Path, tmp_path: Path, variable: str, file: str, platform: str
) -> None:
    path = write(tmp_path / "elsewhere" / file, {})
    assert find_clients(home, project, platform, {}) == []
    [config] = find_clients(home, project, platform, {variable: str(tmp_path / "elsewhere")})
    assert config.path == path


def test_an_inaccessible_folder_has_no_files(home: Path, project: Path) -> None:
    assert find_clients(home, project, "linux", {"CODEX_HOME": "x" * 5000}) == []


def test_files_come_once_and_in_a_fixed_order(home: Path, project: Path) -> None:
    for path in (home / ".codex" / "config.toml", home / ".cursor" / "mcp.json", home / ".claude.json"):
        write(path, {})
    write(project / ".mcp.json", {})
    configs = find_clients(home, project, "linux", {})
    order = [Client.CLAUDE_CODE, Client.CURSOR, Client.CODEX, Client.CLAUDE_CODE]
    assert [config.client for config in configs] == order
    at_home = find_clients(home, home, "linux", {})
    assert [(config.client, config.of_project) for config in at_home] == [(config, False) for config in order[:3]]
