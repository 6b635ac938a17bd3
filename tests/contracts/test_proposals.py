"""Contract of Suggestions about proposals: nothing changes before a decision, and a decision can be undone."""

from dataclasses import replace

import numpy as np
import pytest

from tests.contracts.builders import (
    FIRST,
    Record,
    classify,
    item,
    settle,
    sure,
    tool,
    tools,
    with_items,
    with_skills,
)
from toolscript.core.errors import Conflict, InvalidRequest
from toolscript.core.items import AssignedBy, StoredItem
from toolscript.core.taxonomy import ProposalKind, Skill, Suggestion, SuggestionState
from toolscript.tools.model.centroids import Counted
from toolscript.tools.model.proposals import Move, Proposal, ProposalEvidence

pytestmark = pytest.mark.requirement("SK-011")

POST, SHIPS = Skill("post", "Post", "Letters.", keywords=("letter",)), Skill("ships", "Ships", examples=("sail",))


@pytest.fixture
async def record(record: Record) -> Record:
    await with_skills(record, "mail", "maps")
    return record


async def test_a_submitted_proposal_waits_in_the_queue_and_changes_nothing(record: Record) -> None:
    items = await with_items(record, 2)
    submitted = await record.suggestions.submit([_new(items)])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (1, 0, 0)
    (pending,) = await record.suggestions.page(0, 10)
    assert (pending.kind, pending.state, pending.asked_by) == (ProposalKind.NEW, SuggestionState.PENDING, 2)
    assert pending.change is not None
    assert (pending.change.creates, pending.change.retires) == ((POST,), ())
    assert pending.change.evidence["members"] == 2
    assert list(await record.suggestions.asked_by(pending.id, 0, 10)) == items
    assert [(await item(record, id_)).assignments for id_ in items] == [(), ()]
    assert await record.suggestions.reclassify_more() == 0
    assert [entry.skill.id for entry in await record.taxonomy.page("", 10)] == ["mail", "maps"]


async def test_a_proposal_submitted_again_keeps_its_id_and_others_are_withdrawn(record: Record) -> None:
    first, second = await with_items(record, 2)
    await record.suggestions.submit([_new([first]), _new([second], SHIPS)])
    before = {pending.suggested.name: pending.id for pending in await record.suggestions.page(0, 10)}
    submitted = await record.suggestions.submit([_new([first, second])])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 1, 1)
    (pending,) = await record.suggestions.page(0, 10)
    assert (pending.id, pending.asked_by) == (before["Post"], 2)


async def test_a_proposal_submitted_as_it_is_stored_changes_nothing(record: Record) -> None:
    items = await with_items(record, 2)
    proposal = replace(_split(items), retires=("mail",))
    await record.suggestions.submit([proposal])
    submitted = await record.suggestions.submit([proposal])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 0, 0)
    both = Move(items[0], ("post", "ships"), (0.9, 0.8))
    submitted = await record.suggestions.submit([replace(proposal, moves=(both,))])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 1, 0)
    (earlier,) = await record.suggestions.earlier()
    assert dict(earlier.members) == {items[0]: [("post", 0.9), ("ships", 0.8)]}


async def test_a_proposal_that_waits_for_the_index_holds_up_no_other(record: Record) -> None:
    first, second = await _in_mail(record, 2)
    await _accept(record, _split([first]))
    await _index_skills(record)
    while await record.suggestions.reclassify_more():
        pass
    assert (await record.taxonomy.find("mail")).skill.is_active
    waits = Skill("birds", "Birds", "Wings.", keywords=("wing",))
    await _accept(record, _new([second], waits))
    await _index_skills(record)
    while await record.suggestions.reclassify_more():
        pass
    assert "birds" in (await item(record, second)).skill_ids


async def test_an_accepted_proposal_moves_its_items_and_they_keep_their_other_skills(record: Record) -> None:
    first, second = await with_items(record, 2)
    await classify(record, first, sure("mail", 0.5))
    await settle(record)
    decided = await _accept(record, _new([first, second]))
    assert (decided.state, decided.skill_id, decided.reviewed_by) == (SuggestionState.APPROVED, "post", "bob")
    assert decided.change is not None
    assert decided.change.is_moving
    assert (await item(record, first)).skill_ids == ("mail",)
    await _drain(record)
    assert (await item(record, first)).skill_ids == ("post", "mail")
    assert [one.source for one in (await item(record, second)).assignments] == [AssignedBy.RULES]
    done = await record.suggestions.find(decided.id)
    assert done.change is not None
    assert not done.change.is_moving


