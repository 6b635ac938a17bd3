"""S0, response times: whether the code could keep them on a machine that has nothing else to do.

Measured are the timings of the metadata, one search at a time, in a catalog of some 200 items. A busy machine
stretches every time: each p95 is divided by how far the slowest twentieth of constant work is from its fastest,
and the best of four tries counts for each stage apart. So this notices code that has become several times slower,
and is no measurement of what a user waits; those are in docs/scale.md.
"""

import asyncio
import time
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation
from tests.contracts.source.s0.builders import LITERAL
from tests.e2e.served import Served, served
from tests.unit.tools.search_http.builders import SEARCH, Searching

pytestmark = pytest.mark.alone

TRIES = 4
SEARCHES = 40
# At the 95th percentile, in milliseconds.
TARGETS = {"total": 100, "skill_search": 15, "tool_search": 30, "schema_load": 20, "query_embedding": 60}
BUDGET = {"query_embedding": 50, "skill_search": 10, "tool_search": 25, "schema_load": 15}
AT_ONCE = 50
DEADLINE_SECONDS = 10.0


def fixed_work() -> float:
    """Return the milliseconds of constant work."""
    started = time.perf_counter()
    sum(number * number for number in range(20_000))
    return (time.perf_counter() - started) * 1_000


def stretch(works: list[float]) -> float:
    """Return how much longer the slowest twentieth took than the fastest."""
    return quantiles(works, n=20)[-1] / min(works)


async def p95(searching: Searching, turn: int, **more: Any) -> dict[str, float]:
    works: list[float] = []
    spent: dict[str, list[float]] = {stage: [] for stage in TARGETS}
    for number in range(SEARCHES):
        answer = await searching.search(f"schedule meeting {turn} with person {number}", limit=5, **more)
        assert answer["metadata"]["degraded"] == []
        works.append(fixed_work())
        for stage, times in spent.items():
            times.append(answer["metadata"][f"{stage}_time_ms"])
    return {stage: quantiles(times, n=20)[-1] / stretch(works) for stage, times in spent.items()}


@pytest.mark.states(
    "S0-099",
    "S0-102",
    "S0-105",
    "S0-108",
    "S0-176",
    "S0-177",
    "S0-178",
    "S0-179",
    "S0-180",
    "S0-183",
    "S0-184",
    "S0-185",
    "S0-186",
    "S0-214",
)
@pytest.mark.parametrize("more", [{}, LITERAL])
async def test_every_stage_could_keep_its_time_on_an_idle_machine(
    searching: Searching, more: dict[str, str]
) -> None:
    """A busy machine can spoil a run, never improve one: the best of some is what the code can do."""
    maximum = {stage: min(target, BUDGET.get(stage, target)) for stage, target in TARGETS.items()}
    best = dict.fromkeys(TARGETS, float("inf"))
    for turn in range(TRIES):
        now = await p95(searching, turn, **more)
        best = {stage: min(time, now[stage]) for stage, time in best.items()}
        if all(best[stage] < maximum[stage] for stage in maximum):
            return
    raise AssertionError(f"95th percentiles {best}, at most {maximum}")


@pytest.fixture(scope="module")
def server(stocked: Installation) -> Iterator[Served]:
    with served(stocked.environment) as running:
        yield running


@pytest.mark.states("S0-182", "S0-214")
@pytest.mark.parametrize("more", [{}, LITERAL])
async def test_fifty_new_queries_at_the_same_moment_are_all_answered(server: Served, more: dict[str, str]) -> None:
    """By a real process as it is by default. It measures that none is refused, degraded or late, and no rate."""
    all_at_once = httpx2.Limits(max_connections=AT_ONCE)
    address = f"http://127.0.0.1:{server.port}"
    async with httpx2.AsyncClient(base_url=address, limits=all_at_once, trust_env=False, timeout=60) as client:

        async def ask(number: int) -> httpx2.Response:
            return await client.post(SEARCH, json={"query": f"wish {more} number {number}", **more})

        assert (await ask(-1)).status_code == 200
        started = time.perf_counter()
        answers = await asyncio.gather(*map(ask, range(AT_ONCE)))
        took = time.perf_counter() - started
    assert [answer.status_code for answer in answers] == [200] * AT_ONCE
    assert [answer.json()["metadata"]["degraded"] for answer in answers] == [[]] * AT_ONCE
    assert took < DEADLINE_SECONDS
