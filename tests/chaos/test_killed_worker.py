"""The worker can be killed anywhere: nothing is lost, nothing comes back, nothing is done half."""

from pathlib import Path

import pytest

from tests.chaos.kill_worker import Plan, examine, kill_and_compare, kill_at_random, kill_at_step
from tests.chaos.kills.worker import HASH
from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here
from toolscript.core.items import Item
from toolscript.tools.catalog.files import read_items
from toolscript.tools.indexing.indexer import Step

HEALTHY = {"missing": 0, "stale": 0, "extra": 0, "pending": 0}


@pytest.mark.nightly
@pytest.mark.requirement("SK-009")
def test_a_worker_killed_at_every_step_and_at_random_leaves_catalog_and_index_equal(
    installation: Installation, tmp_path: Path
) -> None:
    environment = installation.environment
    rows = catalog_files.rows(160)
    run_here(environment, "sync", str(catalog_files.write(tmp_path / "all.jsonl", rows)))
    for step in Step:
        kill_at_step(environment, step)
    changed = [{**row, "description": f"{row['description']} Really."} for row in rows[:20]]
    run_here(
        environment, "sync", "--prune", str(catalog_files.write(tmp_path / "fewer.jsonl", changed + rows[20:120]))
    )
    for step in (Step.PUT, Step.REMOVED):
        kill_at_step(environment, step)
    kill_at_random(environment, kills=3, longest=2.0, seed=7)
    run_here(environment, "worker", "--drain")
    assert examine(environment).items() >= {**HEALTHY, "items": 120, "points": 120}.items()


@pytest.mark.requirement("SK-009")
async def test_claims_of_a_killed_or_stalled_worker_are_soon_taken_over_and_nothing_is_lost(
    installation: Installation, tmp_path: Path
) -> None:
    """At any size: tests/chaos/kill_worker.py. Here with generous limits, for a busy machine."""
    catalog = catalog_files.write(tmp_path / "all.jsonl", catalog_files.rows(300))
    items = [item for item in read_items(catalog) if isinstance(item, Item)]
    settings = installation.settings.model_copy(update={"embedding_model": HASH})
    outcome = await kill_and_compare(settings, items, Plan(kills=6, stalls=2, lanes=4, seed=7))
    assert (outcome.seen.killed, outcome.seen.stalled) == (6, 2)
    assert max(outcome.seen.all_delays()) < 30
    examined = outcome.examined
    assert examined.healthy
    assert (examined.items, examined.points, examined.pending) == (outcome.items, outcome.items, 0)
