"""Discovery of config files, and the merged config."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gateway.config.builders import NODE, only, read, warnings, write
from tests.unit.gateway.config.test_jsonc import JSON
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.entries import KEYS
from toolscript.gateway.config.problems import is_server_name
from toolscript.gateway.config.read import config_paths, read_config

pytestmark = [pytest.mark.requirement("TS-001"), pytest.mark.slow]

NAME = ".toolscript.json"
ENTRIES = st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON | st.text(alphabet="${}:-AB~/"), max_size=6)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "work" / "app" / "src").mkdir(parents=True)
    return tmp_path / "home"


def test_the_user_file_and_the_nearest_project_file_are_read_the_project_last(home: Path) -> None:
    write(home / "work" / NAME, {})
    nearest = write(home / "work" / "app" / NAME, {})
    assert config_paths(home, home / "work" / "app" / "src", None) == [home / NAME, nearest]


def test_without_a_project_file_the_path_of_a_future_one_is_returned(home: Path) -> None:
    start = home / "work" / "app"
    assert config_paths(home, start, None) == [home / NAME, start / NAME]


def test_the_search_ends_below_the_home_folder(home: Path) -> None:
    write(home / NAME, {})
    write(home.parent / NAME, {})
    start = home / "work"
    assert config_paths(home, start, None) == [home / NAME, start / NAME]


def test_outside_the_home_folder_the_search_goes_up_to_the_root(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "srv" / "app"
    outside.mkdir(parents=True)
    above = write(tmp_path / NAME, {})
    assert config_paths(home, outside, None) == [home / NAME, above]


def test_a_file_of_another_user_in_a_parent_folder_is_ignored(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "shared" / "app"
    outside.mkdir(parents=True)
    write(tmp_path / "shared" / NAME, {})
    own = write(outside / NAME, {})
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if (tmp_path / "shared" / NAME).stat().st_uid == 0:
        os.chown(tmp_path / "shared" / NAME, 54321, -1)
    assert config_paths(home, outside, None) == [home / NAME, own]
    own.unlink()
    assert config_paths(home, outside, None) == [home / NAME, own]


def test_in_the_home_folder_there_is_one_file(home: Path) -> None:
    assert config_paths(home, home, None) == [home / NAME]


def test_a_home_folder_reached_by_a_link_is_still_the_home_folder(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert config_paths(link, home, None) == [link / NAME]


def test_an_explicit_file_is_the_only_one(home: Path) -> None:
    write(home / NAME, {})
    explicit = write(home / "work" / "other.json", {})
    assert config_paths(home, home / "work", explicit) == [explicit]


def test_a_missing_explicit_file_is_refused_with_a_hint(home: Path) -> None:
    with pytest.raises(ConfigInvalid, match="absent") as caught:
        config_paths(home, home, home / "absent.json")
    assert "--config" in caught.value.hint


def test_an_explicit_file_that_cannot_be_read_is_refused(home: Path) -> None:
    for path in (home, home / ("x" * 5000)):
        with pytest.raises(ConfigInvalid, match="cannot read"):
            config_paths(home, home, path)


def test_no_file_at_all_is_an_empty_config(home: Path) -> None:
    config = read_config(config_paths(home, home / "work", None), {})
    assert (config.servers, config.files, config.problems) == ((), (), ())


def test_both_files_together_give_all_servers_by_name(home: Path) -> None:
    user = write(home / NAME, {"mcpServers": {"z": NODE, "b": NODE}})
    project = write(home / "work" / NAME, {"mcpServers": {"a": NODE}})
    config = read_config([user, project], {})
    assert [server.name for server in config.servers] == ["a", "b", "z"]
    assert config.files == (user, project)


def test_a_server_of_the_project_replaces_the_users_as_a_whole(home: Path) -> None:
    user = write(home / NAME, {"mcpServers": {"a": {"command": "old", "args": ["1"], "env": {"X": "y"}}}})
    project = write(home / "work" / NAME, {"mcpServers": {"a": {"url": "http://new"}}})
    spec = only(read_config([user, project], {}))
    assert (spec.command, spec.args, spec.env, spec.url) == ("", (), {}, "http://new")


def test_a_project_can_switch_a_server_of_the_user_off(home: Path) -> None:
    user = write(home / NAME, {"mcpServers": {"a": NODE, "b": NODE}})
    project = write(home / "work" / NAME, {"mcpServers": {"a": {"disabled": True}}})
    assert only(read_config([user, project], {})).name == "b"


def test_a_broken_project_server_is_reported_and_not_replaced_by_the_users(home: Path) -> None:
    user = write(home / NAME, {"mcpServers": {"a": NODE}})
    project = write(home / "work" / NAME, {"mcpServers": {"a": {"command": "${NO}"}}})
    config = read_config([user, project], {})
    assert config.servers == ()
    assert [problem.file for problem in config.problems] == [project]


def test_a_relative_folder_is_that_of_the_file_it_is_written_in(home: Path) -> None:
    user = write(home / NAME, {"mcpServers": {"u": {"command": "x", "cwd": "d"}}})
    project = write(home / "work" / NAME, {"mcpServers": {"p": {"command": "${workspaceFolder}/x", "cwd": "d"}}})
    p, u = read_config([user, project], {}).servers
    assert (u.cwd, p.cwd, p.command) == (str(home / "d"), str(home / "work" / "d"), str(home / "work" / "x"))


def test_the_key_of_vs_code_is_read_too_and_mcp_servers_wins(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, {"servers": {"a": {"command": "x"}, "b": NODE}, "mcpServers": {"a": NODE}})
    config = read_config([path], {})
    assert [(server.name, server.command) for server in config.servers] == [("a", "node"), ("b", "node")]
    assert config.problems == ()


def test_the_same_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, {"mcpServers": {"a": NODE}})
    assert read_config([path, path], {}).files == (path,)


@pytest.mark.parametrize("value", [[], '"x"', 1, None, {"mcpServers": []}, {"mcpServers": "x"}, {"servers": 1}])
def test_json_of_another_shape_is_refused_and_names_the_file(tmp_path: Path, value: object) -> None:
    path = write(tmp_path / NAME, value)
    with pytest.raises(ConfigInvalid) as caught:
        read_config([path], {})
    assert str(path) in caught.value.message
    assert "mcpServers" in caught.value.hint


def test_a_file_with_servers_in_the_wrong_section_gets_a_hint(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, {"github": NODE})
    [warning] = warnings(read_config([path], {}))
    assert (warning.server, warning.file) == ("", path)
    assert "mcpServers" in warning.fix
    for fine in ({}, {"$schema": "x"}, {"mcpServers": {}, "theirs": 1}):
        assert read_config([write(path, fine)], {}).problems == ()


def test_a_duplicate_server_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    config = read_config([path], {})
    assert [server.command for server in config.servers] == ["y"]
    assert [problem.server for problem in warnings(config)] == ["a"]
    write(path, '{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}')
    assert ["mcpServers" in problem.message for problem in warnings(read_config([path], {}))] == [True]


def test_comments_and_trailing_commas_are_fine(tmp_path: Path) -> None:
    path = write(
        tmp_path / NAME, '{\n// mine\n"mcpServers": {"a": {"command": "node", /* x */ "args": ["1",],},},\n}'
    )
    assert only(read_config([path], {})).args == ("1",)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.dictionaries(st.text(), ENTRIES | JSON, max_size=4))
def test_any_servers_are_read_or_reported_and_a_valid_one_is_always_read(
    tmp_path: Path, servers: dict[str, object]
) -> None:
    config = read(tmp_path, {**servers, "good": NODE}, {"A": "a", "HOME": "/h"})
    assert "good" in [server.name for server in config.servers]
    assert all(is_server_name(server.name) for server in config.servers)
    assert all(problem.message and problem.fix for problem in config.problems)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(JSON | st.dictionaries(st.sampled_from(["mcpServers", "servers"]), JSON))
def test_any_json_is_read_or_refused(tmp_path: Path, value: object) -> None:
    path = write(tmp_path / NAME, json.dumps(value))
    message = ""
    try:
        read_config([path], {})
    except ConfigInvalid as error:
        message = error.message
    is_object = isinstance(value, dict) and all(
        value.get(key) is None or isinstance(value[key], dict) for key in ("mcpServers", "servers")
    )
    assert (message == "") is is_object
    assert is_object or str(path) in message
