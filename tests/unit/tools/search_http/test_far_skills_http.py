"""A skill that only shares a word with the request, and means something else, does not lock other tools out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.unit.tools.search_http.builders import Searching, by_vector, by_words, ids, names
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.item_json import item_from_json
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.server.skills import load_default_skills
from toolscript.tools.catalog.items import import_items

REQUEST = "schedule a meeting with John"
CALENDAR = "calendar_management"
WARNING = "No skills matched, falling back to unfiltered search"

# Server, name, description. Two of other skills share the word `schedule` with the request.
TOOLS = (
    ("daybook", "plan_meeting", "Plan a meeting with people and put it into their calendars"),
    ("daybook", "list_events", "List the events of a calendar between two dates"),
    ("socialpost", "post_Schedule_Post", "Schedule a post on Instagram, Facebook and other social networks"),
    ("socialpost", "get_followers", "Count the followers of a social network account"),
    ("clipmaker", "schedule_render", "Schedule the rendering of a video clip with effects and music"),
    ("clipmaker", "generate_image", "Generate an image from a text prompt"),
    ("weatherly", "get_forecast", "Get the weather forecast of a city"),
    ("sqlbench", "run_query", "Run a SQL query on a database"),
)


@pytest.fixture(scope="module")
def skilled(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        load_default_skills(fresh.settings)
        asyncio.run(_fill(fresh.settings))
        yield fresh


async def _fill(settings: Settings) -> None:
    items = [item_from_json({"server": server, "name": name, "description": of}) for server, name, of in TOOLS]
    async with open_index_writer(settings) as writer:
        await import_items(writer.stores.catalog, "office", items)
        await writer.worker(silent).drain()


@pytest.fixture(scope="module")
async def searching(skilled: Installation) -> AsyncIterator[Searching]:
    async with serving(skilled) as service:
        yield Searching(service)


@asynccontextmanager
async def without_calendar(searching: Searching) -> AsyncIterator[None]:
    path = f"/api/v1/skills/{CALENDAR}"
    await searching.service.ask("PATCH", path, 200, {"is_active": False})
    try:
        yield
    finally:
        await searching.service.ask("PATCH", path, 200, {"is_active": True})


async def test_a_near_skill_routes_the_request_and_words_add_others(searching: Searching) -> None:
    answer = await searching.search(REQUEST)
    assert ids(by_vector(answer)) == [CALENDAR]
    assert by_words(answer)
    assert names(answer["tools"])[0] == "plan_meeting"


@pytest.mark.states("S0-066", "S0-067", "S0-069", "S0-070")
@pytest.mark.requirement("BR-006")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
async def test_where_skills_share_a_word_alone_all_items_are_searched(
    searching: Searching, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with without_calendar(searching):
        with caplog.at_level(logging.WARNING):
            answer = await searching.search(REQUEST, strategy=strategy)
        direct = await searching.search(REQUEST, strategy="direct")
    assert names(answer["tools"])[0] == "plan_meeting"
    assert answer["tools"] == direct["tools"]
    metadata = answer["metadata"]
    assert (metadata["strategy_used"], metadata["skill_ids_used"], metadata["degraded"]) == ("direct", None, [])
    assert answer["matched_skills"] == []
    assert [line.getMessage() for line in caplog.records if "skill" in line.getMessage().lower()] == [WARNING]


@pytest.mark.states("S0-066", "S0-070")
async def test_the_skill_stage_alone_names_no_skill_that_only_shares_a_word(searching: Searching) -> None:
    async with without_calendar(searching):
        assert await searching.skills(REQUEST) == []
    assert CALENDAR in ids(await searching.skills(REQUEST))


async def test_without_vectors_words_are_enough(searching: Searching) -> None:
    answer = await searching.search(REQUEST, search_type="keyword")
    assert CALENDAR in answer["metadata"]["skill_ids_used"]
    assert by_vector(answer) == []
