"""What every Suggestions promises: wishes gather until a person decides, and what is decided is a rule."""

import asyncio

import pytest

from tests.contracts.scenes import (
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
from toolscript.errors import Conflict, InvalidRequest, NotFound
from toolscript.model.assignments import AssignedBy
from toolscript.model.skills import Skill, SuggestedSkill, Suggestion, SuggestionState

pytestmark = pytest.mark.requirement("SK-006")

UNKNOWN = 999_999
POST = Skill("post", "Post", "Letters.")


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "mail", "maps", "news")
    return record


async def only_one(record: Record, state: SuggestionState | None = SuggestionState.PENDING) -> Suggestion:
    (found,) = await record.suggestions.page(0, 10, state)
    return found


async def asked(record: Record, count: int = 2) -> tuple[Suggestion, list[int]]:
    """A suggestion, and the items that ask for it; none of them is dirty."""
    items = await with_items(record, count)
    for id_ in items:
        await classify(record, id_, asks_for="Post Office", described="Letters.")
    await settle(record)
    return await only_one(record), items


async def asking(record: Record, suggestion: Suggestion) -> list[int]:
    return list(await record.suggestions.asked_by(suggestion.id, 0, 100))


async def test_a_wish_waits_for_review_and_the_item_is_done(record: Record) -> None:
    (one,) = await with_items(record, 1)
    before = await item(record, one)
    answer = await classify(record, one, asks_for="Post Office", described="Letters.")
    assert answer == {one: (before.version, ())}
    found = await only_one(record)
    assert found.suggested == SuggestedSkill("Post Office", "Letters.")
    assert (found.state, found.asked_by, found.skill_id) == (SuggestionState.PENDING, 1, None)
    assert (found.reviewed_by, found.reviewed_at) == (None, None)
    assert await record.suggestions.find(found.id) == found
    assert await asking(record, found) == [one]
    assert not (await item(record, one)).needs_skills
    assert await dirty_versions(record) == {}


async def test_wishes_that_differ_only_in_how_they_are_written_gather_as_the_first_was_put(record: Record) -> None:
    items = await with_items(record, 4)
    batch = [
        await classified(record, items[0], asks_for="Post office", described="first"),
        await classified(record, items[1], asks_for="post-OFFICE!", described="second"),
    ]
    await record.assignments.record(batch)
    await classify(record, items[2], asks_for="  POST office ", described="third")
    await classify(record, items[3], asks_for="Harbour")
    both = await record.suggestions.page(0, 10)
    assert [(one.suggested.name, one.suggested.description, one.asked_by) for one in both] == [
        ("Post office", "first", 3),
        ("Harbour", "", 1),
    ]
    assert await asking(record, both[0]) == items[:3]
    assert await record.suggestions.asked_by(both[0].id, items[0], 1) == items[1:2]


async def test_of_many_who_wish_the_same_at_once_there_is_one_suggestion(record: Record) -> None:
    items = await with_items(record, 8)
    words = [await classified(record, id_, asks_for=f"Post Office{'!' * id_}") for id_ in items]
    await asyncio.gather(*(record.assignments.record([word]) for word in words))
    assert (await only_one(record)).asked_by == 8


async def test_a_wish_of_which_nothing_is_left_is_dropped(record: Record) -> None:
    (one,) = await with_items(record, 1)
    assert (await classify(record, one, sure("mail"), asks_for=" -!? ")).keys() == {one}
    assert await record.suggestions.page(0, 10, None) == []


async def test_a_long_wish_is_cut_and_text_that_no_database_holds_made_visible(record: Record) -> None:
    one, two = await with_items(record, 2)
    await classify(record, one, asks_for="ß" * 200, described="d" * 600)
    await classify(record, two, asks_for="nul \0", described="lone \ud83d")
    long, odd = await record.suggestions.page(0, 10)
    assert (len(long.suggested.name), len(long.suggested.description)) == (120, 500)
    assert odd.suggested == SuggestedSkill("nul \ufffd", "lone \ufffd")


