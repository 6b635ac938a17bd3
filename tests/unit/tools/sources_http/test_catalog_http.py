"""The contents of the catalog over HTTP, and their removal, on the real engines."""

from urllib.parse import quote

import pytest

from tests.unit.tools.sources_http.builders import Service, catalog, described
from toolscript.core.web.cursors import encode_cursor

pytestmark = pytest.mark.requirement("SK-009", "SK-010")

SOURCES, TOOLS = "/api/v1/sources", "/api/v1/tools"


async def removed(service: Service, source: str) -> int:
    """Remove a source; return how many items the job removed."""
    accepted = await service.ask("DELETE", f"{SOURCES}/{quote(source, safe='')}", 202)
    job = await service.until_over(accepted["id"])
    assert job["state"] == "done", job
    return int(job["report"]["removed"])


async def test_a_source_is_listed_and_removed_with_all_of_its_tools(service: Service) -> None:
    await service.synced(catalog("leaving", described("a"), described("b"), described("c")))
    source = await service.ask("GET", f"{SOURCES}/leaving")
    assert (source["name"], source["tool_count"]) == ("leaving", 3)
    assert source in (await service.ask("GET", SOURCES, limit=200))["results"]
    ids = [item.id for item in (await service.items("leaving")).values()]
    assert await removed(service, "leaving") == 3
    assert await service.items("leaving") == {}
    assert "lists them" in (await service.refused("GET", f"{SOURCES}/leaving", 404))["details"]["hint"]
    for id_ in ids:
        await service.refused("GET", f"{TOOLS}/{id_}", 404)
    assert await removed(service, "leaving") == 0


async def test_removing_a_source_marks_its_items_dirty(service: Service) -> None:
    await service.synced(catalog("followed", described("a"), described("b")))
    ids = {item.id for item in (await service.items("followed")).values()}
    (live,) = await service.stores.dirty.index_versions()
    claim = await service.stores.dirty.claim(live.id, 10_000, 60)
    await service.stores.dirty.clear(live.id, claim)
    await removed(service, "followed")
    assert set((await service.stores.dirty.claim(live.id, 10_000, 60)).versions) == ids


async def test_the_name_of_a_source_may_have_slashes_and_spaces(service: Service) -> None:
    name = "examples/my tools.jsonl"
    await service.synced(catalog(name, described("a")))
    assert (await service.ask("GET", f"{SOURCES}/{quote(name)}"))["name"] == name
    assert await removed(service, name) == 1


async def test_sources_and_tools_come_in_pages(service: Service) -> None:
    await service.synced(catalog("pages-1", *(described(f"t{number}") for number in range(5))))
    await service.synced(catalog("pages-2", described("t")))
    first = await service.ask("GET", SOURCES, cursor=encode_cursor("pages"), limit=1)
    second = await service.ask("GET", SOURCES, cursor=first["next_cursor"], limit=1)
    names = [source["name"] for source in first["results"] + second["results"]]
    assert names == ["pages-1", "pages-2"]
    pages = [await service.ask("GET", TOOLS, source="pages-1", limit=2)]
    while pages[-1]["next_cursor"]:
        cursor = pages[-1]["next_cursor"]
        pages.append(await service.ask("GET", TOOLS, source="pages-1", limit=2, cursor=cursor))
    assert [len(page["results"]) for page in pages] == [2, 2, 1]
    names = [tool["name"] for page in pages for tool in page["results"]]
    assert names == [f"t{number}" for number in range(5)]


async def test_a_page_ends_where_the_next_begins_though_tools_vanish_between_them(service: Service) -> None:
    await service.synced(catalog("vanishing", *(described(f"t{number}") for number in range(4))))
    ids = sorted(item.id for item in (await service.items("vanishing")).values())
    first = await service.ask("GET", TOOLS, source="vanishing", limit=2)
    for id_ in ids[:2]:
        await service.client.delete(f"{TOOLS}/{id_}")
    rest = await service.ask("GET", TOOLS, source="vanishing", limit=2, cursor=first["next_cursor"])
    assert [tool["id"] for tool in first["results"] + rest["results"]] == ids
    assert rest["next_cursor"] is None


