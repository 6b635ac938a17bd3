"""An item that the catalog has removed is in no answer, whether or not a worker has followed."""

import pytest

from tests.unit.tools.search.builders import ITEMS, FailingCatalog, Scene, WatchedCatalog
from toolscript.core.errors import CatalogUnavailable
from toolscript.core.retrieval.query import SearchType
from toolscript.tools.model.answer import AbsenceReason, ToolAnswer
from toolscript.tools.model.query import Strategy, ToolQuery

REMOVED = "read_file"
KEY = next(item.key for item in ITEMS if item.name == REMOVED)
TWO_STEPS = "read the contents of a file and then send a letter to somebody"


def shown(answer: ToolAnswer) -> set[str]:
    return {hit.name for hit in (*answer.all_hits, *answer.near_misses)} | {
        hit.name for step in answer.steps for hit in step.near_misses
    }


@pytest.mark.states("S0-045")
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("search_type", SearchType)
@pytest.mark.parametrize("text", ["read a file", TWO_STEPS])
@pytest.mark.parametrize("threshold", [0.0, 1.0])
async def test_what_is_removed_is_in_no_answer_and_what_comes_back_is(
    strategy: Strategy, search_type: SearchType, text: str, threshold: float
) -> None:
    scene = Scene()
    await scene.fill()
    query = ToolQuery(
        text, threshold=threshold, limit=100, strategy=strategy, search_type=search_type, skill_threshold=0.0
    )
    tools = scene.tools
    before = shown(await tools.search(query))
    assert REMOVED in before
    await scene.catalog.remove("test", [KEY])
    answer = await tools.search(query)
    assert answer.degraded == ()
    assert shown(answer) <= {item.name for item in ITEMS} - {REMOVED}
    if threshold == 0.0:
        assert shown(answer) == before - {REMOVED}
        assert answer.candidate_count == len(answer.hits)
    await scene.catalog.store("test", [item for item in ITEMS if item.key == KEY])
    assert shown(await tools.search(query)) == before


async def test_a_removed_item_leaves_its_place_to_the_next_one() -> None:
    scene = Scene()
    first, second, *_ = (await scene.search(ToolQuery("file", threshold=0.0))).hits
    await scene.catalog.remove("test", [next(item.key for item in ITEMS if item.name == first.name)])
    answer = await scene.tools.search(ToolQuery("file", threshold=0.0, limit=1))
    assert [hit.id for hit in answer.hits] == [second.id]


async def test_the_catalog_is_asked_once_for_all_candidates() -> None:
    scene = Scene()
    answer = await scene.search(ToolQuery(TWO_STEPS, threshold=0.0, limit=100, strategy=Strategy.HYBRID))
    assert isinstance(scene.catalog, WatchedCatalog)
    (asked,) = scene.catalog.removed_asks
    assert set(asked) >= {hit.id for hit in answer.all_hits}
    assert len(asked) == len(set(asked))


async def test_why_a_removed_item_is_absent_is_that_there_is_none() -> None:
    scene = Scene()
    found = await scene.search(ToolQuery("file", threshold=0.0, about=REMOVED))
    assert found.absence is not None
    assert found.absence.reason is AbsenceReason.RETURNED
    await scene.catalog.remove("test", [KEY])
    for about in (REMOVED, str(found.absence.id)):
        absence = (await scene.tools.search(ToolQuery("file", threshold=0.0, about=about))).absence
        assert absence is not None
        assert (absence.reason, absence.id) == (AbsenceReason.UNKNOWN, None)
        assert not any(REMOVED in other for other in absence.others)


async def test_without_the_catalog_what_the_index_has_is_shown_and_the_answer_says_so() -> None:
    scene = Scene()
    await scene.fill()
    tools = scene.tools
    await scene.catalog.remove("test", [KEY])
    scene.catalog.removed = FailingCatalog(CatalogUnavailable("gone")).removed  # type: ignore[method-assign]
    answer = await tools.search(ToolQuery("read a file", threshold=0.0, include_schemas=False))
    assert REMOVED in shown(answer)
    assert answer.degraded == ("catalog",)
