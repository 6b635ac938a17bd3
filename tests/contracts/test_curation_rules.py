"""Contract of CurationRules: the rules of people, by namespace, with limits, revisions and an audit."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.conftest import PATIENCE
from tests.contracts.builders import tools
from tests.contracts.paging import stays_whole
from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.postgres.pool import open_pool
from toolscript.core.retrieval.curation import MAX_RULES, Rule, RuleKind
from toolscript.testing import MemoryCatalog, MemoryCurationRules, MemoryDirtySet, MemoryTaxonomy
from toolscript.tools.model.curation import StoredRule
from toolscript.tools.ports import Catalog, CurationRules, Taxonomy
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.curation import PostgresCurationRules
from toolscript.tools.postgres.skills import PostgresTaxonomy

pytestmark = pytest.mark.requirement("SK-010")

RED, BLUE = "red", "blue"


@dataclass(frozen=True)
class Scene:
    catalog: Catalog
    taxonomy: Taxonomy
    rules: CurationRules

    async def tool_of(self, namespace: str = "default") -> int:
        """Store a tool in a namespace, and return its id."""
        before = [point.id for point in await self.catalog.scan(0, 1000)]
        await self.catalog.of(namespace).store(f"source of {namespace}", tools(1))
        (added,) = [point.id for point in await self.catalog.scan(0, 1000) if point.id not in before]
        return added


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        catalog = MemoryCatalog(MemoryDirtySet())
        taxonomy = MemoryTaxonomy(catalog)
        yield Scene(catalog, taxonomy, MemoryCurationRules(catalog, taxonomy))
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=8, wait_seconds=PATIENCE) as pool:
            yield Scene(PostgresCatalog(pool), PostgresTaxonomy(pool), PostgresCurationRules(pool))


def synonym(words: str, means: str = "pull request", *, mutual: bool = False) -> Rule:
    return Rule(RuleKind.SYNONYM, words, means=means, mutual=mutual)


def promote(words: str, tool: int) -> Rule:
    return Rule(RuleKind.PROMOTE, words, tool)


def never(words: str, tool: int) -> Rule:
    return Rule(RuleKind.NEVER, words, tool)


async def test_rules_of_every_kind_are_stored_found_and_listed_in_order_of_id(scene: Scene) -> None:
    tool = await scene.tool_of()
    rules = [synonym("PR", mutual=True), promote("öffnen 日本", tool), never("delete", tool)]
    stored = [await scene.rules.add(rule, "ann") for rule in rules]
    assert [row.rule for row in stored] == rules
    assert [row.tool_name for row in stored] == ["", "server__tool_0", "server__tool_0"]
    assert {row.namespace for row in stored} == {"default"}
    assert await scene.rules.page(0, 10) == stored
    assert await scene.rules.page(stored[0].id, 1) == stored[1:2]
    assert [await scene.rules.find(row.id) for row in stored] == stored
    assert await scene.rules.all(["default"]) == rules


async def test_a_rule_is_changed_and_removed_and_each_write_is_audited(scene: Scene) -> None:
    first, second = await scene.tool_of(RED), await scene.tool_of(BLUE)
    row = await scene.rules.add(promote("open", first), "ann", RED)
    changed = await scene.rules.change(row.id, promote("open ticket", first), "bob")
    assert (changed.id, changed.rule, changed.namespace) == (row.id, promote("open ticket", first), RED)
    assert changed.updated_at >= changed.created_at == row.created_at
    with pytest.raises(NotFound, match=f"no item {second}"):
        await scene.rules.change(row.id, promote("open ticket", second), "bob")
    await scene.rules.remove(row.id, "eve")
    with pytest.raises(NotFound, match="no rule"):
        await scene.rules.find(row.id)
    entries = [entry for _, entry in await scene.taxonomy.audit(None, 10)]
    assert [(entry.actor, entry.action, entry.subject, entry.namespace) for entry in entries] == [
        ("eve", "curation.remove", str(row.id), RED),
        ("bob", "curation.change", str(row.id), RED),
        ("ann", "curation.add", str(row.id), RED),
    ]
    assert entries[1].details == {
        "before": {"kind": "promote", "words": "open", "tool_id": first, "means": "", "mutual": False},
        "after": {"kind": "promote", "words": "open ticket", "tool_id": first, "means": "", "mutual": False},
    }


async def test_a_change_to_the_same_is_none(scene: Scene) -> None:
    row = await scene.rules.add(synonym("PR"), "ann")
    before = await scene.rules.revisions(["default"])
    assert await scene.rules.change(row.id, row.rule, "bob") == row
    assert [entry.actor for _, entry in await scene.taxonomy.audit(None, 10)] == ["ann"]
    assert [*before] == ["default"]


async def test_unknown_rules_and_items_are_refused(scene: Scene) -> None:
    for refused in (
        scene.rules.find(999),
        scene.rules.change(999, synonym("PR"), "ann"),
        scene.rules.remove(999, "ann"),
        scene.rules.add(promote("x", 999), "ann"),
    ):
        with pytest.raises(NotFound):
            await refused
    gone = await scene.tool_of()
    await scene.catalog.keep_only("source of default", [])
    with pytest.raises(NotFound, match=f"no item {gone}"):
        await scene.rules.add(promote("x", gone), "ann")
    assert await scene.rules.page(0, 10) == []


async def test_a_blank_reviewer_is_refused(scene: Scene) -> None:
    with pytest.raises(InvalidRequest, match="reviewer"):
        await scene.rules.add(synonym("PR"), " ")


async def test_the_same_rule_twice_in_a_namespace_is_refused(scene: Scene) -> None:
    await scene.rules.add(synonym("PR"), "ann", RED)
    other = await scene.rules.add(synonym("MR"), "ann", RED)
    await scene.rules.add(synonym("PR"), "ann", BLUE)
    with pytest.raises(Conflict, match="already"):
        await scene.rules.add(synonym("PR", mutual=True), "ann", RED)
    with pytest.raises(Conflict, match="already"):
        await scene.rules.change(other.id, synonym("PR"), "ann")
    changed = await scene.rules.change(other.id, synonym("MR", mutual=True), "ann")
    assert changed.rule.mutual


async def test_a_rule_about_an_item_that_left_waits_for_it(scene: Scene) -> None:
    tool = await scene.tool_of()
    row = await scene.rules.add(never("x", tool), "ann")
    await scene.catalog.keep_only("source of default", [])
    assert await scene.rules.find(row.id) == row
    changed = await scene.rules.change(row.id, never("y", tool), "ann")
    assert changed.rule.words == "y"


async def test_a_view_sees_and_changes_only_the_rules_of_its_namespaces(scene: Scene) -> None:
    red_tool = await scene.tool_of(RED)
    red, blue = (
        await scene.rules.add(promote("x", red_tool), "ann", RED),
        await scene.rules.add(synonym("PR"), "ann", BLUE),
    )
    view = scene.rules.within(frozenset({BLUE}))
    assert await view.page(0, 10) == [blue]
    assert await view.find(blue.id) == blue
    for refused in (
        view.find(red.id),
        view.change(red.id, promote("y", red_tool), "eve"),
        view.remove(red.id, "eve"),
        view.add(promote("x", red_tool), "eve", BLUE),
    ):
        with pytest.raises(NotFound):
            await refused
    assert await scene.rules.all([RED]) == [red.rule]
    assert await scene.rules.all([BLUE, RED]) == [red.rule, blue.rule]
    assert await scene.rules.all(["green"]) == []


async def test_the_revision_of_a_namespace_changes_with_every_write_in_it(scene: Scene) -> None:
    assert await scene.rules.revisions([RED, BLUE]) == {}
    row = await scene.rules.add(synonym("PR"), "ann", RED)
    seen = [await scene.rules.revisions([RED, BLUE])]
    await scene.rules.change(row.id, synonym("MR"), "ann")
    seen.append(await scene.rules.revisions([RED, BLUE]))
    await scene.rules.remove(row.id, "ann")
    seen.append(await scene.rules.revisions([RED, BLUE]))
    await scene.rules.add(synonym("CR"), "ann", BLUE)
    assert (await scene.rules.revisions([RED, BLUE]))[RED] == seen[-1][RED]
    assert len({revisions[RED] for revisions in seen}) == 3


async def test_a_namespace_takes_so_many_rules_and_no_more(scene: Scene) -> None:
    for number in range(MAX_RULES):
        await scene.rules.add(synonym(f"w{number}"), "ann", RED)
    with pytest.raises(InvalidRequest, match="more than 1,000 rules"):
        await scene.rules.add(synonym("PR"), "ann", RED)
    await scene.rules.add(synonym("PR"), "ann", BLUE)


async def test_of_equal_rules_added_at_once_one_is_stored(scene: Scene) -> None:
    adding = [scene.rules.add(synonym("PR"), "ann") for _ in range(6)]
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(isinstance(result, StoredRule) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 5
    assert len(await scene.rules.page(0, 10)) == 1


async def test_a_walk_through_the_rules_stays_whole(scene: Scene) -> None:
    for number in range(8):
        await scene.rules.add(synonym(f"w{number}"), "ann", RED if number % 2 else BLUE)

    async def read(after: int, limit: int) -> list[int]:
        view = scene.rules.within(frozenset({RED, BLUE}))
        return [row.id for row in await view.page(after, limit)]

    async def appear() -> object:
        return await scene.rules.add(synonym("new"), "ann", RED)

    await stays_whole(read, 0, vanish=lambda key: scene.rules.remove(key, "ann"), appear=appear)
