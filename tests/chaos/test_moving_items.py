"""Items move to the skills of approved proposals: a worker may die anywhere, and no search loses an item."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.kill_worker import examine, kill_at_random, kill_at_step
from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here
from toolscript.core.settings.service import Settings
from toolscript.server.indexing import open_index_writer
from toolscript.tools.indexing.indexer import Step
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import ToolSearch

HEALTHY = {"missing": 0, "stale": 0, "extra": 0, "pending": 0}
EVERYTHING = {
    "id": "everything",
    "name": "Everything",
    "description": "Lets you do things in a workspace.",
    "keywords": list(catalog_files.THINGS),
}


@pytest.mark.requirement("SK-011", "SK-009")
def test_a_worker_killed_at_ten_steps_while_items_move_loses_none(
    installation: Installation, tmp_path: Path
) -> None:
    _move_and_kill(installation, tmp_path, 160)


@pytest.mark.nightly
@pytest.mark.requirement("SK-011", "SK-009")
def test_ten_thousand_items_move_while_workers_are_killed(installation: Installation, tmp_path: Path) -> None:
    _move_and_kill(installation, tmp_path, 10_000)


def _move_and_kill(installation: Installation, folder: Path, count: int) -> None:
    environment = installation.environment
    skills = folder / "skills.json"
    skills.write_text(json.dumps([EVERYTHING]))
    run_here(environment, "skills", "import", str(skills), "--replace")
    run_here(environment, "sync", str(catalog_files.write(folder / "all.jsonl", catalog_files.rows(count))))
    run_here(environment, "worker", "--drain")
    assert _found(installation.settings) == set(catalog_files.THINGS)
    proposed = json.loads(run_here(environment, "skills", "propose", "--json").stdout)
    split = next(one for one in proposed["proposals"] if one["kind"] == "split")
    assert split["retires"] == ["everything"]
    for suggestion in _suggestions(environment, "pending"):
        run_here(environment, "skills", "approve", str(suggestion["id"]), "--by", "ann")
    # The first step moves items in the catalog; each that follows is killed at another step.
    for step in Step:
        kill_at_step(environment, step)
        assert _found(installation.settings) == set(catalog_files.THINGS)
    kill_at_random(environment, kills=1, longest=1.0, seed=7)
    run_here(environment, "worker", "--drain")
    assert examine(environment).items() >= {**HEALTHY, "items": count, "points": count}.items()
    assert _found(installation.settings) == set(catalog_files.THINGS)
    (decided,) = [one for one in _suggestions(environment, "approved") if one["kind"] == "split"]
    assert not decided["change"]["is_moving"]
    everything = json.loads(run_here(environment, "skills", "show", "everything", "--json").stdout)
    assert not everything["is_active"]


def _suggestions(environment: Mapping[str, str], state: str) -> list[dict[str, Any]]:
    output = run_here(environment, "skills", "suggestions", "--state", state, "--limit", "100", "--json").stdout
    found: list[dict[str, Any]] = json.loads(output)["results"]
    return found


def _found(settings: Settings) -> set[str]:
    """Return the things whose tools a search by skills finds."""
    return asyncio.run(_search_all(settings))


async def _search_all(settings: Settings) -> set[str]:
    found: set[str] = set()
    async with open_index_writer(settings) as writer:
        opened = writer.opened
        search = ToolSearch(writer.embedder, opened.index, opened.skills, writer.stores.catalog)
        for thing in catalog_files.THINGS:
            query = ToolQuery(f"create {thing}", limit=3, strategy=Strategy.HIERARCHICAL, include_schemas=False)
            answer = await search.search(query)
            found |= {thing for hit in answer.hits if hit.name.endswith(f"_{thing}")}
    return found
