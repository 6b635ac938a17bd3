"""Contract of the catalog's stores with namespaces: none sees, counts or changes what is in another."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import pytest

from tests.conftest import PATIENCE
from tests.contracts.builders import FIRST, axis, sure, tool, tools
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.taxonomy import (
    AuditEntry,
    Classification,
    Classified,
    EnhancedDescription,
    Skill,
    SuggestedSkill,
    SuggestionState,
    skill_point_id,
)
from toolscript.testing import (
    MemoryAssignments,
    MemoryCatalog,
    MemoryCatalogContents,
    MemoryDirtySet,
    MemorySkillVectors,
    MemorySuggestions,
    MemorySyncJobs,
    MemoryTaxonomy,
)
from toolscript.tools.model.catalog import MAX_JOBS_KEPT, ChangeState, ItemFilter, JobProgress, JobState
from toolscript.tools.model.centroids import Counted
from toolscript.tools.ports import (
    Assignments,
    Catalog,
    CatalogContents,
    DirtySet,
    ItemChanges,
    SkillVectors,
    Suggestions,
    SyncJobs,
    Taxonomy,
)
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

pytestmark = pytest.mark.requirement("AP-005")

RED, BLUE = "red", "blue"
ALL = ItemFilter()
START = ("", "")
NOTHING: frozenset[str] = frozenset()
VIEWS: list[Namespaces] = [frozenset({RED}), frozenset({BLUE}), frozenset({RED, DEFAULT_NAMESPACE}), NOTHING, None]


def name_of_view(view: Namespaces) -> str:
    """Return the same name in every process: the order of a set differs."""
    return "all" if view is None else "+".join(sorted(view)) or "nothing"


def seen_by(view: Namespaces, namespaces: Sequence[str] = (RED, BLUE, DEFAULT_NAMESPACE)) -> list[str]:
    return sorted(name for name in namespaces if view is None or name in view)


@dataclass(frozen=True)
class Scene:
    """The stores of a catalog; `holding` holds changes, and `changes_audit` returns the decisions about them."""

    catalog: Catalog
    holding: Catalog
    contents: CatalogContents
    changes: ItemChanges
    jobs: SyncJobs
    dirty: DirtySet
    taxonomy: Taxonomy
    assignments: Assignments
    suggestions: Suggestions
    skill_vectors: SkillVectors
    changes_audit: Callable[[], Awaitable[Sequence[AuditEntry]]]

    async def ids(self, namespace: str) -> list[int]:
        seen = self.contents.within(frozenset({namespace}))
        return [item.id for item in await seen.page(0, 1_000, ALL)]

    async def in_each(self, store: Callable[[Catalog, str], Awaitable[object]]) -> None:
        for namespace in (RED, BLUE, DEFAULT_NAMESPACE):
            await store(self.catalog.of(namespace), namespace)

    async def classify(self, item_id: int, *assignments: Assignment, asks_for: str = "") -> None:
        (stored,) = await self.catalog.items([item_id])
        suggestion = SuggestedSkill(asks_for) if asks_for else None
        result = Classification(assignments, suggestion)
        await self.assignments.record([Classified(item_id, stored.version, result, stored.namespace)])

    async def count(self) -> None:
        """Count every dirty item as a member of its skills, with a vector of its namespace."""
        claim = await self.dirty.claim(FIRST, 1_000, 60)
        vectors = {RED: axis(0), BLUE: axis(1), DEFAULT_NAMESPACE: axis(2)}
        items = [item for item in await self.catalog.items(list(claim.versions)) if item.is_active]
        counted = [
            Counted(item.id, "text", vectors[item.namespace], dict.fromkeys(item.skill_ids, 9_000), item.namespace)
            for item in items
        ]
        await self.skill_vectors.count(FIRST, claim, counted)
        await self.dirty.clear(FIRST, claim)


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        yield in_memory()
        return
    async with open_pool(request.getfixturevalue("postgres_url"), size=8, wait_seconds=PATIENCE) as pool:
        yield in_postgres(pool)


def in_memory() -> Scene:
    dirty = MemoryDirtySet()
    catalog = MemoryCatalog(dirty)
    taxonomy = MemoryTaxonomy(catalog)
    suggestions = MemorySuggestions(catalog, taxonomy)
    vectors = MemorySkillVectors(dirty, taxonomy.skills)
    taxonomy.count_tools = partial(vectors.members, FIRST)
    holding = catalog.of(DEFAULT_NAMESPACE)
    holding.hold_changes = True

    async def changes_audit() -> Sequence[AuditEntry]:
        return catalog.changes.audited

    return Scene(
        catalog,
        holding,
        MemoryCatalogContents(catalog),
        catalog.changes,
        MemorySyncJobs(),
        dirty,
        taxonomy,
        MemoryAssignments(catalog, taxonomy, suggestions),
        suggestions,
        vectors,
        changes_audit,
    )


def in_postgres(pool: Pool) -> Scene:
    taxonomy = PostgresTaxonomy(pool)

    async def changes_audit() -> Sequence[AuditEntry]:
        return [entry for _, entry in await taxonomy.audit(None, 100)]

    return Scene(
        PostgresCatalog(pool),
        PostgresCatalog(pool, hold_changes=True),
        PostgresCatalogContents(pool),
        PostgresItemChanges(pool),
        PostgresSyncJobs(pool),
        PostgresDirtySet(pool),
        taxonomy,
        PostgresAssignments(pool),
        PostgresSuggestions(pool),
        PostgresSkillVectors(pool),
        changes_audit,
    )


@asynccontextmanager
async def refused_as_unknown(unknown: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Expect the error of an id that never was, but for the id."""
    with pytest.raises(NotFound) as never:
        await unknown()
    with pytest.raises(NotFound) as error:
        yield
    assert blank(error.value) == blank(never.value)


