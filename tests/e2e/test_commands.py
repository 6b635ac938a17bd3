"""The command line from a catalog file to a healthy index, like a user runs it."""

import json
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, run_here

NAMED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.mark.requirement("SK-009", "SK-010")
def test_unchanged_items_cost_nothing_and_ten_changed_ones_are_done_again(
    installation: Installation, tmp_path: Path
) -> None:
    mine = installation.environment
    rows = catalog_files.rows(120)
    file = str(catalog_files.write(tmp_path / "items.jsonl", rows))
    assert json.loads(run_here(mine, "sync", file, "--json").stdout)["stored"]["added"] == 120
    assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 120
    assert json.loads(run_here(mine, "sync", file, "--json").stdout)["stored"]["unchanged"] == 120
    assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 0
    changed = [{**row, "description": f"{row['description']} Newly."} for row in rows[:10]] + rows[10:]
    catalog_files.write(tmp_path / "items.jsonl", changed)
    assert json.loads(run_here(mine, "sync", file, "--json").stdout)["stored"]["changed"] == 10
    assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 10
    catalog_files.write(tmp_path / "items.jsonl", changed[:100])
    assert json.loads(run_here(mine, "sync", file, "--prune", "--json").stdout)["removed"] == 20
    assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 20
    assert json.loads(run_here(mine, "doctor", "--index", "--json").stdout)["points"] == 100


def test_lines_that_are_no_items_are_named_and_the_others_are_kept(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text('{"server": "a", "name": "good"}\nnot json\n{"server": "a"}\n')
    done = run_here(installation.environment, "sync", str(file), "--prune", code=2)
    assert "line 2: not JSON" in done.stderr
    assert "line 3: name is missing" in done.stderr
    assert "source file: 1 added, 0 changed, 0 unchanged, 0 removed, 2 refused" in done.stdout


def test_a_sync_of_a_file_names_the_source_it_wrote_to(installation: Installation, tmp_path: Path) -> None:
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(1)))
    assert "source mine: 1 added" in run_here(installation.environment, "sync", file, "--source", "mine").stdout
    assert json.loads(run_here(installation.environment, "sync", file, "--json").stdout)["source"] == "file"


@pytest.mark.parametrize("arguments", [("worker", "--drain"), ("doctor", "--index"), ("sync", "/dev/null")])
def test_engines_that_are_down_end_in_a_message_and_what_to_do(
    installation: Installation, arguments: tuple[str, ...]
) -> None:
    nowhere = {**installation.environment, "TOOLSCRIPT_POSTGRES_URL": "postgresql://x@127.0.0.1:1/x"}
    done = run_here(nowhere, *arguments, code=2)
    assert "PostgreSQL" in done.stderr
    assert "TOOLSCRIPT_POSTGRES_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_json_with_the_json_option(installation: Installation) -> None:
    done = run_here(installation.environment, "sync", "/no/such/file.jsonl", "--json", code=2)
    assert json.loads(done.stderr)["error"]["code"] == "NOT_FOUND"


def test_a_service_without_a_model_names_its_own_setting(installation: Installation, tmp_path: Path) -> None:
    settings = {"TOOLSCRIPT_EMBEDDING_MODEL": NAMED_MODEL, "TOOLSCRIPT_EMBEDDING_URL": ""}
    cut_off = {"HF_ENDPOINT": "http://127.0.0.1:9", "FASTEMBED_CACHE_PATH": str(tmp_path)}
    done = run({**installation.environment, **settings, **cut_off}, "worker", "--drain", code=2)
    assert "TOOLSCRIPT_EMBEDDING_MODEL" in done.stderr
    assert "TOOLSCRIPT_SEARCH_MODEL" not in done.stderr
    assert "toolscript doctor" not in done.stderr


def test_a_setting_that_cannot_be_used_is_named_and_its_value_is_not_shown(installation: Installation) -> None:
    done = run_here({**installation.environment, "TOOLSCRIPT_PORT": "hunter2"}, "doctor", "--index", code=2)
    assert "TOOLSCRIPT_PORT" in done.stderr
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_needs_no_command(installation: Installation) -> None:
    assert run(installation.environment, "--version").stdout == "0.1.0\n"


def test_a_catalog_can_come_through_a_pipe_and_an_empty_one_removes_nothing(
    installation: Installation, tmp_path: Path
) -> None:
    mine = installation.environment
    file = catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(30))
    assert "30 added" in run(mine, "sync", "/dev/stdin", standard_input=file.read_text()).stdout
    assert "--prune" in run(mine, "sync", "/dev/stdin", "--prune", code=2, standard_input="").stderr
    assert "30 unchanged" in run(mine, "sync", "/dev/stdin", "--prune", standard_input=file.read_text()).stdout
