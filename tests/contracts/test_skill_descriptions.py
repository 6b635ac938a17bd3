"""Contract of Taxonomy: descriptions made from the items of a skill, beside what people wrote."""

import pytest

from tests.contracts.builders import FIRST, Record, axis, classify, settle, sure, tools, with_items, with_skills
from toolscript.core.items import AssignedBy
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.taxonomy import EnhancedDescription, Skill
from toolscript.tools.model.centroids import Counted

pytestmark = pytest.mark.requirement("SK-011")


async def counted(record: Record, skill_id: str, count: int) -> list[int]:
    """Store items of a skill, and count them in the live index."""
    await record.catalog.store(skill_id, tools(count, f"of {skill_id}"))
    claim = await record.dirty.claim(FIRST, 1_000, 60)
    ids = sorted(claim.versions)
    await record.skill_vectors.count(
        FIRST, claim, [Counted(id_, "text", axis(0), {skill_id: 9_000}) for id_ in ids]
    )
    await record.dirty.clear(FIRST, claim)
    for id_ in ids:
        await classify(record, id_, sure(skill_id))
    await settle(record)
    return ids


async def undescribed(record: Record, after: str = "", limit: int = 10) -> list[str]:
    entries = await record.taxonomy.undescribed(DEFAULT_NAMESPACE, after, limit)
    return [entry.skill.id for entry in entries]


async def describe(record: Record, text: str) -> None:
    entries = await record.taxonomy.undescribed(DEFAULT_NAMESPACE, "", 10)
    await record.taxonomy.describe(
        [EnhancedDescription(entry, DEFAULT_NAMESPACE, text, AssignedBy.RULES) for entry in entries]
    )


async def test_a_description_from_items_is_beside_what_people_wrote(record: Record) -> None:
    skill = Skill("mail", "Mail", "Written by a person.")
    await record.taxonomy.add(skill, "ann")
    await counted(record, "mail", 2)
    revision, audit = await record.taxonomy.revision(), await record.taxonomy.audit(None, 10)
    before = await record.taxonomy.find("mail")
    await describe(record, "Tools about mails.")
    after = await record.taxonomy.find("mail")
    assert (after.skill, after.enhanced_description) == (skill, "Tools about mails.")
    assert (before.enhanced_description, before.updated_at) == ("", after.updated_at)
    assert (await record.taxonomy.page("", 10))[0].enhanced_description == "Tools about mails."
    assert (revision, audit) == (await record.taxonomy.revision(), await record.taxonomy.audit(None, 10))


async def test_only_active_skills_with_items_are_to_be_described_a_page_at_a_time(record: Record) -> None:
    await with_skills(record, "empty", "mail", "maps", "old")
    first, second, third = await with_items(record, 3)
    for id_, skill_id in ((first, "mail"), (second, "maps"), (third, "old")):
        await classify(record, id_, sure(skill_id))
    claim = await record.dirty.claim(FIRST, 10, 60)
    places = {first: "mail", second: "maps", third: "old"}
    await record.skill_vectors.count(
        FIRST, claim, [Counted(id_, "text", axis(0), {skill_id: 9_000}) for id_, skill_id in places.items()]
    )
    await record.taxonomy.change(Skill("old", "Old", is_active=False), "ann")
    assert await undescribed(record) == ["mail", "maps"]
    assert await undescribed(record, limit=1) == ["mail"]
    assert await undescribed(record, after="mail") == ["maps"]
    await describe(record, "")
    assert await undescribed(record) == []


async def test_a_changed_skill_and_one_with_many_new_items_are_described_again(record: Record) -> None:
    await with_skills(record, "mail")
    await counted(record, "mail", 10)
    await describe(record, "First.")
    await counted(record, "mail", 11)
    assert await undescribed(record) == []
    await counted(record, "mail", 12)
    assert await undescribed(record) == ["mail"]
    await describe(record, "Second.")
    assert (await record.taxonomy.find("mail")).enhanced_description == "Second."
    await record.taxonomy.change(Skill("mail", "Mail", "By a person."), "ann")
    assert await undescribed(record) == ["mail"]
    assert (await record.taxonomy.find("mail")).enhanced_description == "Second."


async def test_the_last_member_of_a_skill_is_the_one_with_the_largest_id(record: Record) -> None:
    await with_skills(record, "mail")
    assert await record.taxonomy.last_member("mail") == 0
    ids = await with_items(record, 3)
    for id_ in ids[:2]:
        await classify(record, id_, sure("mail"))
    assert await record.taxonomy.last_member("mail") == ids[1]