def blank(error: NotFound) -> tuple[str, str | None, list[str]]:
    return "".join(sign for sign in error.message if not sign.isdigit()), error.hint, sorted(error.details)


UNKNOWN = 9_999_999


async def test_equal_sources_and_keys_of_two_namespaces_do_not_touch_each_other(scene: Scene) -> None:
    red, blue = scene.catalog.of(RED), scene.catalog.of(BLUE)
    assert await red.store("file", tools(3)) == StoreReport(added=3)
    assert await blue.store("file", tools(3, "other")) == StoreReport(added=3)
    assert await scene.catalog.store("file", tools(2)) == StoreReport(added=2)
    assert await red.store("file", tools(3, "changed")) == StoreReport(changed=3)
    assert await blue.store("file", tools(3, "other")) == StoreReport(unchanged=3)
    assert await blue.keep_only("file", [tool("tool_0").key]) == 2
    assert await red.remove("file", [tool("tool_1").key]) == 1
    seen = await scene.contents.page(0, 100, ALL)
    assert [(item.namespace, item.item.name, item.item.description) for item in seen] == [
        (RED, "tool_0", "changed"),
        (RED, "tool_2", "changed"),
        (BLUE, "tool_0", "other"),
        (DEFAULT_NAMESPACE, "tool_0", ""),
        (DEFAULT_NAMESPACE, "tool_1", ""),
    ]
    counts = {(source.name, source.namespace): source.items for source in await scene.contents.sources(START, 10)}
    assert counts == {("file", BLUE): 1, ("file", DEFAULT_NAMESPACE): 2, ("file", RED): 2}


async def test_items_and_what_is_scanned_say_their_namespace(scene: Scene) -> None:
    await scene.in_each(lambda catalog, _: catalog.store("file", tools(1)))
    scanned = await scene.catalog.scan(0, 10)
    assert [point.namespace for point in scanned] == [RED, BLUE, DEFAULT_NAMESPACE]
    stored = await scene.catalog.items([point.id for point in scanned])
    assert [item.namespace for item in stored] == [RED, BLUE, DEFAULT_NAMESPACE]
    assert await scene.catalog.of(RED).count() == 3


