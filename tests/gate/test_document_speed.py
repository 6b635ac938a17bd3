"""The least speed of searches for documents: by ratio to the bare engine and to a collection alone, in one run."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import Installation
from tests.whole.commands import run

TRIES = 3
MOST_OF_BARE = 1.6
MOST_OF_ALONE = 1.4
ARGUMENTS = ("bench", "documents", "--passages", "2000", "--tenants", "40", "--count", "20", "--json")


@pytest.mark.requirement("DOC-007", "SLA-001")
@pytest.mark.alone
def test_a_search_costs_little_more_than_the_bare_engine_and_nothing_for_other_tenants(
    installation: Installation,
) -> None:
    """A busy machine can spoil a run, never improve one: the best of three is what the code can do."""
    tried = []
    for _ in range(TRIES):
        tried.append(medians(json.loads(run(installation.environment, *ARGUMENTS).stdout)))
        if tried[-1][0] <= MOST_OF_BARE and tried[-1][1] <= MOST_OF_ALONE:
            return
    raise AssertionError(f"{tried}: at most {MOST_OF_BARE} of the bare engine, {MOST_OF_ALONE} of being alone")


def medians(tables: Mapping[str, list[Mapping[str, Any]]]) -> tuple[float, float]:
    bare, alone = tables["against the bare engine"], tables["the same tenants beside all others against alone"]
    by_size = next(row for row in bare if row["tenants"] == "any passage's tenant")
    hybrid = next(row for row in alone if row["search"] == "hybrid")
    return by_size["p50 ratio"], hybrid["p50 ratio"]
