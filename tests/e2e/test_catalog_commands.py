"""`toolscript sources` and `toolscript tools list|show|remove`, like a user runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here

pytestmark = pytest.mark.requirement("SK-009", "SK-010")


def told(installation: Installation, *arguments: str) -> Any:
    return json.loads(run_here(installation.environment, *arguments, "--json").stdout)


def test_imported_items_can_be_listed_shown_and_removed(installation: Installation, tmp_path: Path) -> None:
    mine = installation.environment
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(30)))
    run_here(mine, "sync", file, "--source", "trial")
    run_here(mine, "sync", file, "--source", "kept")
    run_here(mine, "worker", "--drain")
    listed = told(installation, "sources", "list")
    assert {result["name"]: result["tool_count"] for result in listed["results"]} == {"kept": 30, "trial": 30}
    first = told(installation, "tools", "list", "--source", "trial", "--limit", "2")
    page = ("--source", "trial", "--limit", "2", "--cursor", first["next_cursor"])
    following = told(installation, "tools", "list", *page)["results"]
    assert [entry["id"] > first["results"][-1]["id"] for entry in following] == [True, True]
    output = told(installation, "tools", "show", str(first["results"][0]["id"]))
    assert output["source"] == "trial"
    assert "input_schema" in output
    assert told(installation, "tools", "remove", str(output["id"]), "--yes") == {"removed": 1}
    assert told(installation, "tools", "remove", str(output["id"]), "--yes") == {"removed": 0}
    assert told(installation, "sources", "remove", "trial", "--yes") == {
        "source": "trial",
        "namespace": "default",
        "removed": 29,
    }
    assert told(installation, "sources", "remove", "trial", "--yes")["removed"] == 0
    run_here(mine, "worker", "--drain")
    examined = told(installation, "doctor", "--index")
    assert (examined["items"], examined["points"], examined["healthy"]) == (30, 30, True)


def test_nothing_is_removed_without_a_terminal_to_confirm(installation: Installation, tmp_path: Path) -> None:
    mine = installation.environment
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(3)))
    run_here(mine, "sync", file)
    refused = run_here(mine, "sources", "remove", "file", code=2)
    assert "Remove source file with its 3 tools?" in refused.stderr
    assert "add --yes" in refused.stderr
    run_here(mine, "tools", "remove", "1", code=2)
    assert told(installation, "sources", "list")["results"][0]["tool_count"] == 3


def test_pruning_with_an_empty_file_names_the_command_that_removes_a_source(
    installation: Installation, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    refused = run_here(installation.environment, "sync", str(empty), "--source", "my tools", "--prune", code=2)
    assert "`toolscript sources remove 'my tools'`" in refused.stderr


@pytest.mark.requirement("AP-005")
def test_two_namespaces_have_sources_of_one_name(installation: Installation, tmp_path: Path) -> None:
    mine = installation.environment
    for namespace, count in (("default", 2), ("team-a", 3)):
        file = str(catalog_files.write(tmp_path / f"{namespace}.jsonl", catalog_files.rows(count)))
        run_here(mine, "sync", file, "--source", "both", "--namespace", namespace)
    run_here(mine, "worker", "--drain")
    listed = told(installation, "sources", "list")["results"]
    assert [(source["namespace"], source["tool_count"]) for source in listed] == [("default", 2), ("team-a", 3)]
    tools = told(installation, "tools", "list", "--namespace", "team-a")["results"]
    assert {tool["namespace"] for tool in tools} == {"team-a"}
    assert len(tools) == 3
    table = run_here(mine, "tools", "list").stdout.splitlines()
    assert table[0].split()[:2] == ["Namespace", "Id"]
    assert "Namespace" not in run_here(mine, "tools", "list", "--namespace", "default").stdout
    removed = told(installation, "sources", "remove", "both", "--namespace", "team-a", "--yes")
    assert removed == {"source": "both", "namespace": "team-a", "removed": 3}
    assert [source["namespace"] for source in told(installation, "sources", "list")["results"]] == ["default"]
    refused = run_here(mine, "sync", str(tmp_path / "default.jsonl"), "--namespace", "Team A", code=2)
    assert "'Team A' cannot be the name of a namespace" in refused.stderr
