"""What a person is told when something is not as it should be: the cause, and what to do next."""

import socket
import sys

import pytest

from tests.e2e.gateway.machines import Machine, mcp_server

pytestmark = pytest.mark.requirement("TS-011")


def test_a_tool_that_the_config_leaves_out_is_told_apart_from_one_that_is_not_there(machine: Machine) -> None:
    machine.configure({"plain": {**mcp_server("plain"), "excludeTools": ["ad*"]}})
    told = machine.run("call", "plain__add", code=2).stderr
    assert "the config file leaves add of plain out (includeTools, excludeTools)" in told


def test_without_a_server_a_search_loads_nothing_and_says_how_to_get_some(machine: Machine) -> None:
    done = machine.also(TOOLSCRIPT_SEARCH_MODEL="/nowhere").run("search", "read a file", code=1)
    assert "toolscript config import" in done.stderr
    assert "words alone" not in done.stderr


def test_of_a_traceback_the_line_that_says_why_is_shown(machine: Machine) -> None:
    failing = {"command": sys.executable, "args": ["-c", "import os; os.environ['API_TOKEN']"]}
    machine.configure({"plain": mcp_server("plain"), "broken": failing})
    told = machine.run("search", "add two numbers").stderr
    assert "KeyError: 'API_TOKEN'" in told
    assert "Traceback" not in told


def test_doctor_says_what_to_do_about_a_command_that_is_not_there(machine: Machine) -> None:
    machine.configure({"absent": {"command": "no-such-program-anywhere"}})
    told = machine.run("doctor", code=2).stdout
    assert "command not found: no-such-program-anywhere" in told
    assert "not on the PATH that servers get" in told


def test_a_server_that_nobody_has_is_named(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain")})
    assert "nothing here is called nope" in machine.run("list-tools", "nope", code=1).stderr


def test_a_gateway_in_the_background_that_cannot_start_says_why(machine: Machine) -> None:
    machine.configure({})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = machine.run("gateway", "start", "--background", "--port", port, code=2).stderr
    assert f"port {port} of this machine cannot be used" in told
    assert "gateway.log" in told


def test_the_status_of_a_gateway_is_a_whole_sentence(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain"), "broken": {"command": "no-such-program-anywhere"}})
    with machine.gateway() as gateway:
        gateway.search("add two numbers")
        line = machine.run("gateway", "status").stdout.splitlines()[0]
    assert line.startswith(("running: ", "starting: "))
    assert " of 2 servers" in line
    assert not line.endswith(": ")
