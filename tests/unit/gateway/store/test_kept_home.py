"""A person's folder as an earlier gateway left it is read by this one: nothing has to be decided or set again.

The folder is written down, in `kept_home`: where its files lie, what they are named after, and what is in them
must not change without a way to read them. Names and marks that depend on the folder are spelled out here.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import ROOT, Machine, new_machine

KEPT = Path(__file__).parent / "kept_home"
ARGUMENTS = ("-m", "tests.support.mcp_servers.catalog")
FORWARD = '{"description":"Forwards all letters","inputSchema":{"type":"object"},"name":"forward_mail"}'


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def lay(path: Path, kept: str, **marks: str) -> None:
    text = (KEPT / kept).read_text("utf-8")
    for name, value in marks.items():
        text = text.replace(f"@{name}@", value)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(text, "utf-8")
    path.chmod(0o600)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with a kept home folder; no gateway runs on it."""
    made = new_machine(tmp_path.resolve() / "machine", Path("none")).here()
    project = made.project / ".toolscript.json"
    lay(made.config, "config.json")
    lay(project, "project.json")
    lay(made.home / "mail.jsonl", "mail.jsonl")
    lay(made.data / "secrets" / "secrets.json", "secrets.json")
    lay(made.data / "secrets" / "names.json", "names.json")
    sha256 = digest(project.read_text("utf-8"))
    lay(
        made.data / "trusted" / f"{digest(str(project))[:32]}.json",
        "trusted.json",
        PROJECT=str(project),
        SHA256=sha256,
    )
    _lay_approvals(made, project)
    _lay_tools(made)
    return made.also(
        TOOLSCRIPT_SEARCH_MODEL="none",
        TOOLSCRIPT_GATEWAY_ALONE="true",
        KEPT_PYTHON=sys.executable,
        KEPT_ROOT=str(ROOT),
    )


def _lay_approvals(made: Machine, project: Path) -> None:
    written = json.dumps(["${KEPT_PYTHON}", [*ARGUMENTS, "${HOME}/mail.jsonl"], "${KEPT_ROOT}", None])
    source = digest(json.dumps([str(project), "mail", "stdio", written]))[:32]
    rejected = digest(f'{source}\0["tool", "mail", "forward_mail"]\0{FORWARD}')[:32]
    lay(made.data / "approvals" / f"{source}.json", "approvals.json", PROJECT=str(project), REJECTED=rejected)


def _lay_tools(made: Machine) -> None:
    entry = ["stdio", sys.executable, [*ARGUMENTS, str(made.home / "mail.jsonl")], str(ROOT), "", [], [], [], []]
    name = f"tools-{digest(json.dumps(['mail', 'notes']))}.json"
    marks = {"PRINT": digest(json.dumps(entry)), "NOW": str(time.time() - 5)}
    lay(made.data / "cache" / "tools" / name, "tools.json", **marks)


def test_a_trusted_project_is_trusted(machine: Machine) -> None:
    [file] = machine.json("trust", "--list")["files"]
    assert file == {"file": str(machine.project / ".toolscript.json"), "trusted": True}
    assert "mail" in {server["name"] for server in machine.json("list-servers")["servers"]}


def test_approved_definitions_are_approved_and_rejected_ones_rejected(machine: Machine) -> None:
    listed = machine.json("list-tools", "--refresh")
    assert "mail__list_mail" in {tool["toolId"] for tool in listed["tools"]}
    assert {held["id"]: held["status"] for held in listed["held"]} == {
        "mail__forward_mail": "rejected",
        "mail__send_mail": "changed",
    }


def test_rules_and_curation_hold(machine: Machine) -> None:
    refused = machine.run("call", "notes__echo", code=2)
    assert "rule" in refused.stderr
    [rule] = machine.json("curation", "list")["rules"]
    assert (rule["kind"], rule["words"], rule["tool"]) == ("promote", "my diary", "notes__surroundings")
    assert machine.json("search", "my diary")["results"][0]["toolId"] == "notes__surroundings"


def test_a_secret_reaches_its_server(machine: Machine) -> None:
    assert [secret["name"] for secret in machine.json("secrets", "list")["secrets"]] == ["NOTES_TOKEN"]
    assert "of-the-notes" in machine.run("call", "notes__surroundings").stdout


def test_cached_tools_are_shown_without_asking_their_server(machine: Machine) -> None:
    (machine.home / "mail.jsonl").unlink()
    tools = {tool["toolId"]: tool for tool in machine.json("list-tools")["tools"]}
    assert tools["mail__list_mail"]["inputSchema"]["properties"] == {"since": {"type": "string"}}
