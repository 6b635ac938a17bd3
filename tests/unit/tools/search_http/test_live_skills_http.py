"""Searches use changes by people and workers, over HTTP, without a restart."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.unit.conftest import fill
from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching, by_vector, by_words, ids, names
from tests.unit.tools.search_http.catalog import ids_by_name
from tests.unit.tools.sources_http.builders import catalog, serving
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import IndexWriter, open_index_writer
from toolscript.tools.indexing.indexer import Step

SKILLS = "/api/v1/skills"
MAIL = {"id": "mail", "name": "Mail", "description": "Sends and reads email messages"}
DISK = {"id": "disk", "name": "Disk", "description": "Reads and writes files on disk"}


class Died(Exception):
    """A worker that is killed right after its items are in the index."""


@pytest.fixture(scope="module")
def changing(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        asyncio.run(fill(fresh.settings))
        yield fresh


@dataclass(frozen=True)
class Live(Searching):
    writer: IndexWriter

    async def assign(self, name: str, *skills: str) -> None:
        item = (await ids_by_name(self.service.stores))[name]
        body = {"skill_ids": list(skills), "reviewer": "ada"}
        await self.service.ask("PUT", f"/api/v1/tools/{item}/skills", 200, body)

    async def work(self) -> None:
        await self.writer.worker(silent).drain()

    async def work_and_die(self) -> None:
        def die(step: Step) -> None:
            if step is Step.CLEARED:
                raise Died

        with pytest.raises(Died):
            await self.writer.worker(silent, die).drain()


@pytest.fixture(scope="module")
async def live(changing: Installation) -> AsyncIterator[Live]:
    """Two skills with items in them, of a catalog that fits a screen."""
    async with serving(changing) as service, open_index_writer(changing.settings) as writer:
        for skill in (MAIL, DISK):
            await service.ask("POST", SKILLS, 201, skill)
        opened = Live(service, writer)
        await opened.assign("send_mail", "mail")
        await opened.assign("readFile", "disk")
        await opened.work()
        yield opened


def count_of(answer: dict[str, Any], skill_id: str) -> int:
    return int(next(skill["tool_count"] for skill in answer["matched_skills"] if skill["id"] == skill_id))


@pytest.mark.requirement("BR-002", "BR-006")
async def test_the_next_search_after_a_skill_is_deactivated_does_not_use_it(live: Live) -> None:
    query = "send an email message"
    assert (await live.search(query))["metadata"]["skill_ids_used"] == ["mail"]
    try:
        await live.service.ask("PATCH", f"{SKILLS}/mail", 200, {"is_active": False})
        without = await live.search(query)
        alone = await live.skills(query, threshold=0)
    finally:
        await live.service.ask("PATCH", f"{SKILLS}/mail", 200, {"is_active": True})
    assert "mail" not in ids(without["matched_skills"]) + ids(alone)
    assert without["metadata"]["skill_ids_used"] is None
    assert "send_mail" in names(without["tools"])
    assert (await live.search(query))["metadata"]["skill_ids_used"] == ["mail"]


@pytest.mark.requirement("BR-002")
async def test_a_skill_that_was_just_added_routes_the_next_search(live: Live) -> None:
    query = "which constellations can be seen tonight"
    assert (await live.search(query))["matched_skills"] == []
    sky = {"id": "stars", "name": "Stars", "description": "Constellations that can be seen tonight"}
    await live.service.ask("POST", SKILLS, 201, sky)
    answer = await live.search(query)
    assert [(skill["id"], skill["tool_count"]) for skill in by_vector(answer)] == [("stars", 0)]


@pytest.mark.requirement("BR-003", "EC-008")
async def test_an_item_assigned_by_hand_is_found_by_its_skill_once_a_worker_ran(
    live: Live,
) -> None:
    query = "summarise an email thread"
    before = await live.search(query)
    assert before["metadata"]["strategy_used"] == "hierarchical"
    assert "summarise" not in names(before["tools"])
    await live.assign("summarise", "mail")
    await live.work()
    after = await live.search(query)
    summarise = next(tool for tool in after["tools"] if tool["name"] == "summarise")
    assert (summarise["skill_ids"], summarise["primary_skill_id"]) == (["mail"], "mail")
    assert count_of(after, "mail") == count_of(before, "mail") + 1


async def test_a_schema_that_changed_alone_is_returned_once_a_worker_ran(live: Live) -> None:
    async def shown() -> dict[str, Any]:
        tools = (await live.search("fold a paper crane"))["tools"]
        return dict(next(tool for tool in tools if tool["name"] == "fold_crane")["input_schema"])

    for kind in ("string", "integer"):
        crane = _described("fold_crane", "Fold a paper crane")
        schema = {"type": "object", "properties": {"size": {"type": kind}}}
        await live.service.synced(catalog("paper", {**crane, "input_schema": schema}))
        await live.work()
        assert [await shown(), await shown()] == [schema, schema]


@pytest.mark.states("S0-199", "S0-200", "S0-213")
@pytest.mark.requirement("EC-007")
async def test_while_the_vector_of_its_skill_is_old_a_new_item_is_found_by_that_vector(
    live: Live,
) -> None:
    query = "append a line of text to a file on disk"
    before = count_of(await live.search(query), "disk")
    await live.service.synced(catalog("pushed", _described("append_file", "Append a line of text to a file")))
    await live.assign("append_file", "disk")
    await live.work_and_die()
    stale = await live.search(query)
    assert ("disk", before) in [(skill["id"], skill["tool_count"]) for skill in by_vector(stale)]
    assert names(stale["tools"])[0] == "append_file"
    await live.work()
    assert count_of(await live.search(query), "disk") == before + 1


@pytest.mark.states("S0-199")
@pytest.mark.requirement("EC-007")
async def test_a_new_item_far_from_the_old_vector_of_its_skill_is_found_by_its_words(
    live: Live,
) -> None:
    query = "polish the telescope mirror"
    await live.service.synced(catalog("odd", _described("polish_mirror", "Polish the mirror of a telescope")))
    await live.assign("polish_mirror", "mail")
    await live.work_and_die()
    stale = await live.search(query)
    assert names(stale["tools"])[0] == "polish_mirror"
    routed = await live.search(query, search_type="keyword")
    assert ("mail" in ids(by_words(routed)), names(routed["tools"])[0]) == (True, "polish_mirror")
    await live.work()
    assert names((await live.search(query))["tools"])[0] == "polish_mirror"


@pytest.mark.requirement("BR-003")
async def test_a_removed_item_is_not_found_once_a_worker_ran(live: Live) -> None:
    query = "translate a poem"
    poem, song = _described("translate_poem", "Translate a poem"), _described("sing_song", "Sing a song")
    await live.service.synced(catalog("passing", poem, song))
    await live.assign("translate_poem", "mail")
    await live.work()
    assert "translate_poem" in names((await live.search(query))["tools"])
    await live.service.synced(catalog("passing", song, prune=True))
    await live.work()
    for strategy in STRATEGIES:
        answer = await live.search(query, strategy=strategy, **ALL)
        assert "translate_poem" not in names(answer["tools"])
    assert "sing_song" in names((await live.search(query, strategy="direct", **ALL))["tools"])


def _described(name: str, description: str) -> dict[str, Any]:
    return {"server": "pushed", "name": name, "description": description}