async def test_an_item_asks_for_one_thing_at_a_time(record: Record) -> None:
    first, (one, two) = await asked(record)
    await record.assignments.reclassify(0, 10)
    await classify(record, one, asks_for="Harbour")
    second = (await record.suggestions.page(first.id, 10))[0]
    assert (await asking(record, first), await asking(record, second)) == ([two], [one])
    await record.assignments.reclassify(0, 10)
    await classify(record, one, sure("mail"))
    assert await asking(record, second) == []


async def test_a_wish_that_is_not_taken_leaves_no_suggestion(record: Record) -> None:
    (one,) = await with_items(record, 1)
    late = await classified(record, one, asks_for="Post")
    await record.catalog.store("file", [tool("tool_0", "changed")])
    assert await record.assignments.record([late]) == {}
    assert await record.suggestions.page(0, 10, None) == []


async def test_a_person_s_word_about_an_item_takes_its_wish_back(record: Record) -> None:
    suggestion, (one, two) = await asked(record)
    await record.assignments.set_by_hand(one, [], "ann")
    assert await asking(record, suggestion) == [two]


async def test_an_item_that_is_gone_asks_for_nothing(record: Record) -> None:
    suggestion, (_, two) = await asked(record)
    await record.catalog.remove("file", ["server__tool_0"])
    assert await asking(record, suggestion) == [two]
    assert (await record.suggestions.find(suggestion.id)).asked_by == 1


async def test_an_approved_wish_is_a_skill_and_those_who_asked_are_classified_anew(record: Record) -> None:
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
    assert await asking(record, decided) == items[:2], "what the decision rests on stays"


async def test_a_merged_wish_has_those_who_asked_classified_anew(record: Record) -> None:
    suggestion, (one, two) = await asked(record)
    revision = await record.taxonomy.revision()
    decided = await record.suggestions.merge(suggestion.id, "mail", "bob")
    assert (decided.state, decided.skill_id, decided.reviewed_by) == (SuggestionState.MERGED, "mail", "bob")
    assert await record.taxonomy.revision() == revision
    assert (await dirty_versions(record)).keys() == {one, two}
    assert (await item(record, one)).needs_skills


async def test_a_rejected_wish_changes_no_item_and_is_dropped_from_then_on(record: Record) -> None:
    suggestion, (one, two) = await asked(record)
    decided = await record.suggestions.reject(suggestion.id, "bob")
    assert (decided.state, decided.skill_id) == (SuggestionState.REJECTED, None)
    assert await dirty_versions(record) == {}
    await record.assignments.reclassify(0, 10)
    ((_, found),) = (await classify(record, one, sure("maps"), asks_for="post office")).values()
    assert found == (sure("maps"),)
    assert await record.suggestions.page(0, 10) == []
    assert await asking(record, decided) == [one, two]


@pytest.mark.parametrize("is_new", [True, False], ids=["approved", "merged"])
async def test_who_asks_for_what_was_decided_gets_the_skill_of_the_decision(record: Record, is_new: bool) -> None:
    suggestion, (one, two) = await asked(record)
    if is_new:
        await record.suggestions.approve(suggestion.id, POST, "ann")
    else:
        await record.suggestions.merge(suggestion.id, "news", "ann")
    given = "post" if is_new else "news"
    await settle(record)
    reason = "asked for 'Post office', reviewed"
    ((version, alone),) = (await classify(record, one, asks_for="Post office")).values()
    assert alone == (sure(given, 0.5, AssignedBy.LLM, reason),)
    assert await dirty_versions(record) == {one: version}
    own = sure("mail", 0.8, AssignedBy.RULES)
    ((_, beside),) = (await classify(record, two, own, asks_for="Post office")).values()
    assert beside == (own, sure(given, 0.5, AssignedBy.RULES, reason))
    assert await record.suggestions.page(0, 10) == []


async def test_a_rule_adds_no_skill_that_the_item_has_nor_a_fourth(record: Record) -> None:
    suggestion, (one, two) = await asked(record)
    await record.suggestions.merge(suggestion.id, "news", "ann")
    ((_, found),) = (await classify(record, one, sure("news", 0.7), asks_for="Post office")).values()
    assert found == (sure("news", 0.7),)
    await with_skills(record, "files")
    three = sure("files"), sure("mail", 0.8), sure("maps", 0.5)
    ((_, found),) = (await classify(record, two, *three, asks_for="Post office")).values()
    assert found == three


