"""Searches with the skills in memory, over HTTP: the same answers, and changes are visible."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.unit.conftest import fill
from tests.unit.tools.search_http.builders import STRATEGIES, Searching, ids, without_times
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.settings.service import Settings

SKILLS = "/api/v1/skills"
IN_MEMORY = {"TOOLSCRIPT_SKILL_COPY": "true"}
MAIL = {"id": "mail", "name": "Mail", "description": "Sends and reads email messages"}
QUERY = "send an email message"
# A check every quarter of a second, on a machine that may be busy.
SOON = 20.0


@pytest.fixture(scope="module")
async def copying(stocked: Installation) -> AsyncIterator[Searching]:
    async with serving(stocked, **IN_MEMORY) as service:
        yield Searching(service)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
async def test_answers_are_the_same_with_the_skills_in_memory(
    searching: Searching, copying: Searching, strategy: str, search_type: str
) -> None:
    for query in ("read a file", "honey from a beehive", "send mail and book a flight", "quarks"):
        for more in ({}, {"skill_threshold": 0.0, "skill_limit": 8}):
            options = {"strategy": strategy, "search_type": search_type, **more}
            await copying.search(query, **options)
            mine = without_times(await copying.search(query, **options))
            its = without_times(await searching.search(query, **options))
            for skill, other in zip(mine["matched_skills"], its["matched_skills"], strict=True):
                assert skill["score"] == pytest.approx(other["score"], abs=1e-5)
                skill["score"] = other["score"]
            assert mine == its


@pytest.fixture(scope="module")
def changing(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        asyncio.run(fill(fresh.settings))
        yield fresh


@dataclass(frozen=True)
class Two:
    """One service that has the skills in memory, and another that changes them."""

    mine: Searching
    other: Searching

    async def matched(self) -> list[str]:
        return ids((await self.mine.search(QUERY, search_type="semantic", skill_threshold=0.0))["matched_skills"])


@pytest.fixture
async def two(changing: Installation) -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        mine = await stack.enter_async_context(serving(changing, **IN_MEMORY))
        other = await stack.enter_async_context(serving(changing))
        yield Two(Searching(mine), Searching(other))


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


@pytest.mark.states("S3-220")
async def test_changes_of_another_process_are_visible_soon_and_own_changes_at_once(two: Two) -> None:
    assert await two.matched() == []
    await two.other.service.ask("POST", SKILLS, 201, MAIL)

    async def is_there() -> bool:
        return await two.matched() == ["mail"]

    async def is_gone() -> bool:
        return await two.matched() == []

    await until(is_there)
    await two.other.service.ask("PATCH", f"{SKILLS}/mail", 200, {"is_active": False})
    await until(is_gone)
    await two.mine.service.ask("PATCH", f"{SKILLS}/mail", 200, {"is_active": True})
    assert await two.matched() == ["mail"]
    await two.mine.service.ask("PATCH", f"{SKILLS}/mail", 200, {"is_active": False})
    assert await two.matched() == []
