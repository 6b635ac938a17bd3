"""Contract of Suggestions: equal suggestions are grouped until a decision."""

import asyncio

import pytest

from tests.contracts.builders import (
    Record,
    asked,
    asking,
    classified,
    classify,
    dirty_versions,
    item,
    sure,
    tool,
    with_items,
    with_skills,
)
from tests.contracts.paging import stays_whole
from toolscript.core.errors import NotFound
from toolscript.core.taxonomy import Skill, SuggestedSkill, SuggestionState

pytestmark = pytest.mark.requirement("SK-006")

UNKNOWN = 999_999
POST = Skill("post", "Post", "Letters.")


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "mail", "maps", "news")
    return record


async def test_a_suggestion_waits_for_review_and_the_item_is_done(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    before = await item(record, item_id)
    answer = await classify(record, item_id, asks_for="Post Office", described="Letters.")
    assert answer == {item_id: (before.version, ())}
    (result,) = await record.suggestions.page(0, 10)
    assert result.suggested == SuggestedSkill("Post Office", "Letters.")
    assert (result.state, result.asked_by, result.skill_id) == (SuggestionState.PENDING, 1, None)
    assert (result.reviewed_by, result.reviewed_at) == (None, None)
    assert await record.suggestions.find(result.id) == result
    assert await asking(record, result) == [item_id]
    assert not (await item(record, item_id)).needs_skills
    assert await dirty_versions(record) == {}


async def test_suggestions_that_differ_only_in_spelling_are_grouped_under_the_first(record: Record) -> None:
    items = await with_items(record, 4)
    batch = [
        await classified(record, items[0], asks_for="Post office", described="first"),
        await classified(record, items[1], asks_for="post-OFFICE!", described="second"),
    ]
    await record.assignments.record(batch)
    await classify(record, items[2], asks_for="  POST office ", described="third")
    await classify(record, items[3], asks_for="Harbour")
    both = await record.suggestions.page(0, 10)
    assert [(each.suggested.name, each.suggested.description, each.asked_by) for each in both] == [
        ("Post office", "first", 3),
        ("Harbour", "", 1),
    ]
    assert await asking(record, both[0]) == items[:3]
    assert await record.suggestions.asked_by(both[0].id, items[0], 1) == items[1:2]


async def test_concurrent_equal_suggestions_become_one(record: Record) -> None:
    items = await with_items(record, 8)
    words = [await classified(record, id_, asks_for=f"Post Office{'!' * id_}") for id_ in items]
    await asyncio.gather(*(record.assignments.record([word]) for word in words))
    (gathered,) = await record.suggestions.page(0, 10)
    assert gathered.asked_by == 8


async def test_an_empty_suggestion_is_dropped(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    assert (await classify(record, item_id, sure("mail"), asks_for=" -!? ")).keys() == {item_id}
    assert await record.suggestions.page(0, 10, None) == []


async def test_a_long_suggestion_is_cut_and_unstorable_text_is_escaped(record: Record) -> None:
    first, second = await with_items(record, 2)
    await classify(record, first, asks_for="ß" * 200, described="d" * 600)
    await classify(record, second, asks_for="nul \0", described="lone \ud83d")
    long, odd = await record.suggestions.page(0, 10)
    assert (len(long.suggested.name), len(long.suggested.description)) == (120, 500)
    assert odd.suggested == SuggestedSkill("nul \ufffd", "lone \ufffd")


async def test_an_item_has_one_suggestion_at_a_time(record: Record) -> None:
    first, (each, two) = await asked(record)
    await record.assignments.reclassify(0, 10)
    await classify(record, each, asks_for="Harbour")
    second = (await record.suggestions.page(first.id, 10))[0]
    assert (await asking(record, first), await asking(record, second)) == ([two], [each])
    await record.assignments.reclassify(0, 10)
    await classify(record, each, sure("mail"))
    assert await asking(record, second) == []


async def test_an_outdated_classification_leaves_no_suggestion(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    late = await classified(record, item_id, asks_for="Post")
    await record.catalog.store("file", [tool("tool_0", "changed")])
    assert await record.assignments.record([late]) == {}
    assert await record.suggestions.page(0, 10, None) == []


async def test_a_manual_assignment_withdraws_the_suggestion(record: Record) -> None:
    suggestion, (first, second) = await asked(record)
    await record.assignments.set_by_hand(first, [], "ann")
    assert await asking(record, suggestion) == [second]


async def test_a_removed_item_has_no_suggestion(record: Record) -> None:
    suggestion, (_, two) = await asked(record)
    await record.catalog.remove("file", ["server__tool_0"])
    assert await asking(record, suggestion) == [two]
    assert (await record.suggestions.find(suggestion.id)).asked_by == 1


async def test_a_suggestion_that_does_not_exist_is_not_found(record: Record) -> None:
    for ask in (
        record.suggestions.find(UNKNOWN),
        record.suggestions.asked_by(UNKNOWN, 0, 10),
        record.suggestions.approve(UNKNOWN, POST, "ann"),
        record.suggestions.reject(UNKNOWN, "ann"),
        record.suggestions.merge(UNKNOWN, "mail", "ann"),
    ):
        with pytest.raises(NotFound, match=str(UNKNOWN)):
            await ask


async def test_suggestions_come_page_by_page_in_order_of_id_by_their_state(record: Record) -> None:
    items = await with_items(record, 5)
    for number, id_ in enumerate(items):
        await classify(record, id_, asks_for=f"wish {number}")
    first, second, third, fourth, fifth = [each.id for each in await record.suggestions.page(0, 10)]
    await record.suggestions.reject(second, "ann")
    await record.suggestions.merge(fourth, "mail", "ann")

    async def ids(after: int, limit: int, state: SuggestionState | None) -> list[int]:
        return [each.id for each in await record.suggestions.page(after, limit, state)]

    assert await ids(0, 2, SuggestionState.PENDING) == [first, third]
    assert await ids(third, 2, SuggestionState.PENDING) == [fifth]
    assert await ids(0, 10, SuggestionState.REJECTED) == [second]
    assert await ids(second, 2, None) == [third, fourth]


@pytest.mark.requirement("AP-001")
async def test_suggestions_that_are_decided_and_made_between_pages_hide_no_other(record: Record) -> None:
    *items, last = await with_items(record, 9)
    for item_id in items:
        await classify(record, item_id, asks_for=f"Post Office {item_id}")

    async def pending(after: int, limit: int) -> list[int]:
        return [suggestion.id for suggestion in await record.suggestions.page(after, limit)]

    await stays_whole(
        pending,
        0,
        vanish=lambda suggestion_id: record.suggestions.reject(suggestion_id, "ann"),
        appear=lambda: classify(record, last, asks_for="Harbour"),
    )


@pytest.mark.requirement("AP-001")
async def test_tools_that_stop_and_begin_to_request_a_suggestion_hide_no_other(record: Record) -> None:
    *items, last = await with_items(record, 9)
    for item_id in items:
        await classify(record, item_id, asks_for="Post Office")
    (suggestion,) = await record.suggestions.page(0, 10)

    async def requesting(after: int, limit: int) -> list[int]:
        return list(await record.suggestions.asked_by(suggestion.id, after, limit))

    await stays_whole(
        requesting,
        0,
        vanish=lambda item_id: record.assignments.set_by_hand(item_id, ["mail"], "ann"),
        appear=lambda: classify(record, last, asks_for="Post Office"),
    )
