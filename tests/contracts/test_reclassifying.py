"""Contract of Assignments for reclassification: page by page, without manual assignments."""

import pytest

from tests.contracts.builders import (
    Record,
    classified,
    classify,
    dirty_versions,
    item,
    settle,
    sure,
    with_items,
    with_skills,
)
from toolscript.core.errors import NotFound
from toolscript.core.items import AssignedBy

pytestmark = pytest.mark.requirement("SK-004")


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "mail", "maps")
    return record


async def pages(
    record: Record, limit: int, skill_id: str | None = None, source: AssignedBy | None = None
) -> list[list[int]]:
    result: list[list[int]] = []
    after = 0
    while page := await record.assignments.reclassify(after, limit, skill_id=skill_id, source=source):
        result.append(list(page))
        after = page[-1]
    return result


async def test_items_to_classify_anew_need_skills_keep_theirs_and_are_dirty(record: Record) -> None:
    first, second = await with_items(record, 2)
    for id_ in (first, second):
        await classify(record, id_, sure("mail"))
    late = await classified(record, first, sure("maps"))
    await settle(record)
    assert await record.assignments.reclassify(0, 10) == [first, second]
    after = {id_: await item(record, id_) for id_ in (first, second)}
    assert all(result.needs_skills and result.assignments == (sure("mail"),) for result in after.values())
    assert await dirty_versions(record) == {id_: result.version for id_, result in after.items()}
    assert await record.assignments.record([late]) == {}, "it was said of an earlier version"


async def test_all_items_come_page_by_page_in_order_of_id(record: Record) -> None:
    items = await with_items(record, 5)
    assert await pages(record, 2) == [items[:2], items[2:4], items[4:]]


@pytest.mark.requirement("SK-008")
async def test_items_that_people_decided_about_fill_no_page_and_end_none(record: Record) -> None:
    items = await with_items(record, 7)
    for id_ in items[1:5]:
        await record.assignments.set_by_hand(id_, ["mail"], "ann")
    await settle(record)
    assert await pages(record, 2) == [[items[0], items[5]], [items[6]]]
    assert await pages(record, 2, skill_id="mail") == []
    assert (await dirty_versions(record)).keys() == {items[0], items[5], items[6]}


async def test_only_the_items_of_a_skill_or_of_a_source_or_of_both(record: Record) -> None:
    first, second, third, four, bare = await with_items(record, 5)
    rules = AssignedBy.RULES
    await classify(record, first, sure("mail"), sure("maps", 0.8))
    await classify(record, second, sure("mail", 0.9, rules), sure("maps", 0.8, rules))
    await classify(record, third, sure("maps", 0.9, rules))
    await classify(record, four, sure("maps"))
    await classify(record, bare)
    assert await pages(record, 1, skill_id="mail") == [[first], [second]]
    assert await pages(record, 2, source=rules) == [[second, third]]
    assert await pages(record, 9, source=AssignedBy.LLM) == [[first, four]]
    assert await pages(record, 9, skill_id="mail", source=rules) == [[second]]
    assert await pages(record, 9, source=AssignedBy.HUMAN) == []
    assert not (await item(record, bare)).needs_skills


async def test_a_skill_that_does_not_exist_is_not_found(record: Record) -> None:
    with pytest.raises(NotFound, match="nonsense"):
        await record.assignments.reclassify(0, 10, skill_id="nonsense")
