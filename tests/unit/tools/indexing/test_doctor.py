"""The doctor compares catalog and index, and a worker repairs what it marks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from tests.unit.tools.indexing.builders import POISON, Scene, tool, tools
from toolscript.core.retrieval.model import Point, PointVersion
from toolscript.core.retrieval.ports import Index
from toolscript.core.taxonomy import Skill, skill_point_id
from toolscript.core.values import Progress
from toolscript.testing import HashEmbedder
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.indexing import doctor
from toolscript.tools.indexing.doctor import Doctor, DoctorReport

pytestmark = pytest.mark.requirement("SK-009")


async def healthy_scene(count: int = 4) -> Scene:
    scene = Scene()
    await scene.catalog.store("file", tools(count))
    await scene.drain()
    return scene


async def point(id_: int, version: int) -> Point:
    return Point(id_, version, await HashEmbedder().embed_query("x"), {}, {"name": "from elsewhere"})


async def examine(scene: Scene, *, repair: bool = False) -> DoctorReport:
    return await (await scene.doctor()).examine(repair=repair)


async def repaired(scene: Scene) -> DoctorReport:
    await examine(scene, repair=True)
    await scene.drain()
    return await examine(scene)


async def lose_point(index: Index) -> None:
    await index.remove([PointVersion(2, 10**9)])


async def add_unknown_point(index: Index) -> None:
    await index.put([await point(99, 1)])


async def add_unknown_point_from_the_future(index: Index) -> None:
    await index.put([await point(99, 10**9)])


async def make_point_newer_than_its_item(index: Index) -> None:
    await index.put([await point(2, 10**9)])


async def make_point_older_than_its_item(index: Index) -> None:
    await lose_point(index)
    await index.put([await point(2, 1)])


ERRORS = [
    (lose_point, DoctorReport(items=4, points=3, missing=1)),
    (add_unknown_point, DoctorReport(items=4, points=5, extra=1)),
    (add_unknown_point_from_the_future, DoctorReport(items=4, points=5, extra=1)),
    (make_point_newer_than_its_item, DoctorReport(items=4, points=4, stale=1)),
    (make_point_older_than_its_item, DoctorReport(items=4, points=4, stale=1)),
]


async def test_a_catalog_and_an_index_that_agree_are_healthy() -> None:
    examination = await examine(await healthy_scene())
    assert examination == DoctorReport(items=4, points=4)
    assert examination.healthy


async def test_an_empty_installation_is_healthy() -> None:
    assert await examine(Scene()) == DoctorReport()


@pytest.mark.parametrize(("harm", "finding"), ERRORS, ids=lambda value: getattr(value, "__name__", ""))
async def test_errors_are_found_and_an_examination_changes_nothing(
    harm: Callable[[Index], object], finding: DoctorReport
) -> None:
    scene = await healthy_scene()
    await harm(await scene.index())  # type: ignore[misc]
    assert await examine(scene) == finding
    assert await examine(scene) == finding
    assert not finding.healthy


@pytest.mark.parametrize(("harm", "finding"), ERRORS, ids=lambda value: getattr(value, "__name__", ""))
async def test_errors_are_repaired_by_the_doctor_and_a_worker(
    harm: Callable[[Index], object], finding: DoctorReport
) -> None:
    scene = await healthy_scene()
    await harm(await scene.index())  # type: ignore[misc]
    assert (await repaired(scene)) == DoctorReport(items=4, points=4)
    assert await scene.indexed_names() == {"tool_0", "tool_1", "tool_2", "tool_3"}


async def test_dirty_items_are_pending_and_no_error() -> None:
    scene = await healthy_scene()
    await scene.catalog.store("file", [tool("tool_0", "changed"), tool("new")])
    await scene.catalog.keep_only("file", ["tool_0", "tool_1", "tool_2", "new"])
    examination = await examine(scene)
    assert examination == DoctorReport(items=4, points=4, pending=3)
    assert examination.healthy


async def test_items_that_keep_failing_are_listed_and_make_the_report_unhealthy() -> None:
    scene = await healthy_scene()
    await scene.catalog.store("file", [tool(POISON)])
    await scene.drain()
    examination = await examine(scene)
    assert examination.failing == ((5, "it is poisonous"),)
    assert not examination.healthy


@pytest.mark.parametrize("page", [1, 2, 3])
async def test_pages_of_any_size_give_the_same_report(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await healthy_scene(7)
    index = await scene.index()
    await index.remove([PointVersion(id_, 10**9) for id_ in (1, 4, 7)])
    await index.put([await point(id_, 1) for id_ in (8, 20)])
    monkeypatch.setattr(doctor, "PAGE", page)
    assert await examine(scene) == DoctorReport(items=7, points=6, missing=3, extra=2)
    assert await repaired(scene) == DoctorReport(items=7, points=7)


async def test_progress_is_reported_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await healthy_scene(5)
    monkeypatch.setattr(doctor, "PAGE", 2)
    seen: list[Progress] = []
    await (await scene.doctor()).examine(on_progress=seen.append)
    assert [(progress.done, progress.total) for progress in seen] == [(2, 5), (4, 5), (5, 5)]


class BusyIndex(MemoryIndex):
    """Runs a callback right after each of its first scans."""

    def __init__(self, inner: Index, after_scan: Callable[[], object]) -> None:
        super().__init__(inner.card)
        assert isinstance(inner, MemoryIndex)
        self._points = inner._points
        self._after_scan = after_scan
        self._scans = 0

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        page = await super().scan(after, limit)
        self._scans += 1
        if self._scans <= 4:
            await self._after_scan()  # type: ignore[misc]
        return page


@pytest.mark.parametrize("change", ["changes", "is new", "is removed"])
async def test_items_indexed_during_the_examination_are_no_error(change: str) -> None:
    scene = await healthy_scene()

    async def work_continues() -> None:
        await scene.drain()
        if change == "changes":
            await scene.catalog.store("file", [tool("tool_1", f"at {scene.catalog._dirty.next_version()}")])
        elif change == "is new":
            await scene.catalog.store("file", [tool(f"new {scene.catalog._dirty.next_version()}")])
        else:
            await scene.catalog.keep_only("file", ["tool_0", "tool_2", "tool_3"])

    await work_continues()
    opened = await scene.open()
    busy = replace(opened, index=opened.index.wrapped(lambda index, _: BusyIndex(index, work_continues)))
    examination = await Doctor(scene.catalog, scene.dirty, scene.skill_vectors, busy).examine()
    assert (examination.missing, examination.stale, examination.extra) == (0, 0, 0)


async def scene_with_skills() -> Scene:
    scene = await healthy_scene()
    for name in ("mail", "maps"):
        await scene.taxonomy.add(Skill(name, name), "ann")
    await scene.drain()
    assert (await examine(scene)).skills == 2
    return scene


async def lose_skill_point(scene: Scene) -> None:
    await (await scene.open()).skills.remove([PointVersion(skill_point_id("mail"), 10**9)])


async def make_skill_point_older(scene: Scene) -> None:
    await lose_skill_point(scene)
    await (await scene.open()).skills.put([await point(skill_point_id("mail"), 1)])


async def add_unknown_skill_point(scene: Scene) -> None:
    await (await scene.open()).skills.put([await point(99, 1)])


@pytest.mark.requirement("SK-007")
@pytest.mark.parametrize("harm", [lose_skill_point, make_skill_point_older, add_unknown_skill_point])
async def test_a_wrong_skill_point_is_found_and_repaired(
    harm: Callable[[Scene], Awaitable[None]],
) -> None:
    scene = await scene_with_skills()
    await harm(scene)
    examination = await examine(scene)
    assert (examination.wrong_skills, examination.healthy) == (1, False)
    assert await repaired(scene) == DoctorReport(items=4, points=4, skills=2)


async def test_a_skill_point_that_is_not_written_yet_is_no_error() -> None:
    scene = await scene_with_skills()
    await scene.taxonomy.add(Skill("new", "New"), "ann")
    await scene.taxonomy.change(Skill("mail", "Post"), "ann")
    assert (await examine(scene)).healthy
