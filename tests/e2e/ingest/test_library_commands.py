"""`toolscript library`, and messages of `ingest --prune` about empty or missing folders."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import run_here
from tests.e2e.ingest.test_ingest_command import held, ingested, library, shelf
from tests.support.audit_entries import by_me

pytestmark = pytest.mark.requirement("KN-004", "KN-005")

__all__ = ["library", "shelf"]


def told(library: dict[str, str], *arguments: str, code: int = 0) -> Any:
    return json.loads(run_here(library, "library", *arguments, "--json", code=code).stdout)


def test_an_emptied_folder_reports_its_sources_and_how_to_remove_them(
    library: dict[str, str], shelf: Path
) -> None:
    ingested(library, str(shelf))
    shutil.rmtree(shelf)
    shelf.mkdir()
    pruned = run_here(library, "ingest", str(shelf), "--prune", code=2)
    assert f"{shelf} is empty" in pruned.stderr
    assert f"`toolscript library remove {shelf}` removes its 2 files" in pruned.stderr
    assert ingested(library, str(shelf), "--prune", code=2)[-1]["kept"] == {str(shelf): 2}
    assert len(held(library)["sources"]) == 2
    assert told(library, "remove", str(shelf), "--yes") == {"removed": 2, "left": 0}
    after = held(library)
    assert (after["sources"], after["chunks"], after["chunk points"]) == ({}, {}, {})
    assert told(library, "remove", str(shelf), "--yes") == {"removed": 0, "left": 0}
    assert ingested(library, str(shelf), "--prune")[-1]["kept"] == {}


def test_a_removed_folder_is_refused_with_the_command_that_removes_the_rest(
    library: dict[str, str], shelf: Path
) -> None:
    ingested(library, str(shelf))
    shutil.rmtree(shelf)
    refused = run_here(library, "ingest", str(shelf), "--prune", code=2)
    assert f"`toolscript library remove {shelf}`" in refused.stderr
    assert told(library, "remove", str(shelf), "--yes") == {"removed": 2, "left": 0}


def test_what_is_ingested_and_removed_is_in_the_audit_where_there_is_one(
    library: dict[str, str], shelf: Path, postgres_url: str
) -> None:
    mine = {**library, "TOOLSCRIPT_POSTGRES_URL": postgres_url}
    for _ in range(2):
        ingested(mine, str(shelf))
    told(mine, "remove", str(shelf / "bees.md"), "--yes")
    told(mine, "remove", str(shelf / "bees.md"), "--yes")
    assert by_me(mine, "library.ingest", "library.remove") == [("library.ingest", 2), ("library.remove", 1)]


def test_files_are_listed_by_folder_and_one_can_be_removed(library: dict[str, str], shelf: Path) -> None:
    ingested(library, str(shelf))
    everything = told(library, "list")
    assert [Path(item["path"]).name for item in everything["results"]] == ["bees.md", "steel.html"]
    assert everything["next_cursor"] is None
    first = told(library, "list", "--limit", "1")
    assert first["next_cursor"] == str(shelf / "bees.md")
    assert told(library, "list", "--after", first["next_cursor"])["results"] == everything["results"][1:]
    inner = told(library, "list", str(shelf / "inner"))
    assert [item["title"] for item in inner["results"]] == ["Steel"]
    refused = run_here(library, "library", "remove", str(shelf / "bees.md"), code=2)
    assert "Remove 1 file of" in refused.stderr
    assert told(library, "remove", str(shelf / "bees.md"), "--yes") == {"removed": 1, "left": 0}
    assert [item["path"] for item in held(library)["sources"].values()] == [str(shelf / "inner" / "steel.html")]


def test_a_library_with_a_base_knows_its_files_by_their_names_in_it(library: dict[str, str], shelf: Path) -> None:
    ingested(library, str(shelf), "--base", str(shelf.parent))
    assert told(library, "remove", "shelf/inner", "--yes") == {"removed": 1, "left": 0}
    assert [result["path"] for result in told(library, "list")["results"]] == ["shelf/bees.md"]
