"""What every Assignments promises: a classifier's word holds for the item it saw, a person's word always."""

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
    """What people did with items, latest first."""
    entries = [entry for _, entry in await record.taxonomy.audit(None, 100)]
    return [(entry.actor, entry.action, entry.subject) for entry in entries if entry.action.startswith("item.")]


async def test_a_new_item_has_no_skills_and_needs_them(record: Record) -> None:
    (one,) = await with_items(record, 1)
    assert await record.assignments.of(one) == ()
    assert (await item(record, one)).needs_skills


async def test_what_a_classifier_said_is_taken_best_first_and_the_item_follows(record: Record) -> None:
    (one,) = await with_items(record, 1)
    before = await item(record, one)
    mail, maps = sure("mail", 0.6, AssignedBy.RULES, "its words"), sure("maps", 0.8)
    answer = await classify(record, one, mail, maps)
    after = await item(record, one)
    assert answer == {one: (after.version, (maps, mail))}
    assert after.version > before.version
    assert (after.assignments, after.needs_skills) == ((maps, mail), False)
    assert await record.assignments.of(one) == (maps, mail)
    assert await dirty_versions(record) == {one: after.version}


async def test_a_batch_is_taken_at_once_each_item_with_its_own(record: Record) -> None:
    one, two, three = await with_items(record, 3)
    batch = [
        await classified(record, one, sure("mail")),
        await classified(record, two),
        await classified(record, three, sure("maps"), sure("news", 0.7)),
    ]
    answer = await record.assignments.record(batch)
    assert {id_: [a.skill_id for a in found] for id_, (_, found) in answer.items()} == {
        one: ["mail"],
        two: [],
        three: ["maps", "news"],
    }
    assert (await dirty_versions(record)).keys() == {one, three}
    assert await record.assignments.record([]) == {}


async def test_the_same_word_again_leaves_version_and_index_alone(record: Record) -> None:
    (one,) = await with_items(record, 1)
    await classify(record, one, sure("mail", reason="first"), sure("maps", 0.7))
    await record.assignments.reclassify(0, 10)
    await settle(record)
    before = await item(record, one)
    answer = await classify(record, one, sure("maps", 0.7), sure("mail", reason="in other words"))
    assert answer == {one: (before.version, before.assignments)}
    assert await item(record, one) == replace(before, needs_skills=False)
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
async def test_another_word_replaces_the_first(record: Record, second: tuple[Assignment, ...]) -> None:
    (one,) = await with_items(record, 1)
    await classify(record, one, sure("mail"))
    await record.assignments.reclassify(0, 10)
    await settle(record)
    before = await item(record, one)
    answer = await classify(record, one, *second)
    after = await item(record, one)
    assert answer == {one: (after.version, second)}
    assert after.version > before.version
    assert await dirty_versions(record) == {one: after.version}