async def test_a_namespace_with_an_impossible_name_is_refused(scene: Scene) -> None:
    for name in ("", "Red", "a/b", "a.b", "x" * 64):
        with pytest.raises(InvalidRequest, match="name of a namespace"):
            scene.catalog.of(name)
        with pytest.raises(InvalidRequest, match="name of a namespace"):
            await scene.jobs.add("file", name)


@pytest.mark.parametrize("view", VIEWS, ids=name_of_view)
async def test_a_view_lists_its_own_items_and_sources(scene: Scene, view: Namespaces) -> None:
    prompt = Item("p", ItemKind.PROMPT, "other", "greet")
    await scene.in_each(lambda catalog, name: catalog.store("file", [*tools(2, name), prompt]))
    await scene.catalog.of(BLUE).store("only blue", [tool("secret")])
    contents = scene.contents.within(view)
    for wanted in (ALL, ItemFilter(source="file"), ItemFilter(server="server"), ItemFilter(kind=ItemKind.PROMPT)):
        listed = await contents.page(0, 100, wanted)
        assert sorted({item.namespace for item in listed}) == seen_by(view)
        assert [item.id for item in listed] == sorted(item.id for item in listed)
    for namespace in (RED, BLUE, "nobodys"):
        chosen = await contents.page(0, 100, ItemFilter(namespace=namespace))
        assert {item.namespace for item in chosen} == {namespace} & set(seen_by(view))
    sources = [(source.name, source.namespace) for source in await contents.sources(START, 100)]
    expected = [("file", name) for name in seen_by(view)] + [("only blue", name) for name in seen_by(view, [BLUE])]
    assert sources == expected
    assert (await contents.source("only blue", BLUE) is None) == (BLUE not in seen_by(view))
    assert await contents.source("only blue") is None


async def test_a_view_neither_finds_nor_removes_an_item_outside(scene: Scene) -> None:
    await scene.in_each(lambda catalog, _: catalog.store("file", tools(2)))
    (other, _), contents = await scene.ids(BLUE), scene.contents.within(frozenset({RED}))
    async with refused_as_unknown(lambda: contents.find(UNKNOWN)):
        await contents.find(other)
    async with refused_as_unknown(lambda: contents.remove(UNKNOWN)):
        await contents.remove(other)
    assert await contents.remove_source("file", 10, BLUE) == 0
    assert await contents.remove_source("file", 10, RED) == 2
    counts = {source.namespace: source.items for source in await scene.contents.sources(START, 10)}
    assert counts == {BLUE: 2, DEFAULT_NAMESPACE: 2}
    assert (await scene.contents.within(frozenset({BLUE})).find(other)).namespace == BLUE


async def test_pages_of_several_namespaces_are_complete_when_rows_vanish_between_them(scene: Scene) -> None:
    for number in range(9):
        await scene.catalog.of((RED, BLUE, "grey")[number % 3]).store("file", [tool(f"tool_{number}")])
    contents = scene.contents.within(frozenset({RED, BLUE}))
    everything = [item.id for item in await contents.page(0, 100, ALL)]
    first = [item.id for item in await contents.page(0, 2, ALL)]
    # One that was on the page, and one that was to come.
    await scene.contents.remove(first[-1])
    await scene.contents.remove(everything[3])
    second = [item.id for item in await contents.page(first[-1], 2, ALL)]
    third = [item.id for item in await contents.page(second[-1], 2, ALL)]
    assert first + second + third == [id_ for id_ in everything if id_ != everything[3]]


async def test_sources_of_several_namespaces_are_paged_in_order_of_name_and_namespace(scene: Scene) -> None:
    for name in ("b", "a", "c"):
        for namespace in (RED, "grey", BLUE):
            await scene.catalog.of(namespace).store(name, tools(1))
    for view, expected in ((frozenset({RED, BLUE}), [BLUE, RED]), (None, [BLUE, "grey", RED])):
        after, seen = START, []
        while page := await scene.contents.within(view).sources(after, 2):
            seen += [(source.name, source.namespace) for source in page]
            after = seen[-1]
        assert seen == [(name, namespace) for name in ("a", "b", "c") for namespace in expected]


