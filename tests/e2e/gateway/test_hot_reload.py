"""Changes of the config file and of servers while the gateway runs."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, is_alive, new_machine, until

pytestmark = pytest.mark.requirement("TS-011")

READ = tool("files", "read_file", "Read the contents of a file from disk")
MAIL = tool("mail", "send_email", "Send an e-mail message to somebody")
SEND = tool("files", "send_file", "Send a file to another machine")
MOVE = tool("files", "move_file", "Move or rename a file")


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    machine = new_machine(tmp_path_factory.mktemp("living") / "machine", weights)
    reset(machine)
    with machine.gateway() as gateway:
        yield machine, gateway


def reset(machine: Machine) -> None:
    catalog = write_catalog(machine.folder / "tools.jsonl", [READ, MAIL])
    machine.configure(catalog_servers(catalog, ["files"]))


@pytest.fixture
def scene(living: tuple[Machine, Gateway]) -> tuple[Machine, Gateway]:
    """Yield a gateway with the files server only."""
    machine, gateway = living
    reset(machine)
    until_offered(gateway, {"files__read_file"})
    until(lambda: gateway.server("files").get("status") == "ready", "the server")
    return living


def until_offered(gateway: Gateway, tools: set[str]) -> None:
    until(lambda: gateway.tool_names() == tools, f"{tools}")


def pid_of(gateway: Gateway, name: str) -> int:
    """0 while the server does not answer."""
    content = gateway.call(name).json().get("content")
    return int(json.loads(content[0]["text"])["pid"]) if content else 0


@pytest.mark.requirement("TS-001")
@pytest.mark.states("S1-146")
def test_a_server_that_is_added_is_found_and_one_that_is_removed_is_gone_with_its_process(
    scene: tuple[Machine, Gateway],
) -> None:
    machine, gateway = scene
    first = pid_of(gateway, "files__read_file")
    machine.configure(catalog_servers(machine.folder / "tools.jsonl", ["files", "mail"]))
    until_offered(gateway, {"files__read_file", "mail__send_email"})
    assert gateway.search("send a message")["results"][0]["toolId"] == "mail__send_email"
    assert pid_of(gateway, "files__read_file") == first, "a server that did not change was started again"
    machine.configure(catalog_servers(machine.folder / "tools.jsonl", ["mail"]))
    until_offered(gateway, {"mail__send_email"})
    until(lambda: not is_alive(first), "the end of the server's process")
    assert gateway.call("files__read_file").status_code == 404


@pytest.mark.requirement("TS-001")
@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": []}', ""])
def test_a_broken_edit_keeps_what_was_there_and_is_logged(scene: tuple[Machine, Gateway], broken: str) -> None:
    machine, gateway = scene
    message = "the config file cannot be used"
    before = gateway.log.read_text("utf-8").count(message)
    machine.write_config(broken)
    until(lambda: gateway.log.read_text("utf-8").count(message) > before, "a line in the log")
    assert gateway.tool_names() == {"files__read_file"}
    assert gateway.search("read the contents of a file")["results"][0]["toolId"] == "files__read_file"


@pytest.mark.requirement("TS-001")
def test_an_invalid_entry_is_reported_and_affects_no_other(scene: tuple[Machine, Gateway]) -> None:
    machine, gateway = scene
    servers = catalog_servers(machine.folder / "tools.jsonl", ["files", "mail"])
    unset = {"command": "node", "env": {"KEY": "${NOBODY_SET_THIS}"}}
    machine.configure({**servers, "unset": unset})
    until_offered(gateway, {"files__read_file", "mail__send_email"})
    state = gateway.server("unset")
    assert state["status"] == "failed"
    assert "NOBODY_SET_THIS" in state["error"]
    assert "not searched: unset (" in gateway.search("send a message")["hint"]


def test_a_list_changed_notification_reindexes_the_tools(scene: tuple[Machine, Gateway]) -> None:
    machine, gateway = scene
    catalog = write_catalog(machine.folder / "changing.jsonl", [READ, SEND])
    machine.configure(catalog_servers(catalog, ["files"]))
    until_offered(gateway, {"files__read_file", "files__send_file"})
    write_catalog(catalog, [MOVE])
    os.kill(pid_of(gateway, "files__read_file"), signal.SIGHUP)
    until_offered(gateway, {"files__move_file"})
    assert gateway.search("rename a file")["results"][0]["toolId"] == "files__move_file"
    assert gateway.call("files__read_file").status_code == 404


def test_a_server_that_was_killed_comes_back_by_itself(scene: tuple[Machine, Gateway]) -> None:
    _, gateway = scene
    first = pid_of(gateway, "files__read_file")
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first), "the end of its process")
    # The gateway may not have noticed the exit yet.
    until(lambda: pid_of(gateway, "files__read_file") not in (0, first), "the server again")
