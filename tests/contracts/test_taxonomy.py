"""Contract of Taxonomy: managed skills, their number of items, and the audit log."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.contracts.builders import FIRST, Record, axis, classify, item, sure, with_items, with_skills
from tests.contracts.paging import stays_whole
from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.items import AssignedBy, ItemKind
from toolscript.core.taxonomy import AuditEntry, Member, Skill
from toolscript.tools.model.centroids import Counted

pytestmark = pytest.mark.requirement("SK-001")

MAIL = Skill("mail", "Mail", "Sending and reading.", "office", ("mail", "inbox"), ("send_mail",))


async def ids(record: Record, after: str, limit: int, *, active_only: bool = False) -> list[str]:
    page = await record.taxonomy.page(after, limit, active_only=active_only)
    return [entry.skill.id for entry in page]


async def audited(record: Record) -> Sequence[AuditEntry]:
    """Return the audit log, latest first."""
    return [entry for _, entry in await record.taxonomy.audit(None, 100)]


async def test_at_first_there_are_no_skills_at_revision_zero(record: Record) -> None:
    assert await record.taxonomy.page("", 10) == []
    assert await record.taxonomy.revision() == 0
    assert await record.taxonomy.audit(None, 10) == []


async def test_a_skill_comes_back_as_it_went_in_and_has_no_tools_yet(record: Record) -> None:
    added = await record.taxonomy.add(MAIL, "ann")
    assert (added.skill, added.tool_count) == (MAIL, 0)
    assert added.created_at == added.updated_at
    assert await record.taxonomy.find("mail") == added
    assert list(await record.taxonomy.page("", 10)) == [added]


async def test_an_id_that_is_taken_is_a_conflict_and_changes_nothing(record: Record) -> None:
    before = await record.taxonomy.add(MAIL, "ann")
    revision = await record.taxonomy.revision()
    with pytest.raises(Conflict, match="mail"):
        await record.taxonomy.add(Skill("mail", "Other"), "bob")
    assert await record.taxonomy.find("mail") == before
    assert await record.taxonomy.revision() == revision
    assert len(await audited(record)) == 1


async def test_of_many_who_add_the_same_id_at_once_one_succeeds(record: Record) -> None:
    tries = (record.taxonomy.add(Skill("mail", f"Mail {number}"), "ann") for number in range(6))
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(answer, Conflict) for answer in answers) == 5
    assert len(await audited(record)) == 1


@pytest.mark.parametrize("skill_id", ["", "Mail", "1mail", "mail box", "mäil", "m" * 65, "mail\n", "mail\0"])
async def test_an_id_that_no_address_can_carry_is_refused(record: Record, skill_id: str) -> None:
    with pytest.raises(InvalidRequest, match="id of a skill"):
        await record.taxonomy.add(Skill(skill_id, "Mail"), "ann")


@pytest.mark.parametrize("skill_id", ["mail", "", "mail\0", "\ud83d"], ids=ascii)
async def test_an_unknown_skill_is_not_found_and_the_hint_lists_those_there_are(
    record: Record, skill_id: str
) -> None:
    asks = (record.taxonomy.find(skill_id), record.taxonomy.members(skill_id, 0, 10))
    for ask in asks:
        with pytest.raises(NotFound) as refused:
            await ask
        assert "toolscript skills list" in refused.value.hint
    with pytest.raises(NotFound):
        await record.taxonomy.change(Skill("other", "Other"), "ann")


async def test_text_that_no_database_holds_is_made_visible(record: Record) -> None:
    added = await record.taxonomy.add(Skill("mail", "nul \0", "lone \ud83d", keywords=("a\0b",)), "ann")
    assert (added.skill.name, added.skill.description) == ("nul \ufffd", "lone \ufffd")
    assert added.skill.keywords == ("a\ufffdb",)


async def test_a_changed_skill_is_what_it_was_changed_to(record: Record) -> None:
    added = await record.taxonomy.add(MAIL, "ann")
    other = Skill("mail", "Post", "Letters.", None, ("post",), (), is_active=False)
    changed = await record.taxonomy.change(other, "bob")
    assert changed.skill == other
    assert changed.created_at == added.created_at
    assert changed.updated_at > added.updated_at
    assert await record.taxonomy.find("mail") == changed


async def test_every_change_of_any_skill_gives_a_greater_revision(record: Record) -> None:
    seen = [await record.taxonomy.revision()]
    for skill in (MAIL, Skill("maps", "Maps")):
        await record.taxonomy.add(skill, "ann")
        seen.append(await record.taxonomy.revision())
    for change in (replace(MAIL, name="Post"), replace(MAIL, is_active=False), MAIL):
        await record.taxonomy.change(change, "ann")
        seen.append(await record.taxonomy.revision())
    assert seen == sorted(set(seen))


async def test_changing_a_skill_to_what_it_is_changes_nothing(record: Record) -> None:
    added = await record.taxonomy.add(MAIL, "ann")
    revision = await record.taxonomy.revision()
    assert await record.taxonomy.change(MAIL, "bob") == added
    assert await record.taxonomy.revision() == revision
    assert [entry.actor for entry in await audited(record)] == ["ann"]


async def test_skills_come_page_by_page_in_order_of_id(record: Record) -> None:
    await with_skills(record, "b", "ab", "a_b", "a1", "c")
    first = await ids(record, "", 2)
    second = await ids(record, first[-1], 2)
    assert (first, second, await ids(record, second[-1], 2)) == (["a1", "a_b"], ["ab", "b"], ["c"])
    assert await ids(record, "c", 2) == []


async def test_inactive_skills_can_be_left_out_of_pages_that_stay_full(record: Record) -> None:
    await with_skills(record, "a", "b", "c", "d")
    for skill_id in ("a", "c"):
        await record.taxonomy.change(Skill(skill_id, skill_id.title(), is_active=False), "ann")
    assert await ids(record, "", 2, active_only=True) == ["b", "d"]
    assert await ids(record, "", 10) == ["a", "b", "c", "d"]


async def test_members_come_page_by_page_in_order_of_id_with_why_they_are_in(record: Record) -> None:
    await with_skills(record, "mail", "maps")
    first, second, third, other = await with_items(record, 4)
    for id_ in (third, first, second):
        await classify(record, id_, sure("mail", 0.7, AssignedBy.RULES), sure("maps", 0.9))
    await classify(record, other, sure("maps"))
    page = await record.taxonomy.members("mail", 0, 2)
    assert [member.item_id for member in page] == [first, second]
    assert [member.item_id for member in await record.taxonomy.members("mail", second, 2)] == [third]
    expected = sure("mail", 0.7, AssignedBy.RULES)
    assert page[0] == Member(first, ItemKind.TOOL, "server", "tool_0", "", expected, is_primary=False)
    assert [member.is_primary for member in await record.taxonomy.members("maps", 0, 9)] == [True] * 4
    assert await record.taxonomy.members("mail", third, 2) == []


async def test_a_removed_item_is_a_member_of_no_skill(record: Record) -> None:
    await with_skills(record, "mail")
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail"))
    await record.catalog.keep_only("file", [])
    assert await record.taxonomy.members("mail", 0, 10) == []


@pytest.mark.requirement("SK-007")
async def test_the_number_of_tools_is_what_the_live_index_counted(record: Record) -> None:
    await with_skills(record, "mail", "maps")
    first, second = await with_items(record, 2)
    for id_ in (first, second):
        await classify(record, id_, sure("mail"))
    assert (await record.taxonomy.find("mail")).tool_count == 0
    claim = await record.dirty.claim(FIRST, 10, 60)
    counted = [Counted(id_, "text", axis(0), {"mail": 9_000}) for id_ in (first, second)]
    await record.skill_vectors.count(FIRST, claim, counted)
    assert (await record.taxonomy.find("mail")).tool_count == 2
    assert [entry.tool_count for entry in await record.taxonomy.page("", 10)] == [2, 0]


@pytest.mark.requirement("SK-007")
async def test_a_changed_skill_has_to_be_written_to_the_index_again(record: Record) -> None:
    await with_skills(record, "mail", "maps")
    behind = await record.skill_vectors.behind(FIRST, 10)
    assert [state.skill.id for state in behind] == ["mail", "maps"]
    await record.skill_vectors.mark_indexed(FIRST, behind)
    await record.taxonomy.change(Skill("maps", "Maps and routes"), "ann")
    (state,) = await record.skill_vectors.behind(FIRST, 10)
    assert state.skill.name == "Maps and routes"


async def test_a_deactivated_skill_keeps_its_items(record: Record) -> None:
    await record.taxonomy.add(MAIL, "ann")
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, sure("mail"))
    before = await item(record, item_id)
    await record.taxonomy.change(replace(MAIL, is_active=False), "ann")
    assert await item(record, item_id) == before
    assert len(await record.taxonomy.members("mail", 0, 10)) == 1


async def test_the_audit_log_has_author_and_change_latest_first(record: Record) -> None:
    await record.taxonomy.add(MAIL, " ann ")
    await record.taxonomy.change(replace(MAIL, name="Post", keywords=()), "bob")
    await record.taxonomy.change(replace(MAIL, is_active=False), "cid")
    await record.taxonomy.change(MAIL, "dan")
    result = await audited(record)
    assert [(entry.actor, entry.action, entry.subject) for entry in result] == [
        ("dan", "skill.activate", "mail"),
        ("cid", "skill.deactivate", "mail"),
        ("bob", "skill.change", "mail"),
        ("ann", "skill.add", "mail"),
    ]
    assert result[2].details == {
        "before": {"name": "Mail", "keywords": ["mail", "inbox"]},
        "after": {"name": "Post", "keywords": []},
    }
    assert result[0].details == {"before": {"is_active": False}, "after": {"is_active": True}}
    assert [entry.at for entry in result] == sorted((entry.at for entry in result), reverse=True)


async def test_the_audit_comes_page_by_page(record: Record) -> None:
    await with_skills(record, "a", "b", "c")
    first = await record.taxonomy.audit(None, 2)
    second = await record.taxonomy.audit(first[-1][0], 2)
    assert [entry.subject for _, entry in (*first, *second)] == ["c", "b", "a"]
    assert await record.taxonomy.audit(second[-1][0], 2) == []


@pytest.mark.parametrize("by", ["", "  ", "x" * 201])
async def test_a_decision_without_an_author_is_refused(record: Record, by: str) -> None:
    await record.taxonomy.add(MAIL, "x" * 200)
    (item_id,) = await with_items(record, 1)
    await classify(record, item_id, asks_for="Post")
    (suggestion,) = await record.suggestions.page(0, 10)
    asks = (
        record.taxonomy.add(Skill("maps", "Maps"), by),
        record.taxonomy.change(replace(MAIL, name="Post"), by),
        record.assignments.set_by_hand(item_id, ["mail"], by),
        record.assignments.release(item_id, by),
        record.suggestions.approve(suggestion.id, Skill("post", "Post"), by),
        record.suggestions.reject(suggestion.id, by),
        record.suggestions.merge(suggestion.id, "mail", by),
    )
    for ask in asks:
        with pytest.raises(InvalidRequest, match="name of the reviewer"):
            await ask
    assert len(await audited(record)) == 1


async def test_a_change_instead_of_what_is_no_longer_there_is_refused(record: Record) -> None:
    await record.taxonomy.add(MAIL, "ann")
    await record.taxonomy.change(replace(MAIL, name="Post"), "bob", instead_of=MAIL)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await record.taxonomy.change(replace(MAIL, description="Letters."), "ann", instead_of=MAIL)
    assert (await record.taxonomy.find("mail")).skill == replace(MAIL, name="Post")


@pytest.mark.requirement("AP-001")
async def test_skills_that_are_deactivated_and_added_between_pages_hide_no_other(record: Record) -> None:
    await with_skills(record, *(f"skill_{number}" for number in range(8)))

    async def active(after: str, limit: int) -> list[str]:
        return await ids(record, after, limit, active_only=True)

    async def deactivate(skill_id: str) -> None:
        skill = (await record.taxonomy.find(skill_id)).skill
        await record.taxonomy.change(replace(skill, is_active=False), "ann")

    await stays_whole(
        active, "", vanish=deactivate, appear=lambda: with_skills(record, "another", "skill_2b", "zeta")
    )


@pytest.mark.requirement("AP-001")
async def test_skills_and_audit_entries_that_appear_between_pages_neither_repeat_nor_hide_others(
    record: Record,
) -> None:
    await with_skills(record, *(f"skill_{number}" for number in range(8)))

    async def all_ids(after: str, limit: int) -> list[str]:
        return await ids(record, after, limit)

    async def numbers(before: int | None, limit: int) -> list[int]:
        return [number for number, _ in await record.taxonomy.audit(before, limit)]

    await stays_whole(all_ids, "", vanish=None, appear=lambda: with_skills(record, "another", "skill_2b", "zeta"))
    await stays_whole(numbers, None, vanish=None, appear=lambda: with_skills(record, "later"))


@pytest.mark.requirement("AP-001")
async def test_tools_that_leave_and_enter_a_skill_between_pages_hide_no_other(record: Record) -> None:
    await with_skills(record, "mail", "maps")
    *members, outside = await with_items(record, 9)
    for item_id in members:
        await record.assignments.set_by_hand(item_id, ["mail"], "ann")

    async def member_ids(after: int, limit: int) -> list[int]:
        return [member.item_id for member in await record.taxonomy.members("mail", after, limit)]

    await stays_whole(
        member_ids,
        0,
        vanish=lambda item_id: record.assignments.set_by_hand(item_id, ["maps"], "ann"),
        appear=lambda: record.assignments.set_by_hand(outside, ["mail"], "ann"),
    )
