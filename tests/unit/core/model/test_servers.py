"""The tools that a config file allows, and the secrets that are never printed."""

import pytest

from toolscript.core.mcp_client.model import (
    STDERR_PREFIX,
    STDOUT_PREFIX,
    ServerSpec,
    Transport,
    without_server_output,
)


def spec(include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> ServerSpec:
    return ServerSpec("files", Transport.STDIO, include_tools=include, exclude_tools=exclude)


@pytest.mark.requirement("TS-001")
@pytest.mark.parametrize(
    ("include", "exclude", "offered"),
    [
        ((), (), {"read_file", "read_dir", "write_file"}),
        (("read_file",), (), {"read_file"}),
        (("read_*",), (), {"read_file", "read_dir"}),
        ((), ("*_file",), {"read_dir"}),
        (("read_*",), ("*_dir",), {"read_file"}),
        (("read_file", "write_file"), ("write_file",), {"read_file"}),
        (("READ_*",), (), set()),
        (("read",), (), set()),
        (("nothing",), (), set()),
        ((), ("*",), set()),
        (("read_[fd]i[lr]*",), (), {"read_file", "read_dir"}),
        (("*_???",), (), {"read_dir"}),
    ],
)
def test_a_tool_is_offered_when_it_is_included_and_not_excluded(
    include: tuple[str, ...], exclude: tuple[str, ...], offered: set[str]
) -> None:
    names = ("read_file", "read_dir", "write_file")
    assert {name for name in names if spec(include, exclude).offers(name)} == offered


@pytest.mark.requirement("TS-001")
def test_fields_that_may_hold_a_secret_are_not_printed() -> None:
    secret = ServerSpec(
        "files",
        Transport.HTTP,
        command="run",
        args=("--key=hunter1",),
        env={"KEY": "hunter2"},
        url="http://user:hunter3@host",
        headers={"Authorization": "hunter4"},
    )
    assert "hunter" not in f"{secret!r} {secret}"
    assert "run" in repr(secret)


@pytest.mark.requirement("SK-010")
@pytest.mark.parametrize(
    "error",
    [
        "exit code 3",
        f"exit code 3{STDERR_PREFIX}the key is sk-1\nand more",
        f"exit code 3{STDOUT_PREFIX}'key'{STDERR_PREFIX}key",
    ],
)
def test_the_output_of_a_server_can_be_removed_from_an_error(error: str) -> None:
    assert without_server_output(error) == "exit code 3"
