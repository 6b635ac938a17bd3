"""Every command of the service that changes something leaves one entry, by the logged-in user."""

import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.conftest import ROOT, Installation, fresh_database, fresh_installation
from tests.e2e.access.audited_state import State, prepared
from tests.e2e.commands import run_here
from toolscript.cli.app import build_cli
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("AP-005")

# Commands of a gateway or of this machine, those that only read, and those that ask a service over HTTP.
NO_CHANGE = {
    *("setup", "search", "list-servers", "list-tools", "get-types", "call", "mcp", "activity", "savings", "trust"),
    *("login", "logout", "serve", "worker", "backup", "audit export", "documents search", "documents get"),
    *("documents put", "documents delete", "library list", "changes list", "changes show", "sources list"),
    *("skills list", "skills show", "skills of", "skills audit", "skills export", "skills suggestions"),
    *("skills suggestion", "skills rebuild", "skills review", "tenants list", "tenants export", "tenants keys"),
    *("tenants token", "tools search", "tools skills", "tools list", "tools show", "tools searches", "tools gaps"),
    "tools curation list",
}
OF_THE_GATEWAY = ("curation", "rules", "gateway", "review", "secrets", "config", "eval")
# Asserted where these commands have what they need: documents, backups, a library, a cluster, an empty database.
# A test reads their entries by `by_me`.
ELSEWHERE = {
    "reindex": "tests/e2e/test_reindex.py",
    "restore": "tests/e2e/test_backup.py",
    "ingest": "tests/e2e/ingest/test_library_commands.py",
    "library remove": "tests/e2e/ingest/test_library_commands.py",
    "tenants move": "tests/unit/documents/tenants_http/test_move_in_cluster.py",
    "tenants erase": "tests/unit/documents/tenants_http/test_erasure.py",
    "doctor": "tests/chaos/test_lost_index.py",
    "skills describe": "tests/unit/tools/skills_http/test_proposals_http.py",
    "skills propose": "tests/unit/tools/skills_http/test_proposals_http.py",
    "migrate": "tests/engines/test_schema_versions.py",
}
# The commands that the short test runs: a kind each, one after the other.
SOME = ("sync", "tools remove", "changes approve", "skills approve", "skills undo", "tools curation never")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield " ".join(path)


def calls_of(state: State, folder: Path) -> dict[str, tuple[list[str], str]]:
    """Return the arguments of each command, and the action of its entry."""
    item, other, third = map(str, state.items[:3])
    asked = {name: str(number) for name, number in state.suggestions.items()}
    held = list(map(str, state.changes))
    (folder / "items.json").write_text('{"server": "bills", "name": "pay"}\n', "utf-8")
    (folder / "skills.jsonl").write_text('{"id": "news", "name": "News"}\n', "utf-8")
    return {
        "sync": (["sync", str(folder / "items.json"), "--source", "bills"], "items.import"),
        "sources remove": (["sources", "remove", "bills", "--yes"], "source.remove"),
        "tools remove": (["tools", "remove", item, third, "--yes"], "tool.remove"),
        "changes approve": (["changes", "approve", held[1]], "change.approve"),
        "changes reject": (["changes", "reject", held[3]], "change.reject"),
        "skills add": (["skills", "add", "sea", "--name", "Sea"], "skill.add"),
        "skills edit": (["skills", "edit", "sea", "--name", "Seas"], "skill.change"),
        "skills deactivate": (["skills", "deactivate", "sea"], "skill.deactivate"),
        "skills activate": (["skills", "activate", "sea"], "skill.activate"),
        "skills import": (["skills", "import", str(folder / "skills.jsonl")], "skill.add"),
        "skills assign": (["skills", "assign", other, "mail"], "item.assign"),
        "skills release": (["skills", "release", other], "item.release"),
        "skills reclassify": (["skills", "reclassify", "--skill", "mail"], "skills.reclassify"),
        "skills approve": (["skills", "approve", asked["Post"]], "suggestion.approve"),
        "skills undo": (["skills", "undo", asked["Post"]], "suggestion.undo"),
        "skills reject": (["skills", "reject", asked["Weather"]], "suggestion.reject"),
        "skills merge": (["skills", "merge", asked["Trains"], "maps"], "suggestion.merge"),
        "tools curation never": (["tools", "curation", "never", other, "invoice"], "curation.add"),
        "tools curation promote": (["tools", "curation", "promote", other, "bill"], "curation.add"),
        "tools curation synonym": (["tools", "curation", "synonym", "bill", "invoice"], "curation.add"),
        "tools curation remove": (["tools", "curation", "remove", "1"], "curation.remove"),
    }


def test_every_command_is_known_to_change_something_or_nothing(tmp_path: Path) -> None:
    state = State({}, [1, 2, 3], [1, 2, 3, 4], dict.fromkeys(("Post", "Weather", "Trains"), 1))
    known = {*calls_of(state, tmp_path), *NO_CHANGE, *ELSEWHERE}
    all_commands = set(commands(typer.main.get_command(build_cli())))
    assert {name for name in all_commands - known if not name.startswith(OF_THE_GATEWAY)} == set()


def test_each_command_elsewhere_is_asserted_there() -> None:
    files = {name: (ROOT / path).read_text("utf-8") for name, path in ELSEWHERE.items()}
    assert [name for name, text in files.items() if "by_me(" not in text] == []


@pytest.fixture(scope="module")
def state(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[State]:
    with fresh_database(engines, migrated_database) as url, fresh_installation(engines, url, model_folder) as mine:
        yield prepared(mine, tmp_path_factory.mktemp("audited"))


def test_some_commands_leave_one_entry_of_the_logged_in_user_each_and_an_export_goes_on(
    state: State, tmp_path: Path
) -> None:
    before = _exported(state)
    calls = {name: call for name, call in calls_of(state, tmp_path).items() if name in SOME}
    left_by(state, calls)
    entries = _exported(state)
    assert [entry["id"] for entry in entries] == sorted(entry["id"] for entry in entries)
    assert _exported(state, "--after", str(before[-1]["id"])) == entries[len(before) :]


@pytest.mark.nightly
def test_each_command_that_changes_something_leaves_one_entry_of_the_logged_in_user(
    installation: Installation, tmp_path: Path
) -> None:
    state = prepared(installation, tmp_path)
    left_by(state, calls_of(state, tmp_path))


def left_by(state: State, calls: dict[str, tuple[list[str], str]]) -> None:
    """Run the commands in this process, which has all modules loaded, and compare what each has left."""
    before, left = len(_exported(state)), {}
    for name, (arguments, _) in calls.items():
        run_here(state.environment, *arguments)
        entries = _exported(state)
        left[name] = [(entry["action"], entry["actor"]) for entry in entries[before:]]
        before = len(entries)
    assert left == {name: [(action, getpass.getuser())] for name, (_, action) in calls.items()}


def _exported(state: State, *options: str) -> list[dict[str, Any]]:
    output = run_here(state.environment, "audit", "export", *options).stdout
    return [json.loads(line) for line in output.splitlines()]
