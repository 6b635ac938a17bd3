"""The same tool of two servers is one hit, and what is deprecated comes last."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import READ_FILE, WRITE_FILE, item, names, search_all, search_over
from toolscript.core.items import Item, tool_id
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-003")

TWIN = replace(READ_FILE, key="files2__read_file", server="files2")


@pytest.mark.parametrize("search_type", [*SearchType])
async def test_a_twin_fills_no_place_of_its_own(search_type: SearchType) -> None:
    search = search_over((READ_FILE, TWIN, WRITE_FILE))
    answer = await search.search(LocalQuery("file contents", 2, 0.0, search_type=search_type))
    first, second = answer.hits
    both = {tool_id(first.item.server, first.item.name), *first.also}
    assert both == {"files__read_file", "files2__read_file"}
    assert (second.item, second.also, answer.total) == (WRITE_FILE, (), 2)


@pytest.mark.parametrize(
    "other", [replace(TWIN, description="Read it otherwise"), replace(TWIN, input_schema={"type": "object"})]
)
async def test_a_tool_that_differs_is_no_twin(other: Item) -> None:
    answer = await search_all("read the contents of a file", (READ_FILE, other))
    assert [hit.also for hit in answer.hits] == [(), ()]


async def test_twins_among_the_near_misses_are_one_too() -> None:
    answer = await search_all("read the contents of a file", (READ_FILE, TWIN), threshold=1.0)
    (miss,) = answer.near_misses
    assert len(miss.also) == 1


async def test_a_deprecated_tool_comes_after_a_similar_one_and_is_marked() -> None:
    old = item("files", "read_text", "Read the contents of a file. DEPRECATED: use read_content.")
    new = item("files", "read_content", "Read the contents of a file. Works for all of them.")
    for items in ((old, new), (new, old)):
        answer = await search_all("read the contents of a file", items)
        assert names(answer) == ["read_content", "read_text"]
        assert [hit.deprecated for hit in answer.hits] == [False, True]


async def test_a_deprecated_tool_that_was_asked_for_by_name_stays_first() -> None:
    old = item("files", "read_text", "Read the contents of a file. DEPRECATED: use read_content.")
    new = item("files", "read_content", "Read the contents of a file.")
    assert names(await search_all("read_text", (old, new)))[0] == "read_text"