async def test_a_source_with_a_long_name_of_any_script_does_not_end_the_list(service: Service) -> None:
    await service.synced(catalog("\U0001f41d" * 200, described("a")))
    await service.synced(catalog("\U0001f41e", described("a")))
    first = await service.ask("GET", SOURCES, cursor=encode_cursor("default/\U0001f41c"), limit=1)
    rest = await service.ask("GET", SOURCES, cursor=first["next_cursor"], limit=1)
    assert [source["name"] for source in first["results"] + rest["results"]] == ["\U0001f41d" * 200, "\U0001f41e"]


async def test_tools_are_filtered_by_source_server_and_kind(service: Service) -> None:
    prompt = {"type": "prompt", "server": "filtered", "name": "greet"}
    await service.synced(catalog("filters", described("a"), prompt))
    by_kind = await service.ask("GET", TOOLS, source="filters", kind="prompt")
    by_server = await service.ask("GET", TOOLS, server="filtered")
    assert [tool["name"] for tool in by_kind["results"]] == ["greet"]
    assert by_server["results"] == by_kind["results"]
    await service.refused("GET", TOOLS, 422, kind="nothing")


async def test_one_tool_is_returned_with_its_schemas_and_can_be_removed_twice(service: Service) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    await service.synced(catalog("single", described("read", "Reads a file.", input_schema=schema)))
    (only,) = (await service.items("single")).values()
    tool = await service.ask("GET", f"{TOOLS}/{only.id}")
    assert (tool["id"], tool["source"], tool["input_schema"]) == (only.id, "single", schema)
    assert (tool["name"], tool["description"]) == ("read", "Reads a file.")
    for _ in range(2):
        assert (await service.client.delete(f"{TOOLS}/{only.id}")).status_code == 204
    await service.refused("GET", f"{TOOLS}/{only.id}", 404)
    await service.refused("DELETE", f"{TOOLS}/999999999", 404)


async def test_a_decision_about_a_tool_applies_again_when_the_tool_comes_back(service: Service) -> None:
    body = catalog("returning", described("a"))
    await service.synced(body)
    (only,) = (await service.items("returning")).values()
    skills = f"{TOOLS}/{only.id}/skills"
    await service.ask("POST", "/api/v1/skills", 201, {"id": "returning_things", "name": "Returning"})
    assignment = {"skill_ids": ["returning_things"], "reviewer": "ann"}
    await service.ask("PUT", skills, json=assignment)
    await removed(service, "returning")
    await service.synced(body)
    (back,) = (await service.items("returning")).values()
    assert (back.id, back.skill_ids) == (only.id, ("returning_things",))


async def test_pruning_with_nothing_is_refused_with_the_request_that_removes_a_source(service: Service) -> None:
    job = await service.synced(catalog("my tools", prune=True), state="failed")
    assert "DELETE /api/v1/sources/my%20tools" in job["error"]
    assert "--prune" not in job["error"]


@pytest.mark.parametrize("path", [f"{SOURCES}/file", f"{TOOLS}/1"])
async def test_a_client_without_write_access_cannot_remove(path: str, service: Service) -> None:
    answer = await service.client.delete(path, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 403


async def test_a_server_with_a_confusable_name_is_refused(service: Service) -> None:
    look_alike = {"server": "g\u0456thub", "name": "create_issue"}
    ambiguous = {"server": "a__b", "name": "c"}
    job = await service.synced(catalog("names", described("a"), look_alike, ambiguous))
    assert [refused["where"] for refused in job["report"]["refused"]] == ["item 2", "item 3"]
    assert (await service.items("names")).keys() == {"a"}