@pytest.mark.parametrize("view", VIEWS, ids=name_of_view)
async def test_a_view_lists_its_own_changes(scene: Scene, view: Namespaces) -> None:
    await scene.in_each(lambda catalog, _: catalog.store("file", tools(1)))
    await scene.in_each(lambda catalog, name: catalog.store("file", tools(1, name)))
    for state in (None, ChangeState.APPLIED):
        listed = await scene.changes.within(view).page(None, 10, state)
        assert sorted(change.namespace for change in listed) == seen_by(view)
        assert [change.id for change in listed] == sorted((change.id for change in listed), reverse=True)
    assert await scene.changes.within(view).page(None, 10, ChangeState.HELD) == []
    for change in await scene.changes.page(None, 10):
        if change.namespace in seen_by(view):
            assert (await scene.changes.within(view).find(change.id)).new == {"description": change.namespace}
        else:
            async with refused_as_unknown(lambda: scene.changes.within(view).find(UNKNOWN)):
                await scene.changes.within(view).find(change.id)


async def test_a_view_decides_about_its_own_changes_only(scene: Scene) -> None:
    for namespace in (RED, BLUE):
        await scene.catalog.of(namespace).store("file", tools(2))
        report = await scene.holding.of(namespace).store("file", tools(2, "new"))
        assert report == StoreReport(held=2)
    red = scene.changes.within(frozenset({RED}))
    mine, mine_too, other, _ = [change.id for change in reversed(await scene.changes.page(None, 10))]
    for decide in (red.approve, red.reject):
        async with refused_as_unknown(partial(decide, UNKNOWN, "ann")):
            await decide(other, "ann")
    assert (await red.approve(mine, "ann")).namespace == RED
    assert (await red.reject(mine_too, "ann")).state is ChangeState.REJECTED
    assert {change.namespace for change in await scene.changes.page(None, 10, ChangeState.HELD)} == {BLUE}
    new = [item.namespace for item in await scene.contents.page(0, 10, ALL) if item.item.description == "new"]
    assert new == [RED]


async def test_a_view_lists_and_changes_its_own_jobs(scene: Scene) -> None:
    jobs = {name: await scene.jobs.add("file", name) for name in (RED, BLUE)}
    jobs[DEFAULT_NAMESPACE] = await scene.jobs.add("file")
    for view in VIEWS:
        listed = await scene.jobs.within(view).page(None, 10)
        assert sorted(job.namespace for job in listed) == seen_by(view)
        assert [job.id for job in listed] == sorted((job.id for job in listed), reverse=True)
    red, other = scene.jobs.within(frozenset({RED})), jobs[BLUE].id
    assert await red.find(jobs[RED].id) == jobs[RED]
    async with refused_as_unknown(lambda: red.find(UNKNOWN)):
        await red.find(other)
    await red.start(other)
    await red.beat([JobProgress(other, 5, 5), JobProgress(jobs[RED].id, 3, 4)])
    await red.interrupt([other])
    await red.finish(other, JobState.FAILED, error="no")
    assert await scene.jobs.find(other) == jobs[BLUE]
    assert (await scene.jobs.find(jobs[RED].id)).done == 3


async def test_jobs_of_a_neighbour_do_not_push_out_those_of_a_namespace(scene: Scene) -> None:
    first = await scene.jobs.add("file", RED)
    await scene.jobs.finish(first.id, JobState.DONE)
    for _ in range(MAX_JOBS_KEPT + 1):
        await scene.jobs.interrupt([(await scene.jobs.add("file", BLUE)).id])
    assert (await scene.jobs.find(first.id)).state is JobState.DONE
    assert len(await scene.jobs.within(frozenset({BLUE})).page(None, 2 * MAX_JOBS_KEPT)) == MAX_JOBS_KEPT