async def test_items_that_a_person_assigned_never_move(record: Record) -> None:
    first, second = await with_items(record, 2)
    await record.assignments.set_by_hand(first, ["mail"], "ann")
    await settle(record)
    await _accept(record, _new([first, second]))
    await _drain(record)
    assert [(await item(record, id_)).skill_ids for id_ in (first, second)] == [("mail",), ("post",)]


async def test_a_split_retires_its_skill_only_after_every_item_is_indexed_in_a_part(record: Record) -> None:
    items = await _in_mail(record, 3)
    decided = await _accept(record, _split(items))
    await _index_skills(record)
    while await record.suggestions.reclassify_more():
        pass
    assert (await record.taxonomy.find("mail")).skill.is_active
    assert [(await item(record, id_)).skill_ids for id_ in items] == [("post",), ("ships",), ("post",)]
    await _drain(record)
    assert not (await record.taxonomy.find("mail")).skill.is_active
    assert (await record.suggestions.find(decided.id)).state is SuggestionState.APPROVED


async def test_an_item_that_comes_to_a_skill_while_it_is_split_goes_to_the_largest_part(record: Record) -> None:
    items = await _in_mail(record, 2)
    await _accept(record, _split(items))
    await record.catalog.store("server", [tool("late")])
    late = max(point.id for point in await record.catalog.scan(0, 10))
    await classify(record, late, sure("mail"))
    await _drain(record)
    assert (await item(record, late)).skill_ids == ("post",)
    assert not (await record.taxonomy.find("mail")).skill.is_active


async def test_a_skill_that_a_person_assigned_items_to_is_not_retired(record: Record) -> None:
    items = await _in_mail(record, 2)
    await record.assignments.set_by_hand(items[0], ["mail"], "ann")
    await settle(record)
    await _accept(record, _split(items))
    await _drain(record)
    assert (await record.taxonomy.find("mail")).skill.is_active
    assert (await item(record, items[0])).skill_ids == ("mail",)


async def test_a_merge_moves_the_items_of_the_smaller_skill(record: Record) -> None:
    items = await _in_mail(record, 2)
    evidence = ProposalEvidence(2, 2, {"maps": 2})
    merge = Proposal(ProposalKind.MERGE, "merge:mail:maps", "Merge", "Same.", evidence, retires=("mail",))
    await _accept(record, merge)
    await _drain(record)
    assert [(await item(record, id_)).skill_ids for id_ in items] == [("maps",), ("maps",)]
    assert not (await record.taxonomy.find("mail")).skill.is_active


async def test_a_retired_skill_is_inactive(record: Record) -> None:
    retire = Proposal(ProposalKind.RETIRE, "retire:maps", "Retire", "", ProposalEvidence(0, 9), retires=("maps",))
    await _accept(record, retire)
    await _drain(record)
    assert not (await record.taxonomy.find("maps")).skill.is_active


async def test_an_undone_split_gives_every_item_its_skills_back(record: Record) -> None:
    items = await _in_mail(record, 3)
    before = [(await item(record, id_)).assignments for id_ in items]
    decided = await _accept(record, _split(items))
    await _drain(record)
    await record.assignments.set_by_hand(items[1], ["maps"], "ann")
    undone = await record.suggestions.undo(decided.id, "cid")
    assert undone.state is SuggestionState.UNDONE
    assert (await record.taxonomy.find("mail")).skill.is_active
    await _drain(record)
    after = [(await item(record, id_)).assignments for id_ in items]
    assert (after[0], after[2]) == (before[0], before[2])
    assert (await item(record, items[1])).skill_ids == ("maps",)
    assert [(await record.taxonomy.find(skill.id)).skill.is_active for skill in (POST, SHIPS)] == [False, False]
    assert ("cid", "suggestion.undo") in {
        (entry.actor, entry.action) for _, entry in await record.taxonomy.audit(None, 50)
    }


async def test_a_proposal_undone_while_its_items_move_leaves_none_between(record: Record) -> None:
    items = await _in_mail(record, 3)
    decided = await _accept(record, _split(items))
    await _index_skills(record)
    await record.suggestions.reclassify_more()
    await record.suggestions.undo(decided.id, "cid")
    await _drain(record)
    assert [(await item(record, id_)).skill_ids for id_ in items] == [("mail",)] * 3


