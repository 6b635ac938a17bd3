"""Contract of Suggestions about decisions: a decision is made once, and becomes a rule."""

import asyncio

import pytest

from tests.contracts.builders import (
    FIRST,
    Record,
    asked,
    asking,
    classify,
    dirty_versions,
    item,
    settle,
    sure,
    tool,
    with_items,
    with_skills,
)
from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.items import AssignedBy
from toolscript.core.taxonomy import Actor, Skill, Suggestion, SuggestionState

pytestmark = pytest.mark.requirement("SK-006")

POST = Skill("post", "Post", "Letters.")


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "mail", "maps", "news")
    return record


async def test_an_approved_suggestion_is_a_skill_and_its_items_are_classified_again(record: Record) -> None:
    suggestion, items = await asked(record, 3)
    await record.assignments.set_by_hand(items[2], ["mail"], "ann")
    await settle(record)
    revision = await record.taxonomy.revision()
    decided = await record.suggestions.approve(suggestion.id, POST, "bob")
    assert (decided.state, decided.skill_id, decided.reviewed_by) == (SuggestionState.APPROVED, "post", "bob")
    assert decided.reviewed_at is not None
    assert decided.reviewed_at >= suggestion.created_at
    assert await record.suggestions.find(suggestion.id) == decided
    assert (await record.taxonomy.find("post")).skill == POST
    assert await record.taxonomy.revision() > revision
    versions = {id_: (await item(record, id_)).version for id_ in items[:2]}
    assert await dirty_versions(record) == versions
    assert [(await item(record, id_)).needs_skills for id_ in items] == [True, True, False]
    assert await asking(record, decided) == items[:2]
    assert "post" in {state.skill.id for state in await record.skill_vectors.behind(FIRST, 10)}


async def test_a_decision_keeps_for_whom_its_actor_decided(record: Record) -> None:
    suggestion, _ = await asked(record)
    decided = await record.suggestions.reject(suggestion.id, Actor("svc", " ann\x00 "))
    assert (decided.reviewed_by, decided.on_behalf_of) == ("svc", "ann\ufffd")
    assert await record.suggestions.find(suggestion.id) == decided
    ((_, entry),) = await record.taxonomy.audit(None, 1)
    assert (entry.actor, entry.on_behalf_of, entry.action) == ("svc", "ann\ufffd", "suggestion.reject")


async def test_the_items_of_a_merged_suggestion_are_classified_again(record: Record) -> None:
    suggestion, (first, second) = await asked(record)
    revision = await record.taxonomy.revision()
    decided = await record.suggestions.merge(suggestion.id, "mail", "bob")
    assert (decided.state, decided.skill_id, decided.reviewed_by) == (SuggestionState.MERGED, "mail", "bob")
    assert await record.taxonomy.revision() == revision
    assert (await dirty_versions(record)).keys() == {first, second}
    assert (await item(record, first)).needs_skills


async def test_a_rejected_suggestion_changes_no_item_and_is_dropped_later(record: Record) -> None:
    suggestion, (first, second) = await asked(record)
    decided = await record.suggestions.reject(suggestion.id, "bob")
    assert (decided.state, decided.skill_id) == (SuggestionState.REJECTED, None)
    assert await dirty_versions(record) == {}
    await record.catalog.store("file", [tool("late")])
    late = (await record.catalog.scan(second, 10))[0].id
    ((_, result),) = (await classify(record, late, sure("maps"), asks_for="post office")).values()
    assert result == (sure("maps"),)
    assert await record.suggestions.page(0, 10) == []
    assert await asking(record, decided) == [first, second]


@pytest.mark.parametrize("is_new", [True, False], ids=["approved", "merged"])
async def test_an_item_with_a_decided_suggestion_gets_the_skill_of_the_decision(
    record: Record, is_new: bool
) -> None:
    suggestion, (first, second) = await asked(record)
    if is_new:
        await record.suggestions.approve(suggestion.id, POST, "ann")
    else:
        await record.suggestions.merge(suggestion.id, "news", "ann")
    value = "post" if is_new else "news"
    await record.catalog.store("file", [tool("late"), tool("later")])
    late, later = [seen.id for seen in await record.catalog.scan(second, 10)]
    await settle(record)
    reason = "asked for 'Post office', reviewed"
    ((version, alone),) = (await classify(record, late, asks_for="Post office")).values()
    assert alone == (sure(value, 0.5, AssignedBy.LLM, reason),)
    assert await dirty_versions(record) == {late: version}
    own = sure("mail", 0.8, AssignedBy.RULES)
    ((_, beside),) = (await classify(record, later, own, asks_for="Post office")).values()
    assert beside == (own, sure(value, 0.5, AssignedBy.RULES, reason))
    await classify(record, first)
    assert await record.suggestions.page(0, 10) == []
    assert await asking(record, suggestion) == [first, second], "what the decision rests on stays"


