"""Import of other clients' servers into our config file."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gateway.config.builders import NODE, write
from tests.unit.gateway.config.test_jsonc import JSON
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.clients import Client, ClientConfig, FoundServer, Layout, read_client
from toolscript.gateway.config.importing import ImportPlan, apply_import, backup_of, plan_import, preview_rows
from toolscript.gateway.config.jsonc import parse
from toolscript.gateway.config.read import read_config
from toolscript.gateway.config.write import with_members

pytestmark = pytest.mark.requirement("TS-001")

OTHER = {"command": "deno"}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".toolscript.json"


def found(
    tmp_path: Path, servers: dict[str, object], client: Client = Client.CLAUDE_CODE, *, of_project: bool = False
) -> list[FoundServer]:
    project = tmp_path / "project"
    path = write(project / f"{client}-{of_project}.json", {"mcpServers": servers})
    return read_client(ClientConfig(client, path, Layout.MCP_SERVERS, project, of_project))


def actions(plan: ImportPlan) -> list[tuple[str, str]]:
    return [(server.name, str(server.action)) for server in plan.servers]


def test_planned_servers_are_written_and_read_back_unchanged(tmp_path: Path, target: Path) -> None:
    raw = {"command": "npx", "args": ["-y"], "env": {"T": "${T}"}}
    plan = plan_import(found(tmp_path, {"a": raw, "b": {"url": "https://h"}}), target)
    assert not target.exists()
    assert apply_import(plan) == ("a", "b")
    assert json.loads(target.read_text()) == {"mcpServers": {"a": raw, "b": {"url": "https://h"}}}
    assert [server.name for server in read_config([target], {"T": "x"}).servers] == ["a", "b"]


def test_a_second_import_finds_all_the_same_and_writes_nothing(tmp_path: Path, target: Path) -> None:
    servers = [*found(tmp_path, {"a": NODE}), *found(tmp_path, {"a": OTHER, "my server": NODE}, Client.CURSOR)]
    apply_import(plan_import(servers, target))
    before = target.stat().st_mtime_ns
    again = plan_import(servers, target)
    assert actions(again) == [("a", "same"), ("a-cursor", "same"), ("my-server", "same")]
    assert apply_import(again) == ()
    assert target.stat().st_mtime_ns == before


def test_the_same_server_of_two_clients_is_one(tmp_path: Path, target: Path) -> None:
    same = {"type": "stdio", "command": "node", "args": [], "env": {}}
    plan = plan_import([*found(tmp_path, {"a": NODE}), *found(tmp_path, {"a": same}, Client.CURSOR)], target)
    assert actions(plan) == [("a", "add"), ("a", "same")]
    assert "as in Claude Code" in plan.servers[1].reason


def test_another_server_of_the_same_name_is_named_after_its_client(tmp_path: Path, target: Path) -> None:
    servers = [
        *found(tmp_path, {"a": NODE}),
        *found(tmp_path, {"a": OTHER}, Client.CURSOR),
        *found(tmp_path, {"a": {"command": "bun"}}, Client.CURSOR, of_project=True),
    ]
    plan = plan_import(servers, target)
    assert actions(plan) == [("a", "add"), ("a-cursor", "add"), ("a-cursor-2", "add")]
    assert plan == plan_import(servers, target)


def test_an_existing_server_is_never_changed(tmp_path: Path, target: Path) -> None:
    write(target, {"mcpServers": {"a": OTHER, "b": NODE}})
    plan = plan_import(found(tmp_path, {"a": NODE, "b": NODE, "c": NODE}), target)
    assert actions(plan) == [("a", "conflict"), ("b", "same"), ("c", "add")]
    apply_import(plan)
    assert json.loads(target.read_text())["mcpServers"] == {"a": OTHER, "b": NODE, "c": NODE}


def test_a_skipped_server_is_not_written_and_has_a_reason(tmp_path: Path, target: Path) -> None:
    plan = plan_import(found(tmp_path, {"us": {"command": "toolscript", "args": ["mcp"]}, "bad": {}}), target)
    assert actions(plan) == [("us", "skip"), ("bad", "skip")]
    assert apply_import(plan) == ()
    assert not target.exists()
    assert [row.action.startswith("skip: ") for row in preview_rows(plan)] == [True, True]


def test_comments_order_and_other_keys_of_the_file_stay(tmp_path: Path, target: Path) -> None:
    before = '{\n  // ours\n  "z": 1,\n  "mcpServers": {\n    "a": {"command": "x"} // first\n  },\n'
    write(target, before + '  "b": [1, 2,],\n}\n')
    apply_import(plan_import(found(tmp_path, {"new": NODE}), target))
    after = target.read_text()
    assert after == (
        '{\n  // ours\n  "z": 1,\n  "mcpServers": {\n    "a": {"command": "x"}, // first\n'
        '    "new": {\n      "command": "node"\n    }\n  },\n  "b": [1, 2,],\n}\n'
    )


def test_the_file_before_is_kept_beside_it(tmp_path: Path, target: Path) -> None:
    text = '{"mcpServers": {}} // mine'
    write(target, text)
    apply_import(plan_import(found(tmp_path, {"a": NODE}), target))
    assert backup_of(target).read_text() == text
    assert backup_of(target).name == ".toolscript.json.toolscript-backup"


def test_without_a_file_before_the_backup_is_empty(tmp_path: Path, target: Path) -> None:
    apply_import(plan_import(found(tmp_path, {"a": NODE}), target))
    assert backup_of(target).read_text() == ""


def test_only_the_owner_can_read_a_file_with_secrets(tmp_path: Path, target: Path) -> None:
    write(target, {})
    target.chmod(0o644)
    apply_import(plan_import(found(tmp_path, {"a": NODE}), target))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (target, backup_of(target))] == [0o600, 0o600]


def test_nothing_else_is_left_in_the_folder(tmp_path: Path, target: Path) -> None:
    servers = found(tmp_path, {"a": NODE})
    before = {path: path.read_bytes() for path in target.parent.iterdir()}
    apply_import(plan_import(servers, target))
    assert set(target.parent.iterdir()) - {target, backup_of(target)} == set(before)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_link_stays_a_link(tmp_path: Path, target: Path) -> None:
    real = write(tmp_path / "dotfiles" / "mine.json", {"mcpServers": {}})
    target.parent.mkdir(exist_ok=True)
    target.symlink_to(real)
    apply_import(plan_import(found(tmp_path, {"a": NODE}), target))
    assert target.is_symlink()
    assert json.loads(real.read_text())["mcpServers"] == {"a": NODE}


def test_a_file_that_changed_since_the_plan_is_not_overwritten(tmp_path: Path, target: Path) -> None:
    plan = plan_import(found(tmp_path, {"a": NODE}), target)
    write(target, {"mcpServers": {"theirs": NODE}})
    with pytest.raises(ConfigInvalid, match="changed in the meantime"):
        apply_import(plan)
    assert json.loads(target.read_text()) == {"mcpServers": {"theirs": NODE}}


def test_a_failed_write_leaves_the_file_as_it_was(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(target, {"mcpServers": {}})
    plan = plan_import(found(tmp_path, {"a": NODE}), target)
    before = sorted(path.name for path in target.parent.iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigInvalid, match="No space left"):
        apply_import(plan)
    assert json.loads(target.read_text()) == {"mcpServers": {}}
    assert sorted(path.name for path in target.parent.iterdir()) == before


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot write"):
        apply_import(plan_import(found(tmp_path, {"a": NODE}), tmp_path / "absent" / ".toolscript.json"))


@pytest.mark.parametrize("text", ["", "\n", "{}", '{"servers": {"x": {"command": "y"}}}', '{"mcpServers":{}}'])
def test_a_file_without_servers_gets_them(tmp_path: Path, target: Path, text: str) -> None:
    write(target, text)
    apply_import(plan_import(found(tmp_path, {"a": NODE}), target))
    assert json.loads(target.read_text())["mcpServers"] == {"a": NODE}


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}'])
def test_an_invalid_file_is_refused_before_anything_is_written(tmp_path: Path, target: Path, text: str) -> None:
    write(target, text)
    with pytest.raises(ConfigInvalid):
        plan_import(found(tmp_path, {"a": NODE}), target)
    assert target.read_text() == text


def test_line_endings_are_kept(tmp_path: Path, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b'{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}\r\n\t}\r\n}\r\n')
    apply_import(plan_import(found(tmp_path, {"b": NODE}), target))
    content = target.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")
    assert b'\r\n\t\t"b": {\r\n\t\t\t"command": "node"\r\n\t\t}' in content


def test_a_server_of_the_project_means_the_same_in_the_users_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    raw = {"command": "${workspaceFolder}/run", "args": ["$${workspaceFolder}", "${workspaceFolderBasename}"]}
    servers = found(
        tmp_path, {"a": raw, "b": {"command": "x", "cwd": "sub"}, "c": {"url": "http://h"}}, of_project=True
    )
    user = plan_import(servers, tmp_path / ".toolscript.json")
    assert [server.entry for server in user.servers] == [
        {"command": f"{project}/run", "args": ["$${workspaceFolder}", "project"], "cwd": str(project)},
        {"command": "x", "cwd": f"{project}/sub"},
        {"url": "http://h"},
    ]
    assert [server.entry for server in plan_import(servers, project / ".toolscript.json").servers] == [
        dict(server.entry) for server in servers
    ]


def test_a_preview_shows_everything_except_secrets(tmp_path: Path, target: Path) -> None:
    raw = {"command": "npx", "args": ["pkg", "--api-key", "hunter2"], "env": {"TOKEN": "hunter2"}}
    web = {"url": "https://user:hunter2@h.example/p?token=hunter2", "headers": {"Authorization": "Bearer hunter2"}}
    plan = plan_import(found(tmp_path, {"a b": raw, "web": web}), target)
    assert preview_rows(plan) == [
        ("a-b", "Claude Code", "npx pkg --api-key ***", "add; called 'a b' there; carries 2 secrets"),
        ("web", "Claude Code", "https://h.example", "add; carries 2 secrets"),
    ]
    assert "hunter2" not in repr(plan)


def test_a_preview_has_no_terminal_control_characters(tmp_path: Path, target: Path) -> None:
    plan = plan_import(found(tmp_path, {"a\x1b[2J": {"command": "x\x1b]0;", "odd\x1b[1m": 1}}), target)
    assert all(cell.isprintable() for row in preview_rows(plan) for cell in row)


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), JSON, max_size=4),
    st.dictionaries(st.text(), JSON, max_size=3),
    st.dictionaries(st.text(), JSON, min_size=1, max_size=3),
    st.sampled_from([None, 0, 1, 4, "\t"]),
)
def test_new_members_change_nothing_else_of_any_file(
    other: dict[str, object], present: dict[str, object], new: dict[str, object], indent: int | str | None
) -> None:
    path = Path("/x/c.json")
    for whole in (other, other | {"mcpServers": present}):
        section = whole.get("mcpServers", {})
        assert isinstance(section, dict)
        text = json.dumps(whole, indent=indent)
        after = with_members(text, "mcpServers", new, path)
        assert json.loads(after) == whole | {"mcpServers": section | new}
        commented = with_members(f"// a {{ }}\n{text}// b }}", "mcpServers", new, path)
        assert parse(commented, path).value == json.loads(after)
        assert commented.startswith("// a { }\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.text(max_size=3), st.sampled_from(["x", "y", "z"]), st.sampled_from(Client)), max_size=6)
)
def test_any_servers_are_imported_once_each_and_the_second_time_nothing_is_new(
    tmp_path: Path, servers: list[tuple[str, str, Client]]
) -> None:
    target = tmp_path / "project" / ".toolscript.json"
    target.unlink(missing_ok=True)
    source = [
        server
        for name, command, client in servers
        for server in found(tmp_path, {name: {"command": command}}, client)
    ]
    written = apply_import(plan_import(source, target))
    assert len(set(written)) == len(written)
    if written:
        assert [server.name for server in read_config([target], {}).servers] == sorted(written)
    assert {server.action for server in plan_import(source, target).servers} <= {"same"}


def test_another_program_that_is_called_toolscript_is_marked(tmp_path: Path, target: Path) -> None:
    servers = {"toolscript": {"command": "sh", "args": ["-c", "evil"]}, "Toolscript ": NODE, "a": NODE}
    rows = preview_rows(plan_import(found(tmp_path, servers), target))
    marked = [row.server for row in rows if "it is not Toolscript, only called so" in row.action]
    assert marked == ["toolscript", "Toolscript"]
