"""Searches of a service with the rules of people, and the copy of the rules in memory."""

import asyncio
from dataclasses import replace

import pytest

from tests.unit.tools.search.builders import Scene
from toolscript.core.errors import CatalogUnavailable
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.curation import Rule, RuleKind
from toolscript.core.retrieval.deadline import Attempt, Deadline
from toolscript.core.retrieval.query import SearchType
from toolscript.testing import MemoryCurationRules, MemoryTaxonomy
from toolscript.tools.curation import CHECK_SECONDS, CurationCopy
from toolscript.tools.model.answer import AbsenceReason, ToolAnswer
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import ToolSearch

READ_FILE, WRITE_FILE, SUMMARY, MAIL = 1, 2, 3, 5
QUERY = ToolQuery("read the contents of a file", limit=10, threshold=0.0, skill_threshold=0.0, explain=True)
PROMOTE = Rule(RuleKind.PROMOTE, "read file", MAIL)
NEVER = Rule(RuleKind.NEVER, "contents", READ_FILE)
SYNONYM = Rule(RuleKind.SYNONYM, "post", means="electronic letter")

EVERY_TYPE = pytest.mark.parametrize("search_type", SearchType)
EVERY_STRATEGY = pytest.mark.parametrize("strategy", Strategy)


class WatchedRules(MemoryCurationRules):
    failure: Exception | None = None
    seconds = 0.0
    reads = 0

    async def revisions(self, namespaces: object) -> dict[str, int]:
        if self.failure is not None:
            raise self.failure
        found = {**await super().revisions(namespaces)}  # type: ignore[arg-type]
        await asyncio.sleep(self.seconds)
        return found

    async def all(self, namespaces: object) -> list[Rule]:
        WatchedRules.reads += 1
        return [*await super().all(namespaces)]  # type: ignore[arg-type]


async def rules_of(scene: Scene, *rules: Rule) -> WatchedRules:
    await scene.fill()
    stored = WatchedRules(scene.catalog, MemoryTaxonomy(scene.catalog))
    for rule in rules:
        await stored.add(rule, "ann")
    return stored


async def search(query: ToolQuery, *rules: Rule) -> ToolAnswer:
    scene = Scene()
    return await tool_search(scene, await rules_of(scene, *rules)).search(query)


def tool_search(scene: Scene, rules: MemoryCurationRules) -> ToolSearch:
    from toolscript.core.retrieval.namespaced import DefaultNamespace

    both = DefaultNamespace(scene.index), DefaultNamespace(scene.skills)
    return ToolSearch(scene.embedder, *both, scene.catalog, curation=rules)


def ids(answer: ToolAnswer) -> list[int]:
    return [hit.id for hit in answer.hits]


@EVERY_TYPE
@EVERY_STRATEGY
async def test_a_promoted_tool_is_first_whatever_the_threshold(
    search_type: SearchType, strategy: Strategy
) -> None:
    query = replace(QUERY, search_type=search_type, strategy=strategy, threshold=1.0)
    answer = await search(query, PROMOTE)
    assert ids(answer)[:1] == [MAIL]
    first = answer.hits[0]
    assert first.score == 1.0
    assert first.explanation is not None
    assert (first.explanation.place, first.explanation.promoted_for) == (1, "read file")
    assert answer.rules == (f"tool {MAIL} is promoted for `read file`",)
    if search_type is SearchType.HYBRID:
        assert (first.confidence, answer.good_match) == (1.0, True)


async def test_a_promotion_leaves_the_order_of_the_others() -> None:
    before, after = await search(QUERY), await search(QUERY, PROMOTE)
    assert ids(after) == [MAIL, *(id_ for id_ in ids(before) if id_ != MAIL)]
    parts = {hit.id: hit.explanation.parts for hit in after.hits if hit.explanation}
    assert [hit.explanation.place for hit in after.hits if hit.explanation] == list(range(1, len(after.hits) + 1))
    assert parts[READ_FILE]["name"] > parts[MAIL].get("name", 0)


@pytest.mark.parametrize("filter_", [{"kind": ItemKind.PROMPT}, {"servers": ("fs",)}, {"skill_ids": ("files",)}])
async def test_a_promoted_tool_that_a_filter_leaves_out_is_not_returned(filter_: dict[str, object]) -> None:
    query = replace(QUERY, **filter_)  # type: ignore[arg-type]
    assert ids(await search(query, PROMOTE)) == ids(await search(query))


async def test_a_promoted_tool_that_left_the_index_is_not_returned() -> None:
    scene = Scene()
    rules = await rules_of(scene, PROMOTE)
    await scene.index.remove([point for point in await scene.index.scan(0, 10) if point.id == MAIL])
    answer = await tool_search(scene, rules).search(QUERY)
    assert answer.hits
    assert MAIL not in ids(answer)


@EVERY_TYPE
@EVERY_STRATEGY
async def test_a_tool_that_is_never_for_a_request_is_not_returned(
    search_type: SearchType, strategy: Strategy
) -> None:
    query = replace(QUERY, search_type=search_type, strategy=strategy)
    before, after = await search(query), await search(query, NEVER)
    assert READ_FILE in ids(before)
    assert sorted(ids(after)) == sorted(id_ for id_ in ids(before) if id_ != READ_FILE)
    assert after.rules == (f"tool {READ_FILE} is never for `contents`",)


async def test_why_not_names_the_rule_that_excludes_a_tool() -> None:
    answer = await search(replace(QUERY, about="fs__read_file"), NEVER)
    assert answer.absence is not None
    assert answer.absence.reason is AbsenceReason.EXCLUDED
    assert "never for `contents`" in answer.absence.message


@pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.KEYWORD])
async def test_a_synonym_finds_a_tool_by_other_words(search_type: SearchType) -> None:
    query = replace(QUERY, text="post", search_type=search_type, strategy=Strategy.DIRECT)
    before, after = await search(query), await search(query, SYNONYM)
    assert [hit.score for hit in after.hits if hit.id == MAIL] > [
        hit.score for hit in before.hits if hit.id == MAIL
    ]
    assert ids(after)[0] == MAIL
    if search_type is SearchType.HYBRID:
        assert (before.unmatched, after.unmatched) == (("post",), ())


async def test_rules_that_do_not_apply_and_no_rules_answer_alike() -> None:
    query = replace(QUERY, text="write to a file")
    with_rules, empty = await search(query, PROMOTE, NEVER, SYNONYM), await search(query)
    scene = Scene()
    without = await scene.search(query)
    assert with_rules.hits == empty.hits == without.hits
    assert with_rules.rules == ()
    assert (await search(replace(query, explain=False), PROMOTE)).rules is None


class Copy:
    """A copy with a clock that the test moves."""

    def __init__(self, rules: WatchedRules) -> None:
        self.time = 0.0
        self.copy = CurationCopy(rules, ("default",), lambda: self.time)
        self.attempt = Attempt(Deadline(10))

    async def words(self) -> list[str]:
        return [rule.words for rule in (await self.copy.get(self.attempt)).rules]

    async def later(self) -> list[str]:
        """Return the words after the read that a search has started."""
        self.time += CHECK_SECONDS
        await self.words()
        assert self.copy._reading is not None
        await asyncio.wait([self.copy._reading])
        return await self.words()


async def test_the_first_search_reads_the_rules_and_later_ones_when_they_changed() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy, before = Copy(rules), WatchedRules.reads
    assert await copy.words() == ["read file"]
    row = await rules.add(NEVER, "ann")
    assert await copy.words() == ["read file"], "no search waits for a check"
    assert await copy.later() == ["read file", "contents"]
    assert await copy.later() == ["read file", "contents"]
    assert WatchedRules.reads == before + 2, "unchanged rules were read"
    await rules.remove(row.id, "ann")
    copy.copy.forget()
    assert await copy.words() == ["read file"], "after a write in this process the next search sees it"


async def test_a_catalog_that_fails_leaves_the_rules_that_were_read() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    await copy.words()
    rules.failure = CatalogUnavailable("down")
    assert await copy.later() == ["read file"]
    assert copy.attempt.parts_failed == ()


async def test_without_the_catalog_searches_say_so_do_not_wait_and_get_the_rules_later() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    rules.failure = CatalogUnavailable("down")
    assert await copy.words() == []
    assert copy.attempt.parts_failed == ("curation",)
    assert await copy.later() == []
    copy.attempt = Attempt(Deadline(10))
    assert await copy.words() == []
    assert copy.attempt.parts_failed == ("curation",), "every search without rules says so"
    rules.failure = None
    assert await copy.later() == ["read file"]
    copy.attempt = Attempt(Deadline(10))
    await copy.words()
    assert copy.attempt.parts_failed == ()


async def test_after_a_write_no_search_goes_without_the_rules_of_before() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    await copy.words()
    await rules.add(NEVER, "ann")
    copy.copy.forget()
    rules.seconds = 0.05
    first = asyncio.ensure_future(copy.words())
    await asyncio.sleep(0.01)
    # It comes while the first one reads, and waits for the same rules.
    assert await copy.words() == await first == ["read file", "contents"]
    assert copy.attempt.parts_failed == ()

    rules.failure = CatalogUnavailable("down")
    copy.copy.forget()
    copy.attempt = Attempt(Deadline(10))
    assert await copy.words() == await copy.words() == ["read file", "contents"]
    assert copy.attempt.parts_failed == ("curation",)


async def test_rules_written_while_they_are_read_are_in_what_searches_wait_for() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    rules.seconds = 0.05
    first = asyncio.ensure_future(copy.words())
    await asyncio.sleep(0.01)
    await rules.add(NEVER, "ann")
    copy.copy.forget()
    assert await copy.words() == ["read file", "contents"]
    assert "read file" in await first


async def test_a_search_that_is_given_up_does_not_take_the_rules_from_others() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    rules.seconds = 0.05
    first = asyncio.ensure_future(copy.words())
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(copy.words())
    await asyncio.sleep(0.01)
    first.cancel()
    assert await second == ["read file"]
    assert await copy.words() == ["read file"]
    assert copy.attempt.parts_failed == ()


async def test_a_catalog_that_hangs_holds_up_one_search() -> None:
    rules = await rules_of(Scene(), PROMOTE)
    copy = Copy(rules)
    rules.seconds = 2.0
    hurried = Attempt(Deadline(0.05))
    assert [*(await copy.copy.get(hurried)).rules] == []
    assert await copy.words() == []
    assert copy.attempt.parts_failed == ("curation",)
    assert copy.copy._reading is not None
    await copy.copy._reading
    copy.attempt = Attempt(Deadline(10))
    assert await copy.words() == ["read file"]
    assert copy.attempt.parts_failed == ()


async def test_a_search_goes_on_without_rules_when_the_catalog_does_not_answer() -> None:
    scene = Scene()
    rules = await rules_of(scene, PROMOTE)
    rules.failure = CatalogUnavailable("down")
    answer = await tool_search(scene, rules).search(QUERY)
    assert answer.degraded == ("curation",)
    assert ids(answer)[0] == READ_FILE


async def test_searches_at_once_all_see_the_rules() -> None:
    scene = Scene()
    searched = tool_search(scene, await rules_of(scene, PROMOTE))
    answers = await asyncio.gather(*(searched.search(QUERY) for _ in range(5)))
    assert {ids(answer)[0] for answer in answers} == {MAIL}
