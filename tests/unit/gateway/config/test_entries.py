"""One server of a config file."""

from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import errors, only, read, warnings
from toolscript.core.mcp_client.model import Transport

pytestmark = pytest.mark.requirement("TS-001")


def test_a_program_to_start_has_all_its_parts(tmp_path: Path) -> None:
    raw = {
        "command": "npx",
        "args": ["-y", "x"],
        "env": {"T": "${T}"},
        "includeTools": ["read_*"],
        "excludeTools": ["x"],
    }
    spec = only(read(tmp_path, {"fs": raw | {"startupTimeout": 5, "callTimeout": 1.5}}, {"T": "secret"}))
    assert (spec.name, spec.transport, spec.command, spec.args) == ("fs", Transport.STDIO, "npx", ("-y", "x"))
    assert (spec.env, spec.include_tools, spec.exclude_tools) == ({"T": "secret"}, ("read_*",), ("x",))
    assert (spec.start_seconds, spec.call_seconds, spec.cwd) == (5.0, 1.5, str(tmp_path))


def test_a_server_that_runs_has_its_url_and_headers(tmp_path: Path) -> None:
    raw = {"url": "${BASE:-https://h}/mcp", "headers": {"Authorization": "Bearer ${T}"}}
    spec = only(read(tmp_path, {"web": raw}, {"T": "secret"}))
    assert (spec.transport, spec.url) == (Transport.HTTP, "https://h/mcp")
    assert spec.headers == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("raw", "transport"),
    [
        ({"command": "node"}, Transport.STDIO),
        ({"command": "node", "type": "stdio"}, Transport.STDIO),
        ({"url": "http://h/mcp"}, Transport.HTTP),
        ({"url": "http://h/sse"}, Transport.SSE),
        ({"url": "http://h/sse/?key=1#x"}, Transport.SSE),
        ({"url": "http://h/mcp?next=/sse"}, Transport.HTTP),
        ({"url": "http://h/sse", "type": "http"}, Transport.HTTP),
        ({"url": "http://h/sse", "type": "streamable-http"}, Transport.HTTP),
        ({"url": "http://h/mcp", "type": "streamableHttp"}, Transport.HTTP),
        ({"url": "http://h/mcp", "type": "sse"}, Transport.SSE),
    ],
)
def test_the_type_is_as_given_or_else_inferred(
    tmp_path: Path, raw: dict[str, object], transport: Transport
) -> None:
    assert only(read(tmp_path, {"a": raw})).transport is transport


INVALID: list[tuple[object, str]] = [
    ({"command": "node", "url": "http://h"}, "both a command and a url"),
    ({}, "neither a command nor a url"),
    ({"command": "", "url": ""}, "neither a command nor a url"),
    ({"command": None}, "neither a command nor a url"),
    ({"command": "node", "type": "ws"}, "type that is unknown"),
    ({"command": "node", "type": "http"}, "type http and has a command"),
    ({"url": "http://h", "type": "stdio"}, "type stdio and has a url"),
    ({"command": ["npx", "x"]}, "command is not text"),
    ({"command": "node", "args": "-y x"}, "args is not a list"),
    ({"command": "node", "args": [["x"]]}, "args[0] is not text"),
    ({"command": "node", "env": ["A=1"]}, "env is not an object"),
    ({"command": "node", "env": {"A": None}}, "env.A is not text"),
    ({"command": "node", "env": {"A=B": "1"}}, "name that cannot be sent"),
    ({"command": "node", "env": {"A": "x\0y"}}, "env.A has a character that cannot be sent"),
    ({"command": "node", "args": ["\ud800"]}, "args[0] has a character that cannot be sent"),
    ({"url": "ftp://h/x"}, "not the address of a server"),
    ({"url": "h/x"}, "not the address of a server"),
    ({"url": "http://"}, "not the address of a server"),
    ({"url": "http://h:port/"}, "not the address of a server"),
    ({"url": "http://[oops/"}, "not the address of a server"),
    ({"url": "http://h/a b"}, "not the address of a server"),
    ({"url": "http://h", "headers": {"X": "a\nY: b"}}, "line break"),
    ({"url": "http://h", "headers": {"X Y": "a"}}, "name that cannot be sent"),
    ({"command": "node", "includeTools": "read"}, "includeTools is not a list"),
    ({"command": "node", "excludeTools": [1]}, "excludeTools is not a list of texts"),
    ({"command": "node", "callTimeout": 0}, "callTimeout is not a time"),
    ({"command": "node", "callTimeout": "30"}, "callTimeout is not a time"),
    ({"command": "node", "startupTimeout": True}, "startupTimeout is not a time"),
    ({"command": "node", "startupTimeout": 1e9}, "startupTimeout is not a time"),
    ({"command": "node", "disabled": "true"}, "disabled is neither true nor false"),
    ("node", "is not an object"),
    (None, "is not an object"),
]


