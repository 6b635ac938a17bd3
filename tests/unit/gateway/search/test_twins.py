"""The same tool of two servers is one hit, and what is deprecated comes last."""

from dataclasses import replace

import pytest

from tests.unit.gateway.search.builders import READ_FILE, WRITE_FILE, item, names, search_all, search_over
from toolscript.core.items import Item, tool_id
from toolscript.core.retrieval.curation import Curation, Rule, RuleKind
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.twins import differing_arguments

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


async def test_a_deprecated_tool_comes_after_the_one_that_its_text_names_however_sure_it_is() -> None:
    old = item("files", "read_file", "Read the contents of a file. DEPRECATED: Use read_text_file instead.")
    new = item("files", "read_text_file", "Read what a file has, with all encodings.")
    other = item("other", "read_text_file", "Read what a file has, too.")
    answer = await search_all("read a file", (old, new, other))
    listed = [tool_id(hit.item.server, hit.item.name) for hit in answer.hits]
    assert listed.index("files__read_text_file") + 1 == listed.index("files__read_file")
    shown = [hit.confidence for hit in answer.hits]
    assert shown == sorted(shown, reverse=True)


WORK = replace(READ_FILE, key="files-work__read_file", server="files-work")
WORK_TOO = replace(WRITE_FILE, key="files-work__write_file", server="files-work")


async def test_twins_are_named_by_one_server_throughout_unless_the_request_names_another() -> None:
    items = (WORK, READ_FILE, WRITE_FILE, WORK_TOO)
    answer = await search_all("read or write the contents of a file", items)
    assert {hit.item.server for hit in answer.hits} == {"files"}
    named = await search_all("read the contents of a file for work", items)
    assert {hit.item.server for hit in named.hits} == {"files-work"}
    assert named.hits[0].also == ("files__read_file",)


async def test_of_twins_the_promoted_one_is_named() -> None:
    search = search_over((READ_FILE, WORK))
    search.curation = Curation([Rule(RuleKind.PROMOTE, "open note", "files-work__read_file")])
    answer = await search.search(LocalQuery("open note"))
    assert (answer.hits[0].item.server, answer.hits[0].also) == ("files-work", ("files__read_file",))


def test_what_tells_servers_apart_is_the_paths_that_not_all_of_them_have() -> None:
    common = ["npx", "-y", "server-filesystem"]
    commands = {"docs": [*common, "/srv/docs"], "work": [*common, "/srv/work", "--verbose"]}
    assert differing_arguments(commands) == {"docs": "/srv/docs", "work": "/srv/work"}
    assert differing_arguments({"a": [*common, "token-1"], "b": [*common, "token-2"]}) == {}
    assert differing_arguments({}) == {}
