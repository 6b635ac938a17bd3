"""Minimum quality of search, on the example catalog with the real engines and a real model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Installation
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.tools.catalog.files import read_items
from toolscript.tools.catalog.items import import_items
from toolscript.tools.model.query import ToolQuery
from toolscript.tools.search import ToolSearch

EXAMPLES = Path(__file__).parents[2] / "examples" / "tools.jsonl"

QUESTIONS = {
    "who wrote this line of code": "blame",
    "start working on a feature branch": "create_branch",
    "what changed between these two versions": "diff",
    "read_file": "read_file",
    "readFile": "read_file",
    "rename a document": "move_file",
    "get rid of a file": "delete_file",
    "schedule a meeting with Anna": "create_event",
    "when are we all free": "find_free_time",
    "call off tomorrow's meeting": "cancel_event",
    "send an email to the team": "send_mail",
    "block a spam sender": "mark_as_spam",
    "which columns does the users table have": "describe_table",
    "run a sql query": "run_query",
    "will it rain this weekend": "forecast",
    "flood warnings near the coast": "storm_alerts",
    "report a bug": "create_ticket",
    "picture of a website": "take_screenshot",
    "directions to the station by bike": "route",
    "give the customer their money back": "refund_order",
    "where is my package": "track_parcel",
    "dim the lamp in the kitchen": "switch_light",
    "how many dollars are 50 euros": "convert_currency",
    "put milk on the shopping list": "add_to_list",
    "检索图书馆藏书": "search_books",
    "билеты на поезд": "find_tickets",
    "show the latest error lines of a service": "tail_logs",
    "undo the last deployment": "roll_back",
}


@pytest.fixture
async def search(installation: Installation) -> AsyncIterator[ToolSearch]:
    async with open_index_writer(installation.settings) as writer:
        await import_items(writer.stores.catalog, "examples", read_items(EXAMPLES))
        await writer.worker(silent).drain()
        yield ToolSearch(writer.embedder, writer.opened.index, writer.opened.skills, writer.stores.catalog)


async def found_first(search: ToolSearch, search_type: SearchType) -> set[str]:
    result = set()
    for question, expected in QUESTIONS.items():
        hits = (await search.search(ToolQuery(question, search_type=search_type))).hits
        if hits and hits[0].name == expected:
            result.add(question)
    return result


async def test_both_retrievers_together_are_good_and_no_worse_than_either(search: ToolSearch) -> None:
    first = {kind: await found_first(search, kind) for kind in SearchType}
    counts = {kind.value: len(result) for kind, result in first.items()}
    missed = QUESTIONS.keys() - first[SearchType.HYBRID]
    assert counts["hybrid"] >= 24, f"{counts}, missed: {sorted(missed)}"
    assert counts["hybrid"] >= max(counts["semantic"], counts["keyword"]), counts


@pytest.mark.parametrize(
    "nonsense", ["xqzv blorp", "the meaning of life in iambic pentameter", "lorem ipsum dolor sit amet"]
)
async def test_a_query_without_a_match_gets_no_result(search: ToolSearch, nonsense: str) -> None:
    assert (await search.search(ToolQuery(nonsense))).hits == ()
