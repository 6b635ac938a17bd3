"""Contract of Catalog: the items of record, and their changes."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.contracts.builders import Record, tool, tools
from toolscript.core.errors import NotFound
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind, StoredItem, StoreReport
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.catalog import Claim

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")

FIRST = 1  # the index version that is live from the start


async def everything(record: Record) -> Sequence[StoredItem]:
    return await record.catalog.items([seen.id for seen in await record.catalog.scan(0, 1000)])


async def dirty_now(record: Record) -> Claim:
    """Claim and return all dirty items."""
    return await record.dirty.claim(FIRST, 1000, 60)


async def settle(record: Record) -> None:
    await record.dirty.clear(FIRST, await dirty_now(record))


async def test_new_items_are_added_and_dirty_at_their_version(record: Record) -> None:
    assert await record.catalog.store("file", tools(3)) == StoreReport(added=3)
    assert await record.catalog.count() == 3
    stored = {result.id: result.version for result in await everything(record)}
    assert (await dirty_now(record)).versions == stored


async def test_unchanged_items_are_not_dirty_again(record: Record) -> None:
    await record.catalog.store("file", tools(3))
    await settle(record)
    assert await record.catalog.store("file", tools(3)) == StoreReport(unchanged=3)
    assert (await record.dirty.pending(FIRST)).total == 0


async def test_a_changed_item_keeps_its_id_gets_a_later_version_and_is_dirty(record: Record) -> None:
    await record.catalog.store("file", [tool("read"), tool("write")])
    before = await everything(record)
    await settle(record)
    report = await record.catalog.store("file", [tool("read", "Reads."), tool("write"), tool("new")])
    assert report == StoreReport(added=1, changed=1, unchanged=1)
    after = await everything(record)
    assert [result.id for result in after][:2] == [result.id for result in before]
    assert after[0].version > max(result.version for result in before)
    assert after[0].item.description == "Reads."
    assert set((await dirty_now(record)).versions) == {after[0].id, after[2].id}


async def test_a_key_seen_again_in_a_later_batch_is_the_same_item(record: Record) -> None:
    for description, report in (("a", StoreReport(added=1)), ("b", StoreReport(changed=1))):
        assert await record.catalog.store("file", [tool("read", description)]) == report
    assert [result.item.description for result in await everything(record)] == ["b"]


async def test_two_sources_may_use_the_same_key_for_two_items(record: Record) -> None:
    await record.catalog.store("file", [tool("read", "from a file")])
    await record.catalog.store("server", [tool("read", "from a server")])
    assert {result.item.description for result in await everything(record)} == {"from a file", "from a server"}


async def test_storing_nothing_does_nothing(record: Record) -> None:
    assert await record.catalog.store("file", []) == StoreReport()


async def test_an_item_comes_back_as_it_went_in(record: Record) -> None:
    item = Item(
        "k",
        ItemKind.RESOURCE,
        "srv",
        "Größe 日本 🙂",
        "d'oh; -- \\x00 %s",
        "about",
        {"type": "object"},
        {},
        {"a": [1, None]},
    )
    await record.catalog.store("file", [item])
    result = (await everything(record))[0]
    assert result.item == item
    assert result.is_active


@pytest.mark.parametrize(
    "text", ["nul \0 in it", "lone \ud83d surrogate", "🙂" * 300, "line\u2028ends\r\n"], ids=ascii
)
async def test_any_text_that_json_can_carry_is_stored_through_item_json(record: Record, text: str) -> None:
    line = json.dumps({"server": "s", "name": "n" + text, "description": text, "input_schema": {text: [text]}})
    item = item_from_json(json.loads(line))
    await record.catalog.store("file", [item])
    assert (await everything(record))[0].item == item


async def test_numbers_no_database_holds_do_not_stop_a_batch(record: Record) -> None:
    line = '{"server": "s", "name": "n", "input_schema": {"maximum": 1e999, "default": NaN, "minimum": 1e308}}'
    await record.catalog.store("file", [item_from_json(json.loads(line)), tool("other")])
    schema = (await everything(record))[0].item.input_schema
    assert schema == {"maximum": None, "default": None, "minimum": 1e308}


async def test_names_as_long_as_allowed_do_not_stop_a_batch(record: Record) -> None:
    def rare(start: int) -> str:
        return "".join(chr(0x20000 + start + index) for index in range(512))

    item = item_from_json({"server": rare(0), "name": rare(600)})
    assert await record.catalog.store("file", [item, tool("other")]) == StoreReport(added=2)


@pytest.mark.requirement("BR-004")
async def test_schemas_come_by_id_with_their_members_in_order(record: Record) -> None:
    schema = {"zebra": 1, "apple": {"y": 1, "b": 2}, "mango": []}
    await record.catalog.store("file", [replace(tool("read"), annotations=schema, output_schema={})])
    id_ = (await everything(record))[0].id
    schemas = (await record.catalog.schemas([id_, id_ + 1]))[id_]
    assert json.dumps(schemas.annotations) == json.dumps(schema)
    assert (schemas.input_schema, schemas.output_schema) == (None, {})


@pytest.mark.requirement("BR-004")
async def test_ids_of_removed_and_of_unknown_items_are_told_from_those_of_others(record: Record) -> None:
    await record.catalog.store("file", [tool("read"), tool("write")])
    read, write = (stored.id for stored in await everything(record))
    assert await record.catalog.removed([read, write]) == frozenset()
    await record.catalog.remove("file", ["server__read"])
    assert await record.catalog.removed([write, read, write + 9]) == {read, write + 9}
    await record.catalog.store("file", [tool("read")])
    assert await record.catalog.removed([read, write]) == frozenset()
    assert await record.catalog.removed([]) == frozenset()


async def test_schemas_and_items_of_unknown_ids_are_simply_absent(record: Record) -> None:
    assert await record.catalog.schemas([7, 8]) == {}
    assert await record.catalog.items([7]) == []
    assert await record.catalog.schemas([]) == {}


async def test_keep_only_removes_the_rest_of_that_source_and_marks_it_dirty(record: Record) -> None:
    await record.catalog.store("file", tools(4))
    await record.catalog.store("server", tools(4))
    await settle(record)
    before = {result.id for result in await everything(record)}
    assert await record.catalog.keep_only("file", ["server__tool_1", "server__unknown"]) == 3
    left = {result.id for result in await everything(record)}
    assert len(left) == 5
    assert (await dirty_now(record)).versions.keys() == before - left


async def test_the_version_of_a_removal_is_later_than_the_items(record: Record) -> None:
    await record.catalog.store("file", tools(1))
    stored = (await everything(record))[0]
    await record.catalog.keep_only("file", [])
    assert (await dirty_now(record)).versions[stored.id] > stored.version


async def test_a_removed_item_that_returns_is_the_same_one_at_a_later_version(record: Record) -> None:
    await record.catalog.store("file", tools(1))
    before = (await everything(record))[0]
    await record.catalog.keep_only("file", [])
    assert await record.catalog.count() == 0
    await settle(record)
    assert await record.catalog.store("file", tools(1)) == StoreReport(added=1)
    after = (await everything(record))[0]
    assert (after.id, after.is_active, after.needs_skills) == (before.id, True, True)
    assert after.version > before.version
    assert (await dirty_now(record)).versions == {after.id: after.version}


@pytest.mark.requirement("SK-008")
async def test_a_manual_assignment_outlives_the_removal_of_its_item(record: Record) -> None:
    await record.taxonomy.add(Skill("files", "Files"), "ann")
    await record.catalog.store("file", tools(1))
    (item,) = await everything(record)
    await record.assignments.set_by_hand(item.id, ["files"], "ann")
    await record.catalog.remove("file", [item.item.key])
    with pytest.raises(NotFound):
        await record.assignments.of(item.id)
    assert await record.taxonomy.members("files", 0, 10) == []
    await record.catalog.store("file", tools(1, "changed"))
    (back,) = await everything(record)
    assert (back.skill_ids, back.needs_skills) == (("files",), False)


async def test_a_scan_goes_through_all_items_in_order_of_id_page_by_page(record: Record) -> None:
    await record.catalog.store("file", tools(5))
    first = await record.catalog.scan(0, 2)
    second = await record.catalog.scan(first[-1].id, 2)
    last = await record.catalog.scan(second[-1].id, 2)
    seen = [*first, *second, *last]
    assert [len(page) for page in (first, second, last)] == [2, 2, 1]
    assert [item.id for item in seen] == sorted(item.id for item in seen)
    assert {item.id: item.version for item in seen} == (await dirty_now(record)).versions
