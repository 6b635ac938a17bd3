"""Our entry in a client's config: added and removed."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import NODE, write
from toolscript.core.errors import ConfigInvalid, NotFound
from toolscript.gateway.config.connect import (
    Change,
    ConnectPlan,
    Running,
    apply_connect,
    connect_client,
    disconnect_client,
)

pytestmark = pytest.mark.requirement("TS-001")

US = {"command": "toolscript", "args": ["mcp"]}
# What makes these clients show our tools in their first request.
SHOWN: dict[str, dict[str, object]] = {
    "claude-code": {"alwaysLoad": True},
    "codex": {"required": True, "omit_tools_from": ["deferred"]},
}
JSON_FILES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", US),
    "claude-code": (".claude.json", "mcpServers", US | SHOWN["claude-code"]),
    "cursor": (".cursor/mcp.json", "mcpServers", US),
    "vscode": (".config/Code/User/mcp.json", "servers", {"type": "stdio"} | US),
}
ALL_FILES = {client: file for client, (file, _, _) in JSON_FILES.items()} | {"codex": ".codex/config.toml"}


def connect(client: str, home: Path) -> ConnectPlan:
    return connect_client(client, home, home / "project", "linux", {})


def disconnect(client: str, home: Path) -> ConnectPlan:
    return disconnect_client(client, home, home / "project", "linux", {})


def installed(client: str, home: Path) -> Path:
    path = home / ALL_FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("client", JSON_FILES)
def test_our_entry_is_added_to_the_file_that_the_client_reads(tmp_path: Path, client: str) -> None:
    path, section, entry = installed(client, tmp_path), JSON_FILES[client][1], JSON_FILES[client][2]
    write(path, {section: {"theirs": NODE}, "other": 1})
    plan = connect(client, tmp_path)
    assert (plan.path, plan.change) == (path, Change.ADD)
    assert json.loads(path.read_text()) == {section: {"theirs": NODE}, "other": 1}
    apply_connect(plan)
    assert json.loads(path.read_text()) == {section: {"theirs": NODE, "toolscript": entry}, "other": 1}


def test_our_table_is_added_to_codex(tmp_path: Path) -> None:
    path = write(installed("codex", tmp_path), '# mine\nmodel = "o5"\n[mcp_servers.a]\ncommand = "x"')
    apply_connect(connect("codex", tmp_path))
    assert path.read_text().startswith('# mine\nmodel = "o5"\n[mcp_servers.a]\ncommand = "x"\n')
    servers = tomllib.loads(path.read_text())["mcp_servers"]
    assert servers == {"a": {"command": "x"}, "toolscript": US | SHOWN["codex"]}


@pytest.mark.parametrize("client", ALL_FILES)
def test_undo_restores_the_exact_file(tmp_path: Path, client: str) -> None:
    before = "# mine\na = 1" if client == "codex" else '{ "other" : 1, // mine\n}'
    path = write(installed(client, tmp_path), before)
    apply_connect(connect(client, tmp_path))
    assert connect(client, tmp_path).backup.read_text() == before
    apply_connect(disconnect(client, tmp_path))
    assert path.read_text() == before
    assert not connect(client, tmp_path).backup.exists()


@pytest.mark.parametrize("client", ALL_FILES)
def test_undo_removes_a_file_that_did_not_exist_before(tmp_path: Path, client: str) -> None:
    path = installed(client, tmp_path)
    apply_connect(connect(client, tmp_path))
    assert "toolscript" in path.read_text()
    apply_connect(disconnect(client, tmp_path))
    assert not path.exists()


@pytest.mark.parametrize("client", ALL_FILES)
def test_to_connect_twice_changes_nothing_and_keeps_the_first_backup(tmp_path: Path, client: str) -> None:
    path = write(installed(client, tmp_path), "a = 1\n" if client == "codex" else "{}")
    apply_connect(connect(client, tmp_path))
    content = path.read_bytes()
    again = connect(client, tmp_path)
    assert again.change is Change.SAME
    apply_connect(again)
    assert path.read_bytes() == content
    assert again.backup.read_text() in {"a = 1\n", "{}"}


@pytest.mark.parametrize("client", ALL_FILES)
def test_to_undo_what_was_never_done_changes_nothing(tmp_path: Path, client: str) -> None:
    assert disconnect(client, tmp_path).change is Change.SAME
    path = write(installed(client, tmp_path), "a = 1\n" if client == "codex" else "{}")
    apply_connect(disconnect(client, tmp_path))
    assert path.read_text() in {"a = 1\n", "{}"}


def test_another_server_of_our_name_stays(tmp_path: Path) -> None:
    path = write(installed("cursor", tmp_path), {"mcpServers": {"toolscript": NODE}})
    for plan in (connect("cursor", tmp_path), disconnect("cursor", tmp_path)):
        assert plan.change is Change.CONFLICT
        with pytest.raises(ConfigInvalid, match="another server"):
            apply_connect(plan)
    assert json.loads(path.read_text()) == {"mcpServers": {"toolscript": NODE}}


def test_a_missing_client_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no sign of Cursor"):
        connect("cursor", tmp_path)
    with pytest.raises(NotFound, match="no client is called 'emacs'") as caught:
        connect("emacs", tmp_path)
    assert "cursor" in caught.value.hint


@pytest.mark.parametrize(
    ("client", "text", "message"),
    [
        ("cursor", "{", "not JSON"),
        ("cursor", '{"mcpServers": null}', "not an object"),
        ("codex", "= 1", "not TOML"),
        ("codex", "mcp_servers = {}\n", "cannot add"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_and_unchanged(
    tmp_path: Path, client: str, text: str, message: str
) -> None:
    path = write(installed(client, tmp_path), text)
    with pytest.raises(ConfigInvalid, match=message):
        connect(client, tmp_path)
    assert path.read_text() == text


def test_a_file_that_changed_since_the_plan_is_not_overwritten(tmp_path: Path) -> None:
    path = write(installed("cursor", tmp_path), "{}")
    plan = connect("cursor", tmp_path)
    write(path, '{"a": 1}')
    with pytest.raises(ConfigInvalid, match="in the meantime"):
        apply_connect(plan)
    assert path.read_text() == '{"a": 1}'


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_an_earlier_entry_without_what_shows_our_tools_stays(tmp_path: Path, client: str) -> None:
    path = installed(client, tmp_path)
    table = '[mcp_servers.toolscript]\ncommand = "toolscript"\nargs = ["mcp"]\n'
    before = table if client == "codex" else json.dumps({"mcpServers": {"toolscript": US}})
    path.write_text(before)
    plan = connect(client, tmp_path)
    assert plan.change is Change.SAME
    apply_connect(plan)
    assert path.read_text() == before


def test_the_file_keeps_its_permissions_and_the_backup_is_private(tmp_path: Path) -> None:
    path = write(installed("cursor", tmp_path), "{}")
    path.chmod(0o640)
    plan = connect("cursor", tmp_path)
    apply_connect(plan)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, plan.backup)] == [0o640, 0o600]


def test_a_plan_describes_the_change_without_the_files_content(tmp_path: Path) -> None:
    path = write(installed("cursor", tmp_path), {"mcpServers": {"a": {"env": {"TOKEN": "hunter2"}}}})
    plan = connect("cursor", tmp_path)
    assert str(plan) == f"Cursor: adds the server 'toolscript' to {path}"
    assert "hunter2" not in repr(plan)


def test_on_windows_the_packaged_claude_is_the_one_to_connect(tmp_path: Path) -> None:
    packaged = tmp_path / "AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude"
    for folder in (packaged, tmp_path / "AppData/Roaming/Claude"):
        folder.mkdir(parents=True)
    plan = connect_client("claude-desktop", tmp_path, tmp_path, "win32", {})
    assert plan.path.parent == packaged


HTTP = Running("http://127.0.0.1:7355", "the-token")


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode"])
def test_a_client_with_http_gets_the_address_and_the_token_of_a_gateway(tmp_path: Path, client: str) -> None:
    path, section = installed(client, tmp_path), JSON_FILES[client][1]
    before = json.dumps({section: {"theirs": NODE}}, indent=1)
    path.write_text(before)

    def plan() -> ConnectPlan:
        return connect_client(client, tmp_path, tmp_path / "project", "linux", {}, HTTP)

    apply_connect(plan())
    assert json.loads(path.read_text())[section]["toolscript"] == {
        "type": "http",
        "url": "http://127.0.0.1:7355/mcp",
        "headers": {"Authorization": "Bearer the-token"},
        **SHOWN.get(client, {}),
    }
    assert plan().change is Change.SAME
    assert connect(client, tmp_path).change is Change.CONFLICT
    apply_connect(disconnect(client, tmp_path))
    assert path.read_text() == before


@pytest.mark.parametrize("client", ["claude-desktop", "codex"])
def test_a_client_without_http_is_refused_with_a_hint(tmp_path: Path, client: str) -> None:
    installed(client, tmp_path)
    with pytest.raises(ConfigInvalid, match="without --http"):
        connect_client(client, tmp_path, tmp_path / "project", "linux", {}, HTTP)


def connect_directly(client: str, home: Path, running: Running | None = None) -> ConnectPlan:
    return connect_client(client, home, home / "project", "linux", {}, running, direct=True)


@pytest.mark.parametrize("client", ALL_FILES)
def test_a_client_with_its_own_tool_search_gets_all_tools_and_undo_takes_that_back(
    tmp_path: Path, client: str
) -> None:
    before = "a = 1\n" if client == "codex" else "{}"
    path = write(installed(client, tmp_path), before)
    apply_connect(connect_directly(client, tmp_path))
    content = tomllib.loads(path.read_text()) if client == "codex" else json.loads(path.read_text())
    [servers] = [section for section in content.values() if isinstance(section, dict)]
    assert servers["toolscript"]["args"] == ["mcp", "--direct"]
    # Its own search is to find all tools, which would fill its context.
    assert not {"alwaysLoad", "omit_tools_from"} & servers["toolscript"].keys()
    assert connect_directly(client, tmp_path).change is Change.SAME
    apply_connect(disconnect(client, tmp_path))
    assert path.read_text() == before


def test_a_client_with_http_gets_the_address_of_all_tools(tmp_path: Path) -> None:
    path = write(installed("cursor", tmp_path), "{}")
    apply_connect(connect_directly("cursor", tmp_path, HTTP))
    assert json.loads(path.read_text())["mcpServers"]["toolscript"]["url"] == "http://127.0.0.1:7355/mcp/all"
    apply_connect(disconnect("cursor", tmp_path))
    assert path.read_text() == "{}"


def test_another_way_to_connect_is_chosen_after_undo(tmp_path: Path) -> None:
    installed("cursor", tmp_path)
    apply_connect(connect("cursor", tmp_path))
    with pytest.raises(ConfigInvalid, match="in another way") as caught:
        apply_connect(connect_directly("cursor", tmp_path))
    assert "config connect cursor --undo" in caught.value.hint
    # `setup` does not say which way: whichever is there stays.
    apply_connect(disconnect("cursor", tmp_path))
    apply_connect(connect_directly("cursor", tmp_path))
    assert connect("cursor", tmp_path).change is Change.SAME
