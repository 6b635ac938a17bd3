"""The least speed that search must have: by ratio to its own bare parts, in the same run."""

import json
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.whole import catalog_files
from tests.whole.commands import run

TRIES = 3
MOST = 2.0


@pytest.mark.requirement("SLA-001")
@pytest.mark.alone
@pytest.mark.parametrize("strategy", ["direct", "hierarchical"])
def test_a_search_over_http_costs_little_more_than_its_bare_parts(
    installation: Installation, tmp_path: Path, strategy: str
) -> None:
    """A busy machine can spoil a run, never improve one: the best of three is what the code can do."""
    mine = installation.environment
    run(mine, "migrate")
    run(mine, "sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(800))))
    run(mine, "worker", "--drain")
    arguments = ("bench", "search", "--count", "150", "--strategy", strategy, "--json")
    ratios = []
    for _ in range(TRIES):
        ratios.append(json.loads(run(mine, *arguments).stdout)["p50_ratio"])
        if ratios[-1] <= MOST:
            return
    raise AssertionError(f"median search over median bare pipeline: {ratios}, at most {MOST}")