async def test_decided_proposals_are_not_submitted_again(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await record.suggestions.submit([_new([first])])
    (pending,) = await record.suggestions.page(0, 10)
    await record.suggestions.reject(pending.id, "bob")
    submitted = await record.suggestions.submit([_new([first])])
    assert (submitted.added, submitted.changed) == (0, 0)
    assert not await record.suggestions.page(0, 10)


async def test_earlier_proposals_are_those_pending_and_rejected_with_their_members(record: Record) -> None:
    first, second = await with_items(record, 2)
    await record.suggestions.submit([_new([first]), _new([second], SHIPS)])
    await record.suggestions.reject((await record.suggestions.page(0, 1))[0].id, "bob")
    earlier = {one.key: one for one in await record.suggestions.earlier()}
    assert (earlier["new:post"].is_rejected, earlier["new:ships"].is_rejected) == (True, False)
    assert (earlier["new:post"].members, earlier["new:post"].creates) == ({first: [("post", 0.8)]}, (POST,))


async def test_an_approved_proposal_is_an_earlier_one_until_its_items_have_moved(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await _accept(record, _new([first]))
    (earlier,) = await record.suggestions.earlier()
    assert (earlier.key, earlier.is_rejected, earlier.creates) == ("new:post", True, (POST,))
    assert dict(earlier.members) == {first: [("post", 0.8)]}
    submitted = await record.suggestions.submit([_new([first])])
    assert (submitted.added, submitted.changed) == (0, 0)
    await _drain(record)
    assert not await record.suggestions.earlier()


async def test_what_was_approved_and_has_moved_can_be_proposed_again(record: Record) -> None:
    first, second = await with_items(record, 2)
    for letters in ("letters", "more_letters"):
        decided = await _accept(record, _new([first]), Skill(letters, letters))
        await _drain(record)
    assert decided.skill_id == "more_letters"
    submitted = await record.suggestions.submit([_new([first])])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (1, 0, 0)
    (pending,) = await record.suggestions.page(0, 10)
    submitted = await record.suggestions.submit([_new([first])])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 0, 0)
    submitted = await record.suggestions.submit([_new([first, second])])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 1, 0)
    assert [one.id for one in await record.suggestions.page(0, 10)] == [pending.id]
    assert (await record.suggestions.submit([])).withdrawn == 1
    assert not await record.suggestions.page(0, 10)


async def test_what_was_proposed_again_and_rejected_or_undone_is_not_proposed_once_more(record: Record) -> None:
    items = await with_items(record, 1)
    approved = await _accept(record, _new(items), Skill("letters", "Letters"))
    await _drain(record)
    await record.suggestions.submit([_new(items)])
    (pending,) = await record.suggestions.page(0, 10)
    await record.suggestions.reject(pending.id, "bob")
    assert (await record.suggestions.submit([_new(items)])).added == 0
    await record.suggestions.undo(approved.id, "bob")
    await _drain(record)
    assert (await record.suggestions.submit([_new(items)])).added == 0