async def test_a_rule_whose_skill_is_inactive_gives_nothing_until_it_is_active_again(record: Record) -> None:
    suggestion, (one, two) = await asked(record)
    await record.suggestions.approve(suggestion.id, POST, "ann")
    await record.taxonomy.change(Skill("post", "Post", "Letters.", is_active=False), "ann")
    ((_, found),) = (await classify(record, one, asks_for="Post office")).values()
    assert found == ()
    await record.taxonomy.change(POST, "ann")
    ((_, found),) = (await classify(record, two, asks_for="Post office")).values()
    assert [one.skill_id for one in found] == ["post"]


async def test_what_somebody_decided_nobody_decides_again(record: Record) -> None:
    suggestion, items = await asked(record)
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


async def test_of_many_who_decide_at_once_one_is_heard(record: Record) -> None:
    suggestion, _ = await asked(record)
    decisions = (
        *(record.suggestions.approve(suggestion.id, Skill(f"post_{n}", "Post"), f"approver {n}") for n in range(3)),
        *(record.suggestions.merge(suggestion.id, "mail", f"merger {n}") for n in range(3)),
        record.suggestions.reject(suggestion.id, "rejecter"),
    )
    answers = await asyncio.gather(*decisions, return_exceptions=True)
    heard = [one for one in answers if isinstance(one, Suggestion)]
    assert sum(isinstance(one, Conflict) for one in answers) == len(answers) - 1
    assert heard == [await record.suggestions.find(suggestion.id)]
    made = [one.skill.id for one in await record.taxonomy.page("post", 10)]
    assert made == ([heard[0].skill_id] if heard[0].state is SuggestionState.APPROVED else [])


async def test_approving_under_an_id_that_is_taken_is_a_conflict_and_decides_nothing(record: Record) -> None:
    suggestion, _ = await asked(record)
    with pytest.raises(Conflict, match="'mail'"):
        await record.suggestions.approve(suggestion.id, Skill("mail", "Post"), "ann")
    assert await record.suggestions.find(suggestion.id) == suggestion
    assert await dirty_versions(record) == {}


async def test_merging_into_what_is_not_there_or_inactive_is_refused_and_decides_nothing(record: Record) -> None:
    suggestion, _ = await asked(record)
    await record.taxonomy.change(Skill("maps", "Maps", is_active=False), "ann")
    with pytest.raises(InvalidRequest, match="'maps' is not active"):
        await record.suggestions.merge(suggestion.id, "maps", "ann")
    for unknown in ("nonsense", "\ud83d\0"):
        with pytest.raises(NotFound):
            await record.suggestions.merge(suggestion.id, unknown, "ann")
    assert await record.suggestions.find(suggestion.id) == suggestion
    assert await dirty_versions(record) == {}


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
    first, second, third, fourth, fifth = [one.id for one in await record.suggestions.page(0, 10)]
    await record.suggestions.reject(second, "ann")
    await record.suggestions.merge(fourth, "mail", "ann")

    async def ids(after: int, limit: int, state: SuggestionState | None) -> list[int]:
        return [one.id for one in await record.suggestions.page(after, limit, state)]

    assert await ids(0, 2, SuggestionState.PENDING) == [first, third]
    assert await ids(third, 2, SuggestionState.PENDING) == [fifth]
    assert await ids(0, 10, SuggestionState.REJECTED) == [second]
    assert await ids(second, 2, None) == [third, fourth]


async def test_decisions_are_audited(record: Record) -> None:
    for name in ("Post", "Harbour", "Ship"):
        (one,) = await with_items(record, 1)
        await classify(record, one, asks_for=name)
        await record.assignments.reclassify(0, 10)
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
        ("ann", "skill.add", "post"),
    ]
    assert entries[1].details == {"name": "Harbour", "asked_by": 0, "skill_id": "maps"}
