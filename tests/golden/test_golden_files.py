"""The golden set itself: a mistake in it would look like a mistake of an engine."""

import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from toolscript.core.items import Item
from toolscript.tools.catalog.files import read_items

FOLDER = Path(__file__).parent
MIN_KIND = {
    "exact": 20,
    "typo": 20,
    "plain": 25,
    "paraphrase": 30,
    "other_language": 20,
    "several": 15,
    "near_duplicate": 20,
    "noisy": 15,
    "unanswerable": 40,
}
NAMES_AND_TYPOS = {"exact", "typo", "plain", "near_duplicate"}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


TOOLS, QUERIES = lines("tools.jsonl"), lines("queries.jsonl")


def twice(values: list[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


@pytest.mark.parametrize("rows", [TOOLS, QUERIES], ids=["tools", "queries"])
def test_no_id_occurs_twice(rows: list[dict[str, Any]]) -> None:
    assert twice([row["id"] for row in rows]) == []


def test_every_tool_can_be_read_and_is_named_by_its_id() -> None:
    items = list(read_items(FOLDER / "tools.jsonl"))
    assert [item for item in items if not isinstance(item, Item)] == []
    assert [row["id"] for row in TOOLS] == [f"{row['server']}__{row['name']}" for row in TOOLS]


def test_every_required_parameter_is_one_of_the_parameters() -> None:
    schemas = [row["input_schema"] for row in TOOLS]
    assert [one for one in schemas if not set(one.get("required", ())) <= set(one["properties"])] == []


def test_no_request_occurs_twice() -> None:
    assert twice([" ".join(query["text"].split()) for query in QUERIES]) == []


def test_every_request_has_a_text_a_known_kind_and_an_id_that_says_it() -> None:
    assert [query["id"] for query in QUERIES if not query["text"].strip()] == []
    assert {query["kind"] for query in QUERIES} == set(MIN_KIND)
    assert [query["id"] for query in QUERIES if not query["id"].startswith(query["kind"] + "-")] == []


def test_there_is_enough_of_each_kind() -> None:
    counts = Counter(query["kind"] for query in QUERIES)
    assert {kind: counts[kind] for kind, minimum in MIN_KIND.items() if counts[kind] < minimum} == {}


def test_every_tool_that_is_asked_for_exists() -> None:
    known = {row["id"] for row in TOOLS}
    asked = {(query["id"], tool) for query in QUERIES for step in query["gold_groups"] for tool in step}
    assert sorted(one for one in asked if one[1] not in known) == []


def test_only_what_is_unanswerable_asks_for_no_tool() -> None:
    without = {query["id"] for query in QUERIES if not query["gold_groups"]}
    assert without == {query["id"] for query in QUERIES if query["kind"] == "unanswerable"}
    assert [query["id"] for query in QUERIES if not all(query["gold_groups"])] == []


def test_a_tool_is_in_one_step_of_a_request() -> None:
    assert [query["id"] for query in QUERIES if twice(list(chain(*query["gold_groups"])))] == []


def test_several_wishes_have_several_steps_and_single_ones_one() -> None:
    steps = {query["id"]: len(query["gold_groups"]) for query in QUERIES}
    assert [one for one, count in steps.items() if one.startswith("several-") and count < 2] == []
    assert [one for one, count in steps.items() if one.rpartition("-")[0] in NAMES_AND_TYPOS and count != 1] == []


def test_servers_differ_in_style_and_some_are_alike() -> None:
    names = [row["name"] for row in TOOLS]
    assert len({row["server"] for row in TOOLS}) >= 28
    assert {"create_event", "list_events", "create_issue", "search_issues"} <= set(twice(names))
    assert [row["id"] for row in TOOLS if not row["description"]]
