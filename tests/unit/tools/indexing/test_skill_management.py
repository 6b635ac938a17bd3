"""Skill management: a change is indexed at once, and stored even if that fails."""

import asyncio
from collections.abc import Collection

import pytest

from tests.unit.tools.indexing.skill_builders import Managed
from toolscript.core.errors import Conflict, IndexUnavailable, InvalidRequest, ModelNotFound, NotFound
from toolscript.core.taxonomy import Skill, SuggestionState
from toolscript.tools.skills import management
from toolscript.tools.skills.management import Routing, SkillManagement

CRM = Skill("crm", "CRM", "Customers, leads and deals")


@pytest.mark.requirement("SK-001")
async def test_every_change_of_a_skill_is_indexed_at_once() -> None:
    scene = Managed()
    skills = scene.management
    added = await skills.add(CRM, "ann")
    changed = await skills.edit("crm", {"keywords": ["lead"]}, "ann")
    ended = await skills.set_active("crm", False, "ann")
    assert [written.routing for written in (added, changed, ended)] == [Routing.DONE] * 3
    assert scene.followed == ["crm"] * 3
    assert ended.entry.skill == Skill("crm", "CRM", CRM.description, keywords=("lead",), is_active=False)


@pytest.mark.requirement("SK-001")
@pytest.mark.parametrize("fault", [IndexUnavailable("down"), ModelNotFound("gone"), TimeoutError()])
async def test_a_change_that_cannot_be_indexed_now_is_stored_all_the_same(fault: Exception) -> None:
    scene = Managed(index_fault=fault)
    written = await scene.management.add(CRM, "ann")
    assert written.routing is Routing.PENDING
    assert (await scene.taxonomy.find("crm")).skill == CRM


@pytest.mark.requirement("SK-001")
async def test_an_index_that_hangs_is_waited_for_until_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "INDEX_SECONDS", 0.01)

    async def hang(_: Collection[str]) -> int:
        await asyncio.Event().wait()
        return 0

    scene = Managed()
    skills = SkillManagement(
        scene.taxonomy, scene.assignments, scene.suggestions, scene.catalog, scene.management.nearest, hang
    )
    assert (await skills.add(CRM, "ann")).routing is Routing.PENDING


async def test_many_skills_are_indexed_in_batches() -> None:
    scene = Managed()
    ids = [f"skill_{number}" for number in range(250)]
    assert await scene.management.route(ids) is Routing.DONE
    assert scene.followed == ids


async def test_a_refused_change_does_not_touch_the_index() -> None:
    scene = Managed()
    with pytest.raises(NotFound):
        await scene.management.edit("crm", {"name": "x"}, "ann")
    with pytest.raises(NotFound):
        await scene.management.set_active("crm", False, "ann")
    assert scene.followed == []


@pytest.mark.requirement("SK-006")
async def test_the_evidence_has_the_requesting_items_and_the_nearest_skills() -> None:
    scene = Managed()
    await scene.taxonomy.add(CRM, "ann")
    await scene.taxonomy.add(Skill("weather", "Weather", "Rain and sun"), "ann")
    await scene.taxonomy.add(Skill("old_crm", "CRM", "Customers, leads and deals", is_active=False), "ann")
    number = await scene.suggest(
        "Customer deals", "add_deal", "add_lead", "list_leads", description="Deals of leads"
    )
    evidence = await scene.management.evidence(number, 0, 2)
    assert [stored.item.name for stored in evidence.items] == ["add_deal", "add_lead"]
    assert evidence.nearest is not None
    assert [near.skill.id for near in evidence.nearest] == ["crm", "weather"]
    assert evidence.nearest[0].score > evidence.nearest[1].score
    assert evidence.more_after is not None
    rest = await scene.management.evidence(number, evidence.more_after, 2)
    assert [stored.item.name for stored in rest.items] == ["list_leads"]
    assert rest.more_after is None


@pytest.mark.requirement("SK-006")
async def test_without_a_model_the_evidence_has_a_reason_instead_of_the_nearest_skills() -> None:
    scene = Managed(model_fault=ModelNotFound("no model in that folder"))
    evidence = await scene.management.evidence(await scene.suggest("CRM", "add_lead"), 0, 5)
    assert evidence.nearest is None
    assert evidence.reason == "no model in that folder"
    assert [stored.item.name for stored in evidence.items] == ["add_lead"]


async def test_a_skill_is_embedded_once_and_again_only_when_it_changes() -> None:
    scene = Managed()
    for name in ("alpha", "beta", "gamma"):
        await scene.taxonomy.add(Skill(name, name), "ann")
    await scene.management.nearest.to("alpha", 1)
    before = scene.embedder.texts_embedded
    await scene.management.nearest.to("beta", 1)
    assert scene.embedder.texts_embedded == before + 1
    await scene.taxonomy.change(Skill("beta", "delta"), "ann")
    (near,) = await scene.management.nearest.to("delta", 1)
    assert near.skill == Skill("beta", "delta")
    assert scene.embedder.texts_embedded == before + 3


async def test_skills_on_every_page_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolscript.tools.skills.management.PAGE", 2)
    scene = Managed()
    for name in ("alpha", "beta", "gamma", "zeta"):
        await scene.taxonomy.add(Skill(name, name), "ann")
    (near,) = await scene.management.nearest.to("zeta", 1)
    assert near.skill.id == "zeta"


@pytest.mark.requirement("SK-006")
async def test_approving_adds_the_suggested_skill_with_the_changes_of_the_reviewer() -> None:
    scene = Managed()
    number = await scene.suggest("Customer Relations", "add_lead", description="Leads and deals")
    decided = await scene.management.approve(number, {"id": "crm", "keywords": ["lead"]}, "ann")
    assert decided.routing is Routing.DONE
    assert (decided.suggestion.state, decided.suggestion.skill_id) == (SuggestionState.APPROVED, "crm")
    made = (await scene.taxonomy.find("crm")).skill
    assert made == Skill("crm", "Customer Relations", "Leads and deals", keywords=("lead",))
    assert scene.followed == ["crm"]
    (item,) = await scene.catalog.items([1])
    assert item.needs_skills


@pytest.mark.requirement("SK-006")
async def test_the_id_of_an_approved_skill_is_derived_from_its_name() -> None:
    scene = Managed()
    number = await scene.suggest("3-D & Printing!", "slice")
    assert (await scene.management.approve(number, {}, "ann")).suggestion.skill_id == "d_printing"


@pytest.mark.requirement("SK-006")
@pytest.mark.parametrize("name", ["天气", "Search"])
async def test_a_name_that_yields_no_id_needs_an_id_from_the_reviewer(name: str) -> None:
    scene = Managed()
    number = await scene.suggest(name, "forecast")
    with pytest.raises(InvalidRequest) as refused:
        await scene.management.approve(number, {}, "ann")
    assert refused.value.details["field"] == "id"
    assert (await scene.management.approve(number, {"id": "weather"}, "ann")).suggestion.skill_id == "weather"


@pytest.mark.requirement("SK-006")
async def test_two_people_cannot_decide_about_the_same_suggestion() -> None:
    scene = Managed()
    number = await scene.suggest("CRM", "add_lead")
    await scene.management.approve(number, {}, "ann")
    with pytest.raises(Conflict):
        await scene.management.approve(number, {"id": "other"}, "bob")
