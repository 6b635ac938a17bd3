"""A hanging and a crashing server cost the others nothing: neither their cache nor time."""

import sys
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import ROOT, Machine, mcp_server

pytestmark = pytest.mark.requirement("TS-011", "TS-007")


def counted(folder: Path, name: str, *program: str) -> dict[str, object]:
    """Return a config entry that logs every start to a file."""
    words = " ".join(program)
    return {
        "command": "/bin/sh",
        "args": ["-c", f"echo started >> {folder / name}; exec {sys.executable} -m {words}"],
        "cwd": str(ROOT),
    }


def starts(machine: Machine, name: str) -> int:
    file = machine.folder / name
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0


@pytest.fixture
def company(machine: Machine) -> Machine:
    machine.configure(
        {
            "good": counted(machine.folder, "good", "tests.support.mcp_servers.plain"),
            "hangs": counted(machine.folder, "hangs", "tests.support.mcp_servers.faulty", "hangs_at_start"),
            "dies": counted(machine.folder, "dies", "tests.support.mcp_servers.faulty", "dies_at_start"),
        }
    )
    return machine


@pytest.mark.nightly
def test_from_the_second_command_on_nothing_starts_and_the_others_are_cached(company: Machine) -> None:
    first = company.run("search", "add two numbers")
    assert "plain" not in first.stdout
    assert "good__add" in first.stdout
    before = {name: starts(company, name) for name in ("good", "hangs", "dies")}
    assert before["good"] == 1
    second = company.run("search", "add two numbers")
    assert "good__add" in second.stdout
    assert "hangs" in second.stderr
    assert "did not answer" in second.stderr
    assert "`search --refresh` tries again" in second.stderr
    for words in (("list-tools",), ("get-types",), ("search", "echo", "--json")):
        company.run(*words)
    assert {name: starts(company, name) for name in before} == before


@pytest.mark.nightly
def test_an_explicit_retry_starts_them_again(company: Machine) -> None:
    company.run("list-tools")
    before = starts(company, "hangs")
    company.run("list-tools", "--refresh")
    assert starts(company, "hangs") > before


@pytest.mark.nightly
def test_a_repaired_entry_is_tried_at_once(company: Machine) -> None:
    company.run("list-tools")
    mended = {**mcp_server("plain"), "env": {"TOKEN": "now-it-is-set"}}
    company.configure({"good": mcp_server("plain"), "hangs": mended, "dies": mended})
    assert "hangs__add" in company.run("list-tools").stdout


def test_list_servers_shows_them_and_does_not_wait_for_what_failed_before(company: Machine) -> None:
    company.run("list-tools")
    servers = {server["name"]: server for server in company.json("list-servers")["servers"]}
    assert servers["good"]["status"] == "ready"
    assert servers["hangs"]["status"] == "failed"
    assert "did not answer" in servers["hangs"]["error"]
    assert "exit code 3" in servers["dies"]["error"]
