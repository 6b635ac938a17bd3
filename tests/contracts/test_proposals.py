"""Contract of Suggestions about proposals: nothing changes before a decision, and a decision can be undone."""

from dataclasses import replace

import numpy as np
import pytest

from tests.contracts.builders import (
    FIRST,
    Record,
    classify,
    item,
    sure,
    tool,
    tools,
    with_items,
    with_skills,
)
from toolscript.core.errors import Conflict
from toolscript.core.items import StoredItem
from toolscript.core.taxonomy import ProposalKind, Skill, Suggestion, SuggestionState
from toolscript.tools.model.centroids import Counted
from toolscript.tools.model.proposals import Proposal, ProposalEvidence

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
    assert pending.change.creates == (POST,)
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
    await record.suggestions.submit([_new(items)])
    submitted = await record.suggestions.submit([_new(items)])
    assert (submitted.added, submitted.changed, submitted.withdrawn) == (0, 0, 0)


async def test_an_approved_proposal_gives_its_items_the_skill_and_they_keep_what_a_classifier_says(
    record: Record,
) -> None:
    first, second = await with_items(record, 2)
    decided = await _approve(record, _new([first, second]))
    assert (decided.state, decided.skill_id, decided.reviewed_by) == (SuggestionState.APPROVED, "post", "bob")
    assert (await item(record, first)).skill_ids == ()
    await classify(record, first, sure("mail", 0.5))
    await classify(record, second)
    assert _confidences(await item(record, first)) == {"post": 0.8, "mail": 0.5}
    assert _confidences(await item(record, second)) == {"post": 0.8}


async def test_items_that_a_person_assigned_never_move(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await record.assignments.set_by_hand(first, ["mail"], "ann")
    await _approve(record, _new([first]))
    assert (await item(record, first)).skill_ids == ("mail",)
    assert not (await item(record, first)).needs_skills


async def test_an_undone_proposal_takes_its_skill_from_its_items_and_nothing_that_another_gave(
    record: Record,
) -> None:
    (first,) = await with_items(record, 1)
    post = await _approve(record, _new([first]))
    await classify(record, first)
    await _approve(record, _new([first], SHIPS))
    await classify(record, first)
    assert set((await item(record, first)).skill_ids) == {"post", "ships"}
    await _deactivate(record, "post")
    undone = await record.suggestions.undo(post.id, "cid")
    assert undone.state is SuggestionState.UNDONE
    await classify(record, first)
    assert (await item(record, first)).skill_ids == ("ships",)
    assert ("cid", "suggestion.undo") in {
        (entry.actor, entry.action) for _, entry in await record.taxonomy.audit(None, 50)
    }


async def test_decided_proposals_are_not_submitted_again(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await record.suggestions.submit([_new([first])])
    (pending,) = await record.suggestions.page(0, 10)
    await record.suggestions.reject(pending.id, "bob")
    submitted = await record.suggestions.submit([_new([first])])
    assert (submitted.added, submitted.changed) == (0, 0)
    assert not await record.suggestions.page(0, 10)


async def test_a_reviewer_can_change_the_skill_of_a_proposal(record: Record) -> None:
    (first,) = await with_items(record, 1)
    decided = await _approve(record, _new([first]), Skill("letters", "Letters"))
    await classify(record, first)
    assert decided.skill_id == "letters"
    assert _confidences(await item(record, first)) == {"letters": 0.8}


async def test_a_proposal_merged_into_a_skill_gives_its_items_that_skill(record: Record) -> None:
    (first,) = await with_items(record, 1)
    await record.suggestions.submit([_new([first])])
    (pending,) = await record.suggestions.page(0, 10)
    await record.suggestions.merge(pending.id, "mail", "bob")
    await classify(record, first)
    assert _confidences(await item(record, first)) == {"mail": 0.8}


async def test_decisions_that_do_not_fit_are_refused(record: Record) -> None:
    items = await with_items(record, 1)
    await record.suggestions.submit([_new(items)])
    (pending,) = await record.suggestions.page(0, 10)
    with pytest.raises(Conflict):
        await record.suggestions.undo(pending.id, "bob")
    await record.suggestions.approve(pending.id, POST, "bob")
    with pytest.raises(Conflict):
        await record.suggestions.approve(pending.id, POST, "bob")


async def test_an_item_keeps_the_confidence_of_the_proposal_when_it_is_classified(record: Record) -> None:
    first, second, third = await with_items(record, 3)
    await with_skills(record, "tours", "boats")
    await _approve(record, _new([first, second, third]))
    await classify(record, first, sure("maps"), sure("mail", 0.85), sure("tours", 0.6))
    assert _confidences(await item(record, first)) == {"maps": 0.9, "mail": 0.85, "post": 0.8}
    await classify(record, second, sure("post", 0.55))
    assert _confidences(await item(record, second)) == {"post": 0.8}
    surer = {"maps": 0.9, "mail": 0.9, "tours": 0.8}
    await classify(record, third, *(sure(skill_id, confidence) for skill_id, confidence in surer.items()))
    assert _confidences(await item(record, third)) == surer


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


def _new(items: list[int], skill: Skill = POST) -> Proposal:
    return Proposal(skill, dict.fromkeys(items, 0.8), ProposalEvidence(len(items), 10))


async def _approve(record: Record, proposal: Proposal, skill: Skill | None = None) -> Suggestion:
    await record.suggestions.submit([proposal])
    (pending,) = await record.suggestions.page(0, 10)
    return await record.suggestions.approve(pending.id, skill or proposal.skill, "bob")


def _confidences(stored: StoredItem) -> dict[str, float]:
    return {assignment.skill_id: assignment.confidence for assignment in stored.assignments}


async def _deactivate(record: Record, skill_id: str) -> None:
    skill = (await record.taxonomy.find(skill_id)).skill
    await record.taxonomy.change(replace(skill, is_active=False), "ann")
