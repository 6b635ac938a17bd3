"""Import of many skills, and reclassification of items."""

import pytest

from tests.unit.tools.indexing.builders import Scene, tools
from toolscript.core.errors import InvalidRequest
from toolscript.core.taxonomy import Skill
from toolscript.core.values import Progress
from toolscript.tools.skills import importing, management
from toolscript.tools.skills.importing import import_skills, load_defaults, reclassify_all
from toolscript.tools.skills.management import all_skills

pytestmark = pytest.mark.requirement("SK-001")

DEFAULTS = [Skill("alpha", "Alpha"), Skill("beta", "Beta"), Skill("gamma", "Gamma")]


async def ids(scene: Scene, *, active_only: bool = False) -> list[str]:
    return [entry.skill.id async for entry in all_skills(scene.taxonomy, active_only=active_only)]


async def test_an_import_adds_new_skills_and_changes_different_ones_only() -> None:
    scene = Scene()
    first = await import_skills(scene.taxonomy, DEFAULTS, "ann")
    assert (first.added, first.changed, first.unchanged) == (("alpha", "beta", "gamma"), (), 0)
    revision = await scene.taxonomy.revision()
    again = await import_skills(scene.taxonomy, DEFAULTS, "ann")
    assert (again.written, again.unchanged) == ([], 3)
    assert await scene.taxonomy.revision() == revision
    changed = await import_skills(scene.taxonomy, [Skill("beta", "Better"), Skill("delta", "Delta")], "ann")
    assert (changed.added, changed.changed, changed.deactivated) == (("delta",), ("beta",), ())
    assert await ids(scene, active_only=True) == ["alpha", "beta", "delta", "gamma"]


async def test_an_import_that_replaces_deactivates_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "PAGE", 2)
    scene = Scene()
    other_skills = [Skill(f"other_{number}", "Other") for number in range(5)]
    await import_skills(scene.taxonomy, [*DEFAULTS, *other_skills], "ann")
    done = await import_skills(scene.taxonomy, DEFAULTS, "ann", replace_all=True)
    assert done.deactivated == tuple(skill.id for skill in other_skills)
    assert await ids(scene, active_only=True) == ["alpha", "beta", "gamma"]
    assert len(await ids(scene)) == 8


async def test_an_empty_import_cannot_replace_all_skills() -> None:
    scene = Scene()
    await import_skills(scene.taxonomy, DEFAULTS, "ann")
    with pytest.raises(InvalidRequest, match="none was deactivated"):
        await import_skills(scene.taxonomy, [], "ann", replace_all=True)
    assert await ids(scene, active_only=True) == ["alpha", "beta", "gamma"]


async def test_an_import_reports_its_progress() -> None:
    seen: list[Progress] = []
    await import_skills(Scene().taxonomy, DEFAULTS, "ann", on_progress=seen.append)
    assert [(progress.done, progress.total) for progress in seen] == [(1, 3), (2, 3), (3, 3)]


async def test_the_default_skills_are_loaded_once() -> None:
    scene = Scene()
    assert await load_defaults(scene.taxonomy, DEFAULTS) == 3
    assert await load_defaults(scene.taxonomy, DEFAULTS) == 0


async def test_a_custom_taxonomy_is_not_changed() -> None:
    scene = Scene()
    await scene.taxonomy.add(Skill("mine", "Mine"), "ann")
    assert await load_defaults(scene.taxonomy, DEFAULTS) == 0
    assert await ids(scene) == ["mine"]


async def test_an_interrupted_load_is_finished() -> None:
    scene = Scene()
    await load_defaults(scene.taxonomy, DEFAULTS[:2])
    assert await load_defaults(scene.taxonomy, DEFAULTS) == 1
    assert await ids(scene) == ["alpha", "beta", "gamma"]


async def test_an_interrupted_load_is_not_finished_once_a_person_has_decided_something() -> None:
    scene = Scene()
    await load_defaults(scene.taxonomy, DEFAULTS[:2])
    await scene.taxonomy.change(Skill("beta", "Beta", is_active=False), "ann")
    assert await load_defaults(scene.taxonomy, DEFAULTS) == 0


@pytest.mark.requirement("SK-008")
async def test_every_item_is_reclassified_page_by_page_except_those_set_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importing, "RECLASSIFIED_AT_ONCE", 2)
    scene = Scene()
    await scene.catalog.store("file", tools(7))
    await scene.taxonomy.add(Skill("crm", "CRM"), "ann")
    await scene.assignments.set_by_hand(3, ["crm"], "ann")
    seen: list[Progress] = []
    assert await reclassify_all(scene.assignments, total=7, on_progress=seen.append) == 6
    assert [progress.done for progress in seen] == [2, 4, 6]
    (of_a_person,) = await scene.catalog.items([3])
    assert not of_a_person.needs_skills