async def test_a_word_about_an_item_that_changed_since_is_not_taken(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    (seen,) = await record.catalog.scan(0, 10)
    late = await classified(record, seen.id, sure("mail"))
    await record.catalog.store("file", [tool("read", "changed")])
    assert await record.assignments.record([late]) == {}
    assert await record.assignments.of(seen.id) == ()
    assert (await item(record, seen.id)).needs_skills


async def test_a_changed_item_keeps_its_skills_until_a_classifier_has_looked_at_it(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    (seen,) = await record.catalog.scan(0, 10)
    await classify(record, seen.id, sure("mail"))
    await record.catalog.store("file", [tool("read", "changed")])
    changed = await item(record, seen.id)
    assert (changed.assignments, changed.needs_skills) == ((sure("mail"),), True)


async def test_of_two_words_about_one_item_the_first_is_taken(record: Record) -> None:
    (one,) = await with_items(record, 1)
    words = [await classified(record, one, sure("mail")), await classified(record, one, sure("maps"))]
    await record.assignments.record(words)
    assert await record.assignments.record(words) == {}
    assert await record.assignments.of(one) == (sure("mail"),)


async def test_an_item_that_was_looked_at_hears_no_second_word(record: Record) -> None:
    (one,) = await with_items(record, 1)
    late = await classified(record, one, sure("mail"))
    before = await item(record, one)
    assert await classify(record, one) == {one: (before.version, ())}
    assert await record.assignments.record([late]) == {}
    assert await record.assignments.of(one) == ()


async def test_of_many_who_classify_the_same_items_at_once_one_is_heard(record: Record) -> None:
    items = await with_items(record, 6)
    words = [[await classified(record, id_, sure(skill)) for id_ in items] for skill in ("mail", "maps", "news")]
    answers = await asyncio.gather(*(record.assignments.record(word) for word in (*words, words[0][::-1])))
    taken = [id_ for answer in answers for id_ in answer]
    assert sorted(taken) == items
    for answer in answers:
        for id_, (version, found) in answer.items():
            assert ((await item(record, id_)).version, await record.assignments.of(id_)) == (version, found)


async def test_a_word_about_an_item_that_is_gone_is_not_taken(record: Record) -> None:
    one, two = await with_items(record, 2)
    words = [await classified(record, id_, sure("mail")) for id_ in (one, two)]
    await record.catalog.remove("file", ["server__tool_0"])
    assert (await record.assignments.record(words)).keys() == {two}


async def test_skills_that_are_unknown_or_inactive_by_now_are_dropped(record: Record) -> None:
    (one,) = await with_items(record, 1)
    word = await classified(record, one, sure("maps"), sure("nonsense\0", 0.8), sure("mail", 0.7))
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    ((_, found),) = (await record.assignments.record([word])).values()
    assert found == (sure("mail", 0.7),)


async def test_only_the_surest_three_are_kept_and_none_that_is_unsure(record: Record) -> None:
    one, two = await with_items(record, 2)
    said = [sure("files", 0.51), sure("mail", 0.52), sure("maps", 0.53), sure("news", 0.54)]
    ((_, found),) = (await classify(record, one, *said)).values()
    assert [a.skill_id for a in found] == ["news", "maps", "mail"]
    ((_, found),) = (await classify(record, two, sure("files", 0.49))).values()
    assert found == ()


async def test_a_reason_that_no_database_holds_is_made_visible(record: Record) -> None:
    (one,) = await with_items(record, 1)
    await classify(record, one, sure("mail", reason="nul \0 and \ud83d" + "x" * 500))
    ((found),) = await record.assignments.of(one)
    assert found.reason.startswith("nul \ufffd and \ufffdxxx")
    assert len(found.reason) == 300


@pytest.mark.requirement("SK-008")
async def test_a_person_s_word_is_kept_the_first_skill_primary(record: Record) -> None:
    (one,) = await with_items(record, 1)
    before = await item(record, one)
    answer = await record.assignments.set_by_hand(one, ["news", "maps", "files", "news"], "ann")
    assert answer == tuple(sure(skill, 1.0, AssignedBy.HUMAN, "set by ann") for skill in ("news", "files", "maps"))
    after = await item(record, one)
    assert (after.assignments, after.needs_skills) == (answer, False)
    assert after.primary_skill_id == "news"
    assert after.version > before.version
    assert await dirty_versions(record) == {one: after.version}
    assert [member.is_primary for member in await record.taxonomy.members("news", 0, 10)] == [True]
    assert await actions(record) == [("ann", "item.assign", str(one))]


@pytest.mark.requirement("SK-008")
async def test_no_classifier_changes_a_person_s_word(record: Record) -> None:
    one, two = await with_items(record, 2)
    late = [await classified(record, id_, sure("mail"), asks_for="Post") for id_ in (one, two)]
    words = {
        one: await record.assignments.set_by_hand(one, ["maps"], "ann"),
        two: await record.assignments.set_by_hand(two, [], "ann"),
    }
    again = [await classified(record, id_, sure("mail"), asks_for="Post") for id_ in (one, two)]
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
async def test_a_person_who_says_what_is_so_leaves_version_and_index_alone(record: Record) -> None:
    (one,) = await with_items(record, 1)
    await record.assignments.set_by_hand(one, ["maps", "mail"], "ann")
    await settle(record)
    before = await item(record, one)
    await record.assignments.set_by_hand(one, ["maps", "mail"], "bob")
    assert await item(record, one) == before
    assert await dirty_versions(record) == {}
    await record.assignments.set_by_hand(one, ["mail", "maps"], "bob")
    assert (await dirty_versions(record)).keys() == {one}
    assert (await item(record, one)).primary_skill_id == "mail"
    assert [actor for actor, *_ in await actions(record)] == ["bob", "bob", "ann"]


@pytest.mark.requirement("SK-008")
async def test_what_a_person_cannot_mean_is_refused_by_name_and_changes_nothing(record: Record) -> None:
    (one,) = await with_items(record, 1)
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    with pytest.raises(InvalidRequest, match=r"'maps', 'nonsense', '\\ud83d'"):
        await record.assignments.set_by_hand(one, ["mail", "maps", "nonsense", "\ud83d"], "ann")
    await with_skills(record, *(f"skill_{number}" for number in range(11)))
    with pytest.raises(InvalidRequest, match="at most 10"):
        await record.assignments.set_by_hand(one, [f"skill_{number}" for number in range(11)], "ann")
    assert (await item(record, one)).needs_skills
    assert await record.assignments.of(one) == ()
    assert await dirty_versions(record) == {}
    assert len(await record.assignments.set_by_hand(one, [f"skill_{number}" for number in range(10)], "ann")) == 10


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
async def test_a_released_item_keeps_its_skills_until_a_classifier_has_looked_at_it(record: Record) -> None:
    (one,) = await with_items(record, 1)
    word = await record.assignments.set_by_hand(one, ["maps"], "ann")
    await settle(record)
    before = await item(record, one)
    await record.assignments.release(one, "bob")
    after = await item(record, one)
    assert (after.assignments, after.needs_skills) == (word, True)
    assert await dirty_versions(record) == {one: after.version}
    assert after.version > before.version
    await classify(record, one, sure("mail"))
    assert await record.assignments.of(one) == (sure("mail"),)
    assert (await actions(record))[0] == ("bob", "item.release", str(one))


async def test_releasing_what_no_person_holds_changes_nothing(record: Record) -> None:
    (one,) = await with_items(record, 1)
    await classify(record, one, sure("mail"))
    await settle(record)
    before = await item(record, one)
    await record.assignments.release(one, "ann")
    assert await item(record, one) == before
    assert (await dirty_versions(record), await actions(record)) == ({}, [])
