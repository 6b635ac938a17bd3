"""Contract of catalogs about concurrent writes and decisions."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.contracts.builders import tool, tools
from tests.contracts.source_builders import Changing, open_changing
from toolscript.core.items import StoreReport

pytestmark = pytest.mark.requirement("SK-009")

BEFORE, AFTER = tool("read", "Reads a file."), tool("read", "Reads a file, or two.")


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Changing]:
    async with open_changing(request) as opened:
        yield opened


async def test_of_two_concurrent_decisions_one_counts(scene: Changing) -> None:
    await scene.known(BEFORE)
    await scene.holding.store("file", [AFTER])
    (waiting,) = await scene.changes.page(None, 10)
    decided = await asyncio.gather(
        *(scene.changes.approve(waiting.id, f"person {number}") for number in range(4)), return_exceptions=True
    )
    assert sorted(type(item).__name__ for item in decided) == ["Conflict"] * 3 + ["ItemChange"]
    assert len(await scene.audit()) == 1


async def test_concurrent_decisions_and_stores_of_one_source_are_consistent(scene: Changing) -> None:
    names = [f"tool_{number}" for number in range(20)]
    await scene.known(*(tool(name) for name in names))
    await scene.holding.store("file", [tool(name, "new") for name in names])
    waiting = await scene.changes.page(None, 100)
    again = [tool(name, "new") for name in names]
    await asyncio.gather(
        *(scene.changes.approve(item.id, "ada") for item in waiting[:10]),
        *(scene.changes.reject(item.id, "ada") for item in waiting[10:]),
        *(scene.holding.store("file", again[:: 1 - 2 * (number % 2)]) for number in range(4)),
    )
    approved = {item.name for item in waiting[:10]}
    assert {result.item.name for result in await scene.everything() if result.item.description} == approved
    assert len(await scene.changes.page(None, 100)) == len(names)


async def test_of_two_concurrent_stores_one_adds_the_item_and_the_other_is_held(scene: Changing) -> None:
    item, other = await asyncio.gather(
        scene.holding.store("file", tools(200, "one")), scene.holding.store("file", tools(200, "other"))
    )
    assert sorted((item, other), key=lambda report: report.held) == [StoreReport(added=200), StoreReport(held=200)]
    assert len({result.item.description for result in await scene.everything()}) == 1
