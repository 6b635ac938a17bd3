"""Messages for users when something fails: the cause, and the next step."""

import socket
import sys

import pytest

from tests.e2e.gateway.machines import Machine, mcp_server

pytestmark = pytest.mark.requirement("TS-011")


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Return a machine whose commands run in this process: their output is what matters here."""
    return machine.here()


def test_a_tool_excluded_by_the_config_is_distinguished_from_a_missing_one(machine: Machine) -> None:
    machine.configure({"plain": {**mcp_server("plain"), "excludeTools": ["ad*"]}})
    output = machine.run("call", "plain__add", code=2).stderr
    assert "the config file excludes add of plain (includeTools, excludeTools)" in output
    for text, is_named in (("plain__add", True), ("plain__echo", False), ("add", False), ("other__add", False)):
        hint = machine.json("search", text, "--threshold", "0").get("hint", "")
        assert ("the config file excludes add of plain" in hint) == is_named


def test_without_a_server_a_search_loads_nothing_and_says_how_to_get_some(machine: Machine) -> None:
    done = machine.also(TOOLSCRIPT_SEARCH_MODEL="/nowhere").run("search", "read a file", code=1)
    assert "toolscript config import" in done.stderr
    assert "keyword search only" not in done.stderr
    for command in (("list-servers",), ("doctor",)):
        done = machine.run(*command, code=1 if command == ("list-servers",) else 2)
        assert "shows how to write ~/.toolscript.json" in done.stdout + done.stderr


def test_doctor_without_a_gateway_config_names_the_check_of_the_service(machine: Machine) -> None:
    assert "doctor --index" not in machine.run("doctor", code=2).stderr
    service = machine.also(TOOLSCRIPT_POSTGRES_URL="postgresql://toolscript@127.0.0.1/toolscript")
    assert "`toolscript doctor --index` checks the service" in service.run("doctor", code=2).stderr


def test_a_search_names_a_server_that_fails_and_where_its_words_are(machine: Machine) -> None:
    failing = {"command": sys.executable, "args": ["-c", "import os; os.environ['API_TOKEN']"]}
    machine.configure({"plain": mcp_server("plain"), "broken": failing})
    output = machine.run("search", "add two numbers").stderr
    assert "broken (the process ended with exit code 1; `toolscript list-servers` in a terminal" in output
    assert "API_TOKEN" not in output
    assert "KeyError: 'API_TOKEN'" in " ".join(machine.on_a_terminal("list-servers").split())


def test_doctor_says_what_to_do_about_a_command_that_is_not_there(machine: Machine) -> None:
    machine.configure({"absent": {"command": "no-such-program-anywhere"}})
    output = machine.run("doctor", code=2).stdout
    assert "command not found: no-such-program-anywhere" in output
    assert "not on the PATH that servers get" in output


def test_an_unknown_server_is_named(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain")})
    told = machine.run("list-tools", "nope", code=1).stderr
    assert "nothing here is called nope" in told
    assert "the servers offer nothing" not in told


def test_a_gateway_in_the_background_that_cannot_start_says_why(machine: Machine) -> None:
    machine.configure({})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        output = machine.run("gateway", "start", "--background", "--port", port, code=2).stderr
    assert f"port {port} of this machine cannot be used" in output
    assert "`toolscript gateway start --port 0` takes a free one" in output
    assert "gateway.log" in output


def test_the_status_of_a_gateway_is_a_whole_sentence(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain"), "broken": {"command": "no-such-program-anywhere"}})
    with machine.gateway() as gateway:
        gateway.search("add two numbers")
        line = machine.run("gateway", "status").stdout.splitlines()[0]
    assert line.startswith(("running: ", "starting: "))
    assert " of 2 servers ready" in line
    assert "(broken)" in line
    assert not line.endswith(": ")