async def test_a_rule_adds_no_skill_that_the_item_has_nor_a_fourth(record: Record) -> None:
    suggestion, (first, second) = await asked(record)
    await record.suggestions.merge(suggestion.id, "news", "ann")
    ((_, result),) = (await classify(record, first, sure("news", 0.7), asks_for="Post office")).values()
    assert result == (sure("news", 0.7),)
    await with_skills(record, "tours")
    three = sure("maps"), sure("mail", 0.8), sure("tours", 0.5)
    ((_, result),) = (await classify(record, second, *three, asks_for="Post office")).values()
    assert result == three


async def test_a_rule_whose_skill_is_inactive_gives_nothing_until_it_is_active_again(record: Record) -> None:
    suggestion, (first, second) = await asked(record)
    await record.suggestions.approve(suggestion.id, POST, "ann")
    await record.taxonomy.change(Skill("post", "Post", "Letters.", is_active=False), "ann")
    ((_, result),) = (await classify(record, first, asks_for="Post office")).values()
    assert result == ()
    await record.taxonomy.change(POST, "ann")
    ((_, result),) = (await classify(record, second, asks_for="Post office")).values()
    assert [first.skill_id for first in result] == ["post"]


async def test_a_decision_is_final(record: Record) -> None:
    suggestion, _ = await asked(record)
    decided = await record.suggestions.merge(suggestion.id, "mail", "ann")
    for again in (
        record.suggestions.approve(suggestion.id, POST, "bob"),
        record.suggestions.reject(suggestion.id, "bob"),
        record.suggestions.merge(suggestion.id, "maps", "bob"),
    ):
        with pytest.raises(Conflict, match="merged by ann"):
            await again
    assert await record.suggestions.find(suggestion.id) == decided
    with pytest.raises(NotFound):
        await record.taxonomy.find("post")


async def test_of_concurrent_decisions_one_counts(record: Record) -> None:
    suggestion, _ = await asked(record)
    decisions = (
        *(
            record.suggestions.approve(suggestion.id, Skill(f"post_{n}", "Post"), f"approver {n}")
            for n in range(3)
        ),
        *(record.suggestions.merge(suggestion.id, "mail", f"merger {n}") for n in range(3)),
        record.suggestions.reject(suggestion.id, "rejecter"),
    )
    answers = await asyncio.gather(*decisions, return_exceptions=True)
    heard = [each for each in answers if isinstance(each, Suggestion)]
    assert sum(isinstance(each, Conflict) for each in answers) == len(answers) - 1
    assert heard == [await record.suggestions.find(suggestion.id)]
    made = [each.skill.id for each in await record.taxonomy.page("post", 10)]
    assert made == ([heard[0].skill_id] if heard[0].state is SuggestionState.APPROVED else [])


async def test_approving_under_an_id_that_is_taken_is_a_conflict_and_decides_nothing(record: Record) -> None:
    suggestion, _ = await asked(record)
    with pytest.raises(Conflict, match="'mail'"):
        await record.suggestions.approve(suggestion.id, Skill("mail", "Post"), "ann")
    assert await record.suggestions.find(suggestion.id) == suggestion
    assert await dirty_versions(record) == {}


async def test_merging_into_a_missing_or_inactive_skill_is_refused_and_decides_nothing(record: Record) -> None:
    suggestion, _ = await asked(record)
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    with pytest.raises(InvalidRequest, match="'maps' is not active"):
        await record.suggestions.merge(suggestion.id, "maps", "ann")
    for unknown in ("nonsense", "\ud83d\0"):
        with pytest.raises(NotFound):
            await record.suggestions.merge(suggestion.id, unknown, "ann")
    assert await record.suggestions.find(suggestion.id) == suggestion
    assert await dirty_versions(record) == {}


async def test_decisions_are_audited(record: Record) -> None:
    for id_, name in zip(await with_items(record, 3), ("Post", "Harbour", "Ship"), strict=True):
        await classify(record, id_, asks_for=name)
    post, harbour, ship = await record.suggestions.page(0, 10)
    before = (await record.taxonomy.audit(None, 1))[0][0]
    await record.suggestions.approve(post.id, POST, "ann")
    await record.suggestions.merge(harbour.id, "maps", "bob")
    await record.suggestions.reject(ship.id, "cid")
    entries = [entry for number, entry in await record.taxonomy.audit(None, 10) if number > before]
    assert [(entry.actor, entry.action, entry.subject) for entry in entries] == [
        ("cid", "suggestion.reject", str(ship.id)),
        ("bob", "suggestion.merge", str(harbour.id)),
        ("ann", "suggestion.approve", str(post.id)),
    ]
    assert entries[1].details == {"name": "Harbour", "asked_by": 1, "skill_id": "maps"}
