"""Minimum speed of search, as a ratio to the baseline in the same run."""

import json
from collections.abc import Iterator

import pytest

from tests.conftest import fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, run_here
from toolscript.core.settings.service import Settings

TRIES = 3
MOST = 2.0
ITEMS = 400


@pytest.fixture(scope="module")
def indexed(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """An installation whose items are in skills."""
    file = catalog_files.write(tmp_path_factory.mktemp("catalog") / "items.jsonl", catalog_files.rows(ITEMS))
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as installation,
    ):
        run_here(installation.environment, "sync", str(file))
        run_here(installation.environment, "worker", "--drain")
        yield installation.environment


@pytest.mark.states("S3-213")
@pytest.mark.requirement("SLA-001")
@pytest.mark.alone
@pytest.mark.parametrize("strategy", [pytest.param("direct", marks=pytest.mark.nightly), "hierarchical"])
def test_a_search_over_http_costs_little_more_than_the_baseline(indexed: dict[str, str], strategy: str) -> None:
    """A busy machine can spoil a run, never improve one: the best of three is what the code can do."""
    arguments = ("bench", "search", "--count", "100", "--strategy", strategy, "--json")
    ratios = []
    for _ in range(TRIES):
        ratios.append(json.loads(run(indexed, *arguments).stdout)["p50_ratio"])
        if ratios[-1] <= MOST:
            return
    raise AssertionError(f"median search over median bare pipeline: {ratios}, at most {MOST}")