async def test_equal_suggestions_of_two_namespaces_are_two(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.in_each(lambda catalog, _: catalog.store("file", tools(2)))
    for namespace in (RED, BLUE, DEFAULT_NAMESPACE):
        for item_id in await scene.ids(namespace):
            await scene.classify(item_id, asks_for="Post Office")
    for view in VIEWS:
        for state in (None, SuggestionState.PENDING):
            listed = await scene.suggestions.within(view).page(0, 10, state)
            assert sorted(suggestion.namespace for suggestion in listed) == seen_by(view)
            assert {suggestion.asked_by for suggestion in listed} <= {2}
    mine, other, _ = await scene.suggestions.page(0, 10)
    red = scene.suggestions.within(frozenset({RED}))
    assert await red.asked_by(mine.id, 0, 10) == await scene.ids(RED)
    decisions: list[Callable[[int], Awaitable[object]]] = [
        red.find,
        lambda id_: red.asked_by(id_, 0, 10),
        lambda id_: red.approve(id_, Skill("post", "Post"), "ann"),
        lambda id_: red.reject(id_, "ann"),
        lambda id_: red.merge(id_, "mail", "ann"),
    ]
    for decide in decisions:
        async with refused_as_unknown(partial(decide, UNKNOWN)):
            await decide(other.id)
    await red.merge(mine.id, "mail", "ann")
    assert (await scene.suggestions.find(other.id)).state is SuggestionState.PENDING
    # The decision applies to the items of its namespace, now and later.
    await scene.catalog.of(BLUE).store("more", tools(1))
    await scene.catalog.of(RED).store("more", tools(1))
    for namespace, expected in ((RED, ("mail",)), (BLUE, ())):
        newest = (await scene.ids(namespace))[-1]
        await scene.classify(newest, asks_for="post office")
        assert tuple(found.skill_id for found in await scene.assignments.of(newest)) == expected


async def test_a_classification_with_another_namespace_is_dropped(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.catalog.of(RED).store("file", tools(1))
    (seen,) = await scene.catalog.scan(0, 10)
    result = Classification((sure("mail"),), SuggestedSkill("Post"))
    assert await scene.assignments.record([Classified(seen.id, seen.version, result, BLUE)]) == {}
    right = [Classified(seen.id, seen.version, result, RED)]
    assert await scene.assignments.within(frozenset({BLUE})).record(right) == {}
    assert await scene.suggestions.page(0, 10) == []
    assert (await scene.assignments.record(right)).keys() == {seen.id}


async def test_a_view_assigns_and_reclassifies_its_own_items_only(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.in_each(lambda catalog, _: catalog.store("file", tools(2)))
    for namespace in (RED, BLUE, DEFAULT_NAMESPACE):
        for item_id in await scene.ids(namespace):
            await scene.classify(item_id, sure("mail"))
    (mine, _), (other, _) = await scene.ids(RED), await scene.ids(BLUE)
    red = scene.assignments.within(frozenset({RED}))
    refused: list[Callable[[int], Awaitable[object]]] = [
        red.of,
        lambda id_: red.set_by_hand(id_, ["mail"], "ann"),
        lambda id_: red.release(id_, "ann"),
    ]
    for decide in refused:
        async with refused_as_unknown(partial(decide, UNKNOWN)):
            await decide(other)
    both = sorted(await scene.ids(RED) + await scene.ids(DEFAULT_NAMESPACE))
    view = scene.assignments.within(frozenset({RED, DEFAULT_NAMESPACE}))
    for skill_id in (None, "mail"):
        for source in (None, AssignedBy.LLM):
            assert await view.reclassify(0, 10, skill_id=skill_id, source=source) == both
            assert await view.reclassify(both[0], 2, skill_id=skill_id, source=source) == both[1:3]
    assert await view.reclassify(0, 10, source=AssignedBy.HUMAN) == []
    assert len(await scene.assignments.reclassify(0, 10)) == 6
    assert [found.skill_id for found in await red.set_by_hand(mine, ["mail"], "ann")] == ["mail"]
    assert await red.of(mine) == await scene.assignments.of(mine)


async def test_members_and_counts_of_a_skill_are_those_of_the_view(scene: Scene) -> None:
    for skill_id in ("mail", "maps"):
        await scene.taxonomy.add(Skill(skill_id, skill_id.title()), "ann")
    sizes = {RED: 3, BLUE: 2, DEFAULT_NAMESPACE: 1}
    await scene.in_each(lambda catalog, name: catalog.store("file", tools(sizes[name])))
    for namespace in sizes:
        for item_id in await scene.ids(namespace):
            await scene.classify(item_id, sure("mail"))
    await scene.count()
    for view in VIEWS:
        taxonomy, expected = scene.taxonomy.within(view), sum(sizes[name] for name in seen_by(view))
        assert (await taxonomy.find("mail")).tool_count == expected
        assert [entry.tool_count for entry in await taxonomy.page("", 10)] == [expected, 0]
        members = [member.item_id for member in await taxonomy.members("mail", 0, 10)]
        assert members == sorted([id_ for name in seen_by(view) for id_ in await scene.ids(name)])
        assert [member.item_id for member in await taxonomy.members("mail", 0, 2)] == members[:2]
    changed = await scene.taxonomy.within(frozenset({RED})).change(Skill("mail", "Post"), "ann")
    assert changed.tool_count == 3


async def test_the_audit_of_a_view_has_its_own_entries_and_the_shared_ones(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    for namespace in (RED, BLUE):
        await scene.catalog.of(namespace).store("file", tools(1))
        (item_id,) = await scene.ids(namespace)
        await scene.classify(item_id, asks_for="Post Office")
    for suggestion in await scene.suggestions.page(0, 10):
        await scene.suggestions.reject(suggestion.id, "ann")
    for namespace in (RED, BLUE):
        (item_id,) = await scene.ids(namespace)
        await scene.assignments.set_by_hand(item_id, ["mail"], "ann")
        await scene.assignments.release(item_id, "ann")
    own = ["item.release", "item.assign", "suggestion.reject"]
    for view, expected in ((frozenset({RED}), own), (NOTHING, []), (frozenset({"grey"}), [])):
        entries = await scene.taxonomy.within(view).audit(None, 100)
        assert [entry.action for _, entry in entries] == [*expected, "skill.add"]
        assert {entry.namespace for _, entry in entries} == {None, *(view if expected else ())}
    everything = [number for number, _ in await scene.taxonomy.audit(None, 100)]
    assert len(everything) == 7
    both, before, seen = scene.taxonomy.within(frozenset({RED, BLUE})), None, []
    while page := await both.audit(before, 2):
        seen += [number for number, _ in page]
        before = seen[-1]
    assert seen == everything


async def test_decisions_about_changes_are_audited_in_their_namespace(scene: Scene) -> None:
    await scene.catalog.of(RED).store("file", tools(1))
    await scene.holding.of(RED).store("file", tools(1, "new"))
    (held,) = await scene.changes.page(None, 10)
    await scene.changes.approve(held.id, "ann")
    assert [(entry.action, entry.namespace) for entry in await scene.changes_audit()] == [("change.approve", RED)]


async def test_a_skill_has_a_centroid_and_a_point_in_each_namespace(scene: Scene) -> None:
    for skill_id in ("mail", "maps"):
        await scene.taxonomy.add(Skill(skill_id, skill_id.title()), "ann")
    for namespace in (RED, BLUE):
        await scene.catalog.of(namespace).store("file", tools(2))
        for item_id in await scene.ids(namespace):
            await scene.classify(item_id, sure("mail"))
    await scene.count()
    states = await scene.skill_vectors.behind(FIRST, 100)
    totals = {(state.skill.id, state.namespace): state.total for state in states}
    assert {key: total.members for key, total in totals.items()} == {
        ("mail", DEFAULT_NAMESPACE): 0,
        ("maps", DEFAULT_NAMESPACE): 0,
        ("mail", RED): 2,
        ("mail", BLUE): 2,
    }
    for namespace, direction in ((RED, 0), (BLUE, 1)):
        mean = totals["mail", namespace].mean()
        assert mean is not None
        assert mean.tolist() == axis(direction).tolist()
    written = await scene.skill_vectors.written(FIRST)
    assert written.keys() == {skill_point_id(*key) for key in totals}
    assert (await scene.skill_vectors.written(FIRST, RED)).keys() == {skill_point_id("mail", RED)}
    assert len(await scene.skill_vectors.written(FIRST, DEFAULT_NAMESPACE)) == 2
    rebuilt = await scene.skill_vectors.rebuild(FIRST)
    assert (rebuilt.skills, rebuilt.items, rebuilt.mended) == (4, 4, ())


async def test_only_the_point_of_the_namespace_that_moved_is_out_of_date(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    for namespace in (RED, BLUE):
        await scene.catalog.of(namespace).store("file", tools(2))
        for item_id in await scene.ids(namespace):
            await scene.classify(item_id, sure("mail"))
    await scene.count()
    await follow(scene)
    await scene.catalog.of(RED).remove("file", [tool("tool_0").key])
    await scene.count()
    (moved,) = await scene.skill_vectors.behind(FIRST, 100)
    assert (moved.namespace, moved.total.members) == (RED, 1)
    await scene.skill_vectors.mark_indexed(FIRST, [replace(moved, namespace=BLUE)])
    assert [state.namespace for state in await scene.skill_vectors.behind(FIRST, 100)] == [RED]
    await follow(scene)
    # A skill is shared: its text is out of date everywhere.
    await scene.taxonomy.change(Skill("mail", "Post"), "ann")
    behind = await scene.skill_vectors.behind(FIRST, 100)
    assert sorted(state.namespace for state in behind) == [BLUE, DEFAULT_NAMESPACE, RED]
    assert {state.skill.name for state in behind} == {"Post"}


async def follow(scene: Scene) -> None:
    await scene.skill_vectors.mark_indexed(FIRST, await scene.skill_vectors.behind(FIRST, 100))
    assert await scene.skill_vectors.behind(FIRST, 100) == []


async def test_the_last_item_of_a_namespace_leaves_an_empty_centroid(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.catalog.of(RED).store("file", tools(1))
    (item_id,) = await scene.ids(RED)
    await scene.classify(item_id, sure("mail"))
    await scene.count()
    await scene.contents.remove(item_id)
    await scene.count()
    states = {state.namespace: state.total for state in await scene.skill_vectors.behind(FIRST, 100)}
    assert states[RED].is_nothing
    assert (await scene.taxonomy.within(frozenset({RED})).find("mail")).tool_count == 0


async def test_a_view_shows_the_description_that_its_own_items_gave_a_skill(scene: Scene) -> None:
    await scene.taxonomy.add(Skill("mail", "Mail"), "ann")
    await scene.in_each(lambda catalog, namespace: catalog.store(namespace, tools(1, namespace)))
    for namespace in (RED, BLUE):
        (id_,) = await scene.ids(namespace)
        await scene.classify(id_, sure("mail"))
    await scene.count()
    assert await scene.taxonomy.undescribed(DEFAULT_NAMESPACE, "", 10) == []
    for namespace in (RED, BLUE):
        (entry,) = await scene.taxonomy.undescribed(namespace, "", 10)
        assert entry.tool_count == 1
        await scene.taxonomy.describe([EnhancedDescription(entry, namespace, namespace, AssignedBy.RULES)])

    async def shown(*namespaces: str) -> str:
        return (await scene.taxonomy.within(frozenset(namespaces)).find("mail")).enhanced_description

    assert [await shown(RED), await shown(BLUE), await shown(RED, BLUE)] == [RED, BLUE, BLUE]
    assert [await shown(DEFAULT_NAMESPACE), await shown()] == ["", ""]