def test_an_invalid_server_is_excluded_and_the_others_stay(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for raw, message in INVALID:
        with subtests.test(raw=raw, message=message):
            config = read(tmp_path, {"bad": raw, "good": {"command": "node"}})
            assert [server.name for server in config.servers] == ["good"]
            [problem] = config.problems
            assert (problem.server, problem.file) == ("bad", tmp_path / ".toolscript.json")
            assert message in problem.message
            assert problem.fix


def test_a_variable_that_is_not_set_names_itself_the_server_and_the_file(tmp_path: Path) -> None:
    config = read(tmp_path, {"gh": {"command": "node", "env": {"T": "${GH_TOKEN}"}}, "other": {"command": "node"}})
    assert [server.name for server in config.servers] == ["other"]
    [problem] = config.problems
    for part in ("'gh'", str(tmp_path / ".toolscript.json"), "env.T", "GH_TOKEN", "export GH_TOKEN="):
        assert part in str(problem)


@pytest.mark.parametrize("key", ["command", "cwd", "url", "args", "env", "headers", "includeTools", "type"])
def test_a_variable_is_filled_in_wherever_there_is_text(tmp_path: Path, key: str) -> None:
    base = {"url": "http://h"} if key in {"url", "headers"} else {"command": "node"}
    value: object = {
        "args": ["${V}"],
        "includeTools": ["${V}"],
        "env": {"A": "${V}"},
        "headers": {"A": "${V}"},
    }.get(key, "${V}")
    values = {"url": "http://v", "type": "stdio"}
    assert "not set" in errors(read(tmp_path, {"a": base | {key: value}}))[0].message
    spec = only(read(tmp_path, {"a": base | {key: value}}, {"V": values.get(key, "/v")}))
    assert values.get(key, "/v") in f"{spec} {spec.args} {spec.env} {spec.url} {spec.headers} {spec.transport}"


def test_one_missing_variable_is_one_problem(tmp_path: Path) -> None:
    assert len(read(tmp_path, {"a": {"command": "${NO}"}}).problems) == 1
    assert len(read(tmp_path, {"a": {"url": "${NO}/mcp"}}).problems) == 1


def test_the_home_folder_is_meant_by_a_tilde_in_paths_only(tmp_path: Path) -> None:
    raw = {"command": "~/bin/s", "cwd": "~", "args": ["~/x"], "env": {"P": "~/y"}}
    spec = only(read(tmp_path, {"a": raw}, {"HOME": "/h"}))
    assert (spec.command, spec.cwd, spec.args, spec.env) == ("/h/bin/s", "/h", ("~/x",), {"P": "~/y"})
    assert only(read(tmp_path, {"a": {"command": "~other/x"}}, {"HOME": "/h"})).command == "~other/x"


def test_a_tilde_without_a_home_folder_is_reported(tmp_path: Path) -> None:
    [problem] = read(tmp_path, {"a": {"command": "~/bin/s"}}, {}).problems
    assert "home folder is unknown" in problem.message


@pytest.mark.parametrize(("cwd", "expected"), [("sub/x", "sub/x"), (".", "."), ("../y", "../y"), ("/abs", "/abs")])
def test_a_relative_folder_starts_at_the_file(tmp_path: Path, cwd: str, expected: str) -> None:
    assert only(read(tmp_path, {"a": {"command": "node", "cwd": cwd}})).cwd == str(tmp_path / expected)


def test_numbers_and_booleans_are_converted_to_text(tmp_path: Path) -> None:
    spec = only(read(tmp_path, {"a": {"command": "node", "args": [1, "x"], "env": {"PORT": 80, "ON": True}}}))
    assert (spec.args, spec.env) == (("1", "x"), {"PORT": "80", "ON": "true"})


@pytest.mark.parametrize("switch", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_excluded_without_a_message(tmp_path: Path, switch: dict[str, bool]) -> None:
    for raw in ({"command": "${NO}"}, {}):
        assert read(tmp_path, {"a": raw | switch}).problems == ()
        assert read(tmp_path, {"a": raw | switch}).servers == ()


@pytest.mark.parametrize("name", ["a", "A-b.c_d1", "9", "x" * 64, "_x"])
def test_these_names_are_allowed(tmp_path: Path, name: str) -> None:
    assert only(read(tmp_path, {name: {"command": "node"}})).name == name


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("my server", "my-server"),
        ("a__b", "a_b"),
        ("a_", "a"),
        ("é", "server"),
        ("", "server"),
        ("a/b:c", "a-b-c"),
        ("x" * 65, "x" * 64),
        ("a\n", "a"),
    ],
)
def test_other_names_are_refused_with_one_that_is_allowed(tmp_path: Path, name: str, instead: str) -> None:
    config = read(tmp_path, {name: {"command": "node"}, "good": {"command": "node"}})
    assert [server.name for server in config.servers] == ["good"]
    assert repr(instead) in config.problems[0].fix
    assert only(read(tmp_path, {instead: {"command": "node"}})).name == instead


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("comand", "did you mean command?"),
        ("Args", "did you mean args?"),
        ("include_tools", "did you mean includeTools?"),
        ("serverUrl", "did you mean url?"),
        ("timeout", "did you mean callTimeout, in seconds,?"),
        ("zzz", "take it out; known are command"),
    ],
)
def test_an_unknown_key_is_a_warning_with_the_nearest_key_and_the_server_stays(
    tmp_path: Path, key: str, fix: str
) -> None:
    config = read(tmp_path, {"a": {"command": "node", key: 1}})
    assert [server.name for server in config.servers] == ["a"]
    [warning] = warnings(config)
    assert errors(config) == []
    assert key in warning.message
    assert fix in warning.fix


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"command": "node", "headers": {"A": "b"}}, "headers"),
        ({"url": "http://h", "args": ["x"]}, "args"),
        ({"url": "http://h", "env": {"A": "b"}}, "env"),
        ({"url": "http://h", "cwd": "x"}, "cwd"),
    ],
)
def test_a_key_of_the_other_kind_of_server_is_a_warning(tmp_path: Path, raw: dict[str, object], key: str) -> None:
    config = read(tmp_path, {"a": raw})
    assert len(config.servers) == 1
    assert [problem.message for problem in warnings(config)] == [f"{key} has no effect"]


def test_no_problem_ever_shows_a_value(tmp_path: Path) -> None:
    secret = "hunter2"
    bad: list[dict[str, object]] = [
        {"command": secret, "url": secret},
        {
            "command": "x",
            "args": [{secret: secret}],
            "env": {"A": [secret]},
            "type": secret,
            "callTimeout": secret,
        },
        {"url": f"ftp://{secret}", "headers": {"A": f"{secret}\n"}},
        {"url": f"http://{secret}:{secret}/${{NO}}", "headers": {"A": f"{secret}${{}}"}},
        {
            "command": "x",
            "env": {"A": f"{secret}\0", "B": f"{secret}${{B C}}", "C": f"{secret}${{"},
            "cwd": [secret],
        },
        {"command": "x", "includeTools": secret, "disabled": secret, "timeout": secret},
    ]
    config = read(tmp_path, {f"s{number}": raw for number, raw in enumerate(bad)})
    assert {problem.server for problem in errors(config)} == {f"s{number}" for number in range(len(bad))}
    assert secret not in "".join(str(problem) for problem in config.problems)
    assert secret not in repr(config.problems)