async def test_a_reviewer_can_change_the_skill_of_a_new_proposal(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await record.suggestions.submit([_new([first])])
    (pending,) = await record.suggestions.page(0, 10)
    decided = await record.suggestions.accept(pending.id, "bob", Skill("letters", "Letters"))
    await _drain(record)
    assert decided.skill_id == "letters"
    assert (await item(record, first)).skill_ids == ("letters",)


async def test_decisions_that_do_not_fit_are_refused(record: Record) -> None:
    items = await with_items(record, 1)
    await record.suggestions.submit([_new(items)])
    (pending,) = await record.suggestions.page(0, 10)
    with pytest.raises(InvalidRequest):
        await record.suggestions.merge(pending.id, "mail", "bob")
    with pytest.raises(InvalidRequest):
        await record.suggestions.approve(pending.id, POST, "bob")
    with pytest.raises(Conflict):
        await record.suggestions.undo(pending.id, "bob")
    await record.suggestions.accept(pending.id, "bob")
    with pytest.raises(Conflict):
        await record.suggestions.accept(pending.id, "bob")


async def test_a_moved_item_keeps_the_skill_whatever_a_classifier_says_until_it_changes(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await _accept(record, _new([first]))
    await _drain(record)
    await record.assignments.reclassify(0, 10)
    await classify(record, first, sure("maps"))
    assert set((await item(record, first)).skill_ids) == {"maps", "post"}


async def test_a_moved_item_keeps_the_confidence_of_its_move_when_it_is_classified_again(record: Record) -> None:
    first, second, third = await with_items(record, 3)
    await with_skills(record, "tours", "boats")
    await _accept(record, _new([first, second, third]))
    await _drain(record)
    await record.assignments.reclassify(0, 10)
    await classify(record, first, sure("maps"), sure("mail", 0.85), sure("tours", 0.6))
    assert _confidences(await item(record, first)) == {"maps": 0.9, "mail": 0.85, "post": 0.8}
    await classify(record, second, sure("post", 0.55))
    assert _confidences(await item(record, second)) == {"post": 0.8}
    surer = {"maps": 0.9, "mail": 0.9, "tours": 0.8}
    await classify(record, third, *(sure(skill_id, confidence) for skill_id, confidence in surer.items()))
    assert _confidences(await item(record, third)) == surer


async def test_an_undone_proposal_takes_nothing_that_another_decision_gave(record: Record) -> None:
    (first,) = await with_items(record, 1)
    post = await _accept(record, _new([first]))
    await _drain(record)
    await _accept(record, _new([first], SHIPS))
    await _drain(record)
    assert set((await item(record, first)).skill_ids) == {"post", "ships"}
    await record.suggestions.undo(post.id, "cid")
    await _drain(record)
    assert (await item(record, first)).skill_ids == ("ships",)


async def test_a_skill_with_items_is_not_retired_for_having_none(record: Record) -> None:
    retire = Proposal(ProposalKind.RETIRE, "retire:mail", "Retire", "", ProposalEvidence(0, 9), retires=("mail",))
    await record.suggestions.submit([retire])
    (pending,) = await record.suggestions.page(0, 10)
    await _in_mail(record, 1)
    with pytest.raises(Conflict, match="skill mail has items"):
        await record.suggestions.accept(pending.id, "bob")
    assert (await record.suggestions.find(pending.id)).state is SuggestionState.PENDING


async def test_a_merge_into_an_inactive_skill_is_refused(record: Record) -> None:
    await _in_mail(record, 1)
    evidence = ProposalEvidence(1, 1, {"maps": 1})
    merge = Proposal(ProposalKind.MERGE, "merge:mail:maps", "Merge", "Same.", evidence, retires=("mail",))
    await record.suggestions.submit([merge])
    (pending,) = await record.suggestions.page(0, 10)
    await _deactivate(record, "maps")
    with pytest.raises(Conflict, match="skill maps is not active"):
        await record.suggestions.accept(pending.id, "bob")


async def test_a_skill_stays_when_what_its_items_move_to_is_deactivated_meanwhile(record: Record) -> None:
    items = await _in_mail(record, 2)
    await _accept(record, _split(items))
    await _index_skills(record)
    for part in ("post", "ships"):
        await _deactivate(record, part)
    await _drain(record)
    assert (await record.taxonomy.find("mail")).skill.is_active
    assert [(await item(record, id_)).skill_ids for id_ in items] == [("mail",), ("mail",)]


async def test_an_item_that_moves_still_waits_for_its_classifier(record: Record) -> None:
    (first,) = await _in_mail(record, 1)
    await record.assignments.reclassify(0, 10)
    await _accept(record, _new([first]))
    await _drain(record)
    moved = await item(record, first)
    assert (set(moved.skill_ids), moved.needs_skills) == ({"mail", "post"}, True)


async def test_a_skill_that_another_namespace_uses_is_not_retired(record: Record) -> None:
    items = await _in_mail(record, 2)
    await record.catalog.of("blue").store("other", [tool("theirs")])
    theirs = max(point.id for point in await record.catalog.scan(0, 10))
    await classify(record, theirs, sure("mail"))
    await settle(record)
    decided = await _accept(record, _split(items))
    await _drain(record)
    assert (await item(record, theirs)).skill_ids == ("mail",)
    assert (await record.taxonomy.find("mail")).skill.is_active
    assert [(await item(record, id_)).skill_ids for id_ in items] == [("post",), ("ships",)]
    assert list(await record.suggestions.asked_by(decided.id, 0, 10)) == items


async def test_the_catalog_is_observed_with_vectors_and_current_skills(record: Record) -> None:
    await record.catalog.store("server", [tool("a", "Sends."), tool("b")])
    claim = await record.dirty.claim(FIRST, 10, 60)
    first, second = sorted(claim.versions)
    vector = np.array([1, 0], dtype=np.float32)
    await record.skill_vectors.count(FIRST, claim, [Counted(id_, "h", vector, {}) for id_ in (first, second)])
    await classify(record, first, sure("mail"))
    observed = await record.skill_vectors.observed(FIRST, 0, 10)
    assert [(one.id, one.item.name, one.item.description) for one in observed] == [
        (first, "a", "Sends."),
        (second, "b", ""),
    ]
    assert [one.assignments for one in observed] == [(sure("mail"),), ()]
    assert observed[0].vector.tolist() == [1, 0]
    assert (await record.skill_vectors.sizes(FIRST)).catalog == 2
    assert [one.id for one in await record.skill_vectors.observed(FIRST, first, 10)] == [second]
    assert not await record.skill_vectors.observed(FIRST, 0, 10, "elsewhere")


async def test_an_item_that_a_person_put_in_no_skill_is_observed_as_decided(record: Record) -> None:
    await record.catalog.store("server", tools(2))
    claim = await record.dirty.claim(FIRST, 10, 60)
    first, second = sorted(claim.versions)
    vector = np.array([1, 0], dtype=np.float32)
    await record.skill_vectors.count(FIRST, claim, [Counted(id_, "h", vector, {}) for id_ in (first, second)])
    await record.assignments.set_by_hand(first, [], "ann")
    observed = await record.skill_vectors.observed(FIRST, 0, 10)
    assert [(one.id, one.assignments, one.is_by_hand) for one in observed] == [
        (first, (), True),
        (second, (), False),
    ]
    await record.assignments.release(first, "ann")
    assert not any(one.is_by_hand for one in await record.skill_vectors.observed(FIRST, 0, 10))


async def test_sizes_name_the_skills_that_any_namespace_uses(record: Record) -> None:
    await record.catalog.store("server", [tool("ours")])
    await record.catalog.of("blue").store("other", [tool("theirs")])
    claim = await record.dirty.claim(FIRST, 10, 60)
    ours, theirs = sorted(claim.versions)
    vector = np.array([1, 0], dtype=np.float32)
    counted = [Counted(ours, "h", vector, {"mail": 9}), Counted(theirs, "h", vector, {"maps": 9}, "blue")]
    await record.skill_vectors.count(FIRST, claim, counted)
    sizes = await record.skill_vectors.sizes(FIRST)
    assert (sizes.catalog, dict(sizes.members), set(sizes.used)) == (1, {"mail": 1}, {"mail", "maps"})
    blue = await record.skill_vectors.sizes(FIRST, "blue")
    assert (blue.catalog, dict(blue.members), set(blue.used)) == (1, {"maps": 1}, {"mail", "maps"})


def _new(items: list[int], skill: Skill = POST) -> Proposal:
    moves = [Move(id_, (skill.id,), (0.8,)) for id_ in items]
    evidence = ProposalEvidence(len(items), 10, {skill.id: len(items)})
    return Proposal(
        ProposalKind.NEW, f"new:{skill.id}", skill.name, skill.description, evidence, (skill,), (), moves
    )


def _split(items: list[int]) -> Proposal:
    moves = [Move(id_, (POST.id if place % 2 == 0 else SHIPS.id,), (0.8,)) for place, id_ in enumerate(items)]
    evidence = ProposalEvidence(len(items), 10, {"post": 2, "ships": 1})
    return Proposal(
        ProposalKind.SPLIT, "split:mail", "Split Mail", "Too large.", evidence, (POST, SHIPS), ("mail",), moves
    )


async def _in_mail(record: Record, count: int) -> list[int]:
    items = await with_items(record, count)
    for id_ in items:
        await classify(record, id_, sure("mail"))
    await settle(record)
    return items


async def _accept(record: Record, proposal: Proposal, skill: Skill | None = None) -> Suggestion:
    await record.suggestions.submit([proposal])
    (pending,) = await record.suggestions.page(0, 10)
    return await record.suggestions.accept(pending.id, "bob", skill)


def _confidences(stored: StoredItem) -> dict[str, float]:
    return {assignment.skill_id: assignment.confidence for assignment in stored.assignments}


async def _deactivate(record: Record, skill_id: str) -> None:
    skill = (await record.taxonomy.find(skill_id)).skill
    await record.taxonomy.change(replace(skill, is_active=False), "ann")


async def _index_skills(record: Record) -> None:
    await record.skill_vectors.mark_indexed(FIRST, await record.skill_vectors.behind(FIRST, 100))


async def _drain(record: Record) -> None:
    """Work as a worker does: items, then skills, then decisions; until nothing is left."""
    for _ in range(20):
        await settle(record)
        await _index_skills(record)
        if not await record.suggestions.reclassify_more():
            return
    raise AssertionError("it goes on for ever")
