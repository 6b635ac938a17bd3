"""Contract of Assignments: a classifier's result applies to the version it saw, a manual assignment always."""

import asyncio
from dataclasses import replace

import pytest

from tests.contracts.builders import (
    Record,
    classified,
    classify,
    dirty_versions,
    item,
    settle,
    sure,
    tool,
    with_items,
    with_skills,
)
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import AssignedBy, Assignment
from toolscript.core.taxonomy import Skill

pytestmark = pytest.mark.requirement("SK-004")

UNKNOWN = 999_999


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "files", "mail", "maps", "news")
    return record


async def actions(record: Record) -> list[tuple[str, str, str]]:
    """Return the audited actions on items, latest first."""
    entries = [entry for _, entry in await record.taxonomy.audit(None, 100)]
    return [(entry.actor, entry.action, entry.subject) for entry in entries if entry.action.startswith("item.")]


async def test_a_new_item_has_no_skills_and_needs_them(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    assert await record.assignments.of(item_id) == ()
    assert (await item(record, item_id)).needs_skills


async def test_a_classification_is_stored_best_first_and_the_item_is_dirty(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    before = await item(record, item_id)
    mail, maps = sure("mail", 0.6, AssignedBy.RULES, "its words"), sure("maps", 0.8)
    answer = await classify(record, item_id, mail, maps)
    after = await item(record, item_id)
    assert answer == {item_id: (after.version, (maps, mail))}
    assert after.version > before.version
    assert (after.assignments, after.needs_skills) == ((maps, mail), False)
    assert await record.assignments.of(item_id) == (maps, mail)
    assert await dirty_versions(record) == {item_id: after.version}


async def test_a_batch_of_classifications_is_stored_at_once(record: Record) -> None:
    first, second, third = await with_items(record, 3)
    batch = [
        await classified(record, first, sure("mail")),
        await classified(record, second),
        await classified(record, third, sure("maps"), sure("news", 0.7)),
    ]
    answer = await record.assignments.record(batch)
    assert {id_: [a.skill_id for a in result] for id_, (_, result) in answer.items()} == {
        first: ["mail"],
        second: [],
        third: ["maps", "news"],
    }
    assert (await dirty_versions(record)).keys() == {first, third}
    assert await record.assignments.record([]) == {}


async def test_an_equal_classification_changes_neither_version_nor_index(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail", reason="first"), sure("maps", 0.7))
    await record.assignments.reclassify(0, 10)
    await settle(record)
    before = await item(record, item_id)
    answer = await classify(record, item_id, sure("maps", 0.7), sure("mail", reason="in other words"))
    assert answer == {item_id: (before.version, before.assignments)}
    assert await item(record, item_id) == replace(before, needs_skills=False)
    assert await dirty_versions(record) == {}


@pytest.mark.parametrize(
    "second",
    [
        (),
        (sure("mail", 0.8),),
        (sure("mail", 0.9, AssignedBy.RULES),),
        (sure("maps"),),
        (sure("mail"), sure("maps", 0.6)),
    ],
    ids=["none", "confidence", "source", "skill", "one more"],
)
async def test_another_classification_replaces_the_first(record: Record, second: tuple[Assignment, ...]) -> None:
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail"))
    await record.assignments.reclassify(0, 10)
    await settle(record)
    before = await item(record, item_id)
    answer = await classify(record, item_id, *second)
    after = await item(record, item_id)
    assert answer == {item_id: (after.version, second)}
    assert after.version > before.version
    assert await dirty_versions(record) == {item_id: after.version}


async def test_a_classification_of_an_outdated_version_is_dropped(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    (seen,) = await record.catalog.scan(0, 10)
    late = await classified(record, seen.id, sure("mail"))
    await record.catalog.store("file", [tool("read", "changed")])
    assert await record.assignments.record([late]) == {}
    assert await record.assignments.of(seen.id) == ()
    assert (await item(record, seen.id)).needs_skills


async def test_a_changed_item_keeps_its_skills_until_it_is_classified(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    (seen,) = await record.catalog.scan(0, 10)
    await classify(record, seen.id, sure("mail"))
    await record.catalog.store("file", [tool("read", "changed")])
    changed = await item(record, seen.id)
    assert (changed.assignments, changed.needs_skills) == ((sure("mail"),), True)


async def test_of_two_classifications_of_one_item_the_first_counts(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    words = [await classified(record, item_id, sure("mail")), await classified(record, item_id, sure("maps"))]
    await record.assignments.record(words)
    assert await record.assignments.record(words) == {}
    assert await record.assignments.of(item_id) == (sure("mail"),)


async def test_a_classified_item_takes_no_second_classification(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    late = await classified(record, item_id, sure("mail"))
    before = await item(record, item_id)
    assert await classify(record, item_id) == {item_id: (before.version, ())}
    assert await record.assignments.record([late]) == {}
    assert await record.assignments.of(item_id) == ()


async def test_of_concurrent_classifications_of_one_item_one_counts(record: Record) -> None:
    items = await with_items(record, 6)
    words = [[await classified(record, id_, sure(skill)) for id_ in items] for skill in ("mail", "maps", "news")]
    answers = await asyncio.gather(*(record.assignments.record(word) for word in (*words, words[0][::-1])))
    taken = [id_ for answer in answers for id_ in answer]
    assert sorted(taken) == items
    for answer in answers:
        for id_, (version, result) in answer.items():
            assert ((await item(record, id_)).version, await record.assignments.of(id_)) == (version, result)


async def test_a_classification_of_a_removed_item_is_dropped(record: Record) -> None:
    first, second = await with_items(record, 2)
    words = [await classified(record, id_, sure("mail")) for id_ in (first, second)]
    await record.catalog.remove("file", ["server__tool_0"])
    assert (await record.assignments.record(words)).keys() == {second}


async def test_skills_that_are_unknown_or_inactive_by_now_are_dropped(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    word = await classified(record, item_id, sure("maps"), sure("nonsense\0", 0.8), sure("mail", 0.7))
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    ((_, result),) = (await record.assignments.record([word])).values()
    assert result == (sure("mail", 0.7),)


async def test_only_the_surest_three_are_kept_and_none_that_is_unsure(record: Record) -> None:
    first, second = await with_items(record, 2)
    message = [sure("files", 0.51), sure("mail", 0.52), sure("maps", 0.53), sure("news", 0.54)]
    ((_, result),) = (await classify(record, first, *message)).values()
    assert [a.skill_id for a in result] == ["news", "maps", "mail"]
    ((_, result),) = (await classify(record, second, sure("files", 0.49))).values()
    assert result == ()


async def test_a_reason_that_no_database_holds_is_made_visible(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail", reason="nul \0 and \ud83d" + "x" * 500))
    ((result),) = await record.assignments.of(item_id)
    assert result.reason.startswith("nul \ufffd and \ufffdxxx")
    assert len(result.reason) == 300


@pytest.mark.requirement("SK-008")
async def test_a_manual_assignment_is_kept_with_its_first_skill_primary(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    before = await item(record, item_id)
    answer = await record.assignments.set_by_hand(item_id, ["news", "maps", "files", "news"], "ann")
    assert answer == tuple(sure(skill, 1.0, AssignedBy.HUMAN, "set by ann") for skill in ("news", "files", "maps"))
    after = await item(record, item_id)
    assert (after.assignments, after.needs_skills) == (answer, False)
    assert after.primary_skill_id == "news"
    assert after.version > before.version
    assert await dirty_versions(record) == {item_id: after.version}
    assert [member.is_primary for member in await record.taxonomy.members("news", 0, 10)] == [True]
    assert await actions(record) == [("ann", "item.assign", str(item_id))]


@pytest.mark.requirement("SK-008")
async def test_no_classifier_changes_a_manual_assignment(record: Record) -> None:
    first, second = await with_items(record, 2)
    late = [await classified(record, id_, sure("mail"), asks_for="Post") for id_ in (first, second)]
    words = {
        first: await record.assignments.set_by_hand(first, ["maps"], "ann"),
        second: await record.assignments.set_by_hand(second, [], "ann"),
    }
    again = [await classified(record, id_, sure("mail"), asks_for="Post") for id_ in (first, second)]
    assert await record.assignments.record(late) == {}
    assert await record.assignments.record(again) == {}
    assert await record.assignments.reclassify(0, 10) == []
    await record.catalog.store("file", [tool("tool_0", "changed"), tool("tool_1", "changed")])
    for id_, word in words.items():
        assert not (await item(record, id_)).needs_skills
        assert await classify(record, id_, sure("mail")) == {}
        assert await record.assignments.of(id_) == word
    assert await record.suggestions.page(0, 10, None) == []


@pytest.mark.requirement("SK-008")
async def test_an_equal_manual_assignment_changes_neither_version_nor_index(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    await record.assignments.set_by_hand(item_id, ["maps", "mail"], "ann")
    await settle(record)
    before = await item(record, item_id)
    await record.assignments.set_by_hand(item_id, ["maps", "mail"], "bob")
    assert await item(record, item_id) == before
    assert await dirty_versions(record) == {}
    await record.assignments.set_by_hand(item_id, ["mail", "maps"], "bob")
    assert (await dirty_versions(record)).keys() == {item_id}
    assert (await item(record, item_id)).primary_skill_id == "mail"
    assert [actor for actor, *_ in await actions(record)] == ["bob", "bob", "ann"]


@pytest.mark.requirement("SK-008")
async def test_an_invalid_manual_assignment_is_refused_and_changes_nothing(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    with pytest.raises(InvalidRequest, match=r"'maps', 'nonsense', '\\ud83d'"):
        await record.assignments.set_by_hand(item_id, ["mail", "maps", "nonsense", "\ud83d"], "ann")
    await with_skills(record, *(f"skill_{number}" for number in range(11)))
    with pytest.raises(InvalidRequest, match="at most 10"):
        await record.assignments.set_by_hand(item_id, [f"skill_{number}" for number in range(11)], "ann")
    assert (await item(record, item_id)).needs_skills
    assert await record.assignments.of(item_id) == ()
    assert await dirty_versions(record) == {}
    assert (
        len(await record.assignments.set_by_hand(item_id, [f"skill_{number}" for number in range(10)], "ann"))
        == 10
    )


async def test_an_item_that_does_not_exist_is_not_found(record: Record) -> None:
    asks = (
        record.assignments.of(UNKNOWN),
        record.assignments.set_by_hand(UNKNOWN, ["mail"], "ann"),
        record.assignments.release(UNKNOWN, "ann"),
    )
    for ask in asks:
        with pytest.raises(NotFound, match=str(UNKNOWN)):
            await ask
    assert await actions(record) == []


@pytest.mark.requirement("SK-008")
async def test_a_released_item_keeps_its_skills_until_it_is_classified(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    word = await record.assignments.set_by_hand(item_id, ["maps"], "ann")
    await settle(record)
    before = await item(record, item_id)
    await record.assignments.release(item_id, "bob")
    after = await item(record, item_id)
    assert (after.assignments, after.needs_skills) == (word, True)
    assert await dirty_versions(record) == {item_id: after.version}
    assert after.version > before.version
    await classify(record, item_id, sure("mail"))
    assert await record.assignments.of(item_id) == (sure("mail"),)
    assert (await actions(record))[0] == ("bob", "item.release", str(item_id))


async def test_releasing_an_item_without_a_manual_assignment_changes_nothing(record: Record) -> None:
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail"))
    await settle(record)
    before = await item(record, item_id)
    await record.assignments.release(item_id, "ann")
    assert await item(record, item_id) == before
    assert (await dirty_versions(record), await actions(record)) == ({}, [])


@pytest.mark.requirement("SK-009")
async def test_an_item_that_comes_back_has_the_skills_that_a_person_decided_and_no_others(record: Record) -> None:
    by_hand, classified_before = await with_items(record, 2)
    await record.assignments.set_by_hand(by_hand, ["mail"], "ann")
    await classify(record, classified_before, sure("mail"))
    items = [stored.item for stored in await record.catalog.items([by_hand, classified_before])]
    await record.catalog.keep_only("file", [])
    assert await record.taxonomy.members("mail", 0, 10) == []
    await record.catalog.store("file", items)
    assert [member.item_id for member in await record.taxonomy.members("mail", 0, 10)] == [by_hand]
    assert [(await item(record, id_)).needs_skills for id_ in (by_hand, classified_before)] == [False, True]
