"""`toolscript serve` alone follows the catalog: what comes, changes or goes is found or gone within a second.

`-o log_cli=true --log-cli-level=info` shows the figures.
"""

import logging
import os
import time

import pytest

from tests.conftest import Installation
from tests.e2e.live_catalog import SOURCE, Depot, depot_of, figures, name_of, one_after_another, tool

pytestmark = [pytest.mark.alone, pytest.mark.requirement("SK-009")]

WITHIN_SECONDS = 1.0
PER_SECOND = 5.0

logger = logging.getLogger(__name__)


def busy_times() -> float:
    """Return how many times as long a single write may take on a machine that has other work, too."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


async def at_once(depot: Depot, count: int) -> None:
    """Put so many tools in one request, find all, and remove their source."""
    began = time.perf_counter()
    await depot.put([tool(number) for number in range(count)])
    for number in sorted({*range(0, count, max(1, count // 20)), count - 1}):
        await depot.until_found(number)
    took = time.perf_counter() - began
    logger.info("%d at once: all found after %.1f s, %.0f a second", count, took, count / took)
    removal = (await depot.ask("DELETE", f"/sources/{SOURCE}", 202))["id"]
    await depot.until_over(removal)
    depot.gone |= {name_of(number) for number in range(count)}
    assert not await depot.search("a job in the depot", limit=50)


async def one_by_one(installation: Installation, count: int) -> None:
    async with depot_of(installation.environment) as depot:
        async with depot.under_searches():
            took = await one_after_another(depot, count, PER_SECOND)
        for kind in ("put", "change", "remove"):
            logger.info("%s %s", kind, figures([each.seconds for each in took if each.kind == kind]))
        assert max(each.seconds for each in took) < WITHIN_SECONDS * busy_times()
        require_whole(depot)


async def together(installation: Installation, count: int) -> None:
    async with depot_of(installation.environment) as depot:
        async with depot.under_searches():
            await at_once(depot, count)
        require_whole(depot)


def require_whole(depot: Depot) -> None:
    logger.info("searches meanwhile %s", figures(depot.search_seconds))
    assert depot.shown_after_removal == []
    # A busy machine refuses some.
    assert set(depot.search_statuses) <= {200, 503}


async def test_each_tool_is_found_changed_and_gone_within_a_second(installation: Installation) -> None:
    await one_by_one(installation, 30)


async def test_many_tools_at_once_are_found_and_are_gone_at_once(installation: Installation) -> None:
    await together(installation, 60)


@pytest.mark.nightly
async def test_a_thousand_writes_one_after_another(installation: Installation) -> None:
    await one_by_one(installation, 1_000)


@pytest.mark.nightly
async def test_a_thousand_tools_at_once(installation: Installation) -> None:
    await together(installation, 1_000)
