"""Items parsed from untrusted JSON."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import MAX_DEPTH, MAX_NAME, MAX_TEXT, item_from_json, storable
from toolscript.core.items import Item, ItemKind

GOOD: dict[str, Any] = {"server": "fs", "name": "read_file"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def test_an_item_needs_at_least_a_server_and_a_name() -> None:
    assert item_from_json(GOOD) == Item('["tool", "fs", "read_file"]', ItemKind.TOOL, "fs", "read_file")


def test_all_other_fields_are_read_unchanged() -> None:
    fields = {
        "id": "k",
        "kind": "prompt",
        "description": " Reads. ",
        "server_description": "Files",
        "input_schema": {"b": 1, "a": [None, 1.5, True]},
        "output_schema": {},
        "annotations": {"readOnlyHint": True},
        "unknown": object(),
    }
    item = item_from_json(GOOD | fields)
    assert item == Item(
        "k",
        ItemKind.PROMPT,
        "fs",
        "read_file",
        "Reads.",
        "Files",
        {"b": 1, "a": [None, 1.5, True]},
        {},
        {"readOnlyHint": True},
    )
    assert list(item.input_schema or ()) == ["b", "a"]


@pytest.mark.parametrize("kind", ["tool", "mcp", "api"])
def test_kinds_that_name_the_origin_of_a_tool_are_tools(kind: str) -> None:
    assert item_from_json(GOOD | {"kind": kind}).kind is ItemKind.TOOL


def test_type_is_a_synonym_of_kind_and_takes_precedence() -> None:
    assert item_from_json(GOOD | {"type": "resource", "kind": "tool"}).kind is ItemKind.RESOURCE


def test_a_tool_and_a_prompt_of_the_same_name_have_different_keys() -> None:
    kinds = ("tool", "prompt", "resource")
    assert len({item_from_json(GOOD | {"kind": kind}).key for kind in kinds}) == 3


def test_a_key_of_long_names_is_bounded_and_unique() -> None:
    long = {"server": "s" * MAX_NAME, "name": "n" * MAX_NAME}
    key = item_from_json(long).key
    assert len(key) <= MAX_NAME
    assert key == item_from_json(long).key
    assert key != item_from_json(long | {"name": "m" * MAX_NAME}).key


INVALID: list[tuple[object, str]] = [
    (None, "must be a JSON object"),
    ([GOOD], "must be a JSON object"),
    ("text", "must be a JSON object"),
    ({"name": "n"}, "server is missing"),
    ({"server": "s"}, "name is missing"),
    (GOOD | {"name": ""}, "name is missing"),
    (GOOD | {"name": None}, "name is missing"),
    (GOOD | {"name": " \n"}, "name is blank"),
    (GOOD | {"name": 7}, "name must be text"),
    (GOOD | {"name": ["n"]}, "name must be text"),
    (GOOD | {"description": {}}, "description must be text"),
    (GOOD | {"name": "n" * (MAX_NAME + 1)}, "name is longer than 512"),
    (GOOD | {"id": "i" * (MAX_NAME + 1)}, "id is longer than 512"),
    (GOOD | {"kind": "agent"}, "kind must be"),
    (GOOD | {"kind": None}, "kind must be"),
    (GOOD | {"kind": ["tool"]}, "kind must be"),
    (GOOD | {"type": {"a": "tool"}}, "kind must be"),
    (GOOD | {"input_schema": "{}"}, "input_schema must be a JSON object"),
    (GOOD | {"annotations": [1]}, "annotations must be a JSON object"),
    (GOOD | {"output_schema": nested(MAX_DEPTH + 1)}, "nested deeper than"),
]


def test_an_error_names_the_invalid_field(subtests: pytest.Subtests) -> None:
    for data, complaint in INVALID:
        with subtests.test(data=data, complaint=complaint), pytest.raises(InvalidRequest, match=complaint):
            item_from_json(data)


def test_names_and_nesting_may_reach_their_limits() -> None:
    item = item_from_json(GOOD | {"name": "n" * MAX_NAME, "input_schema": nested(MAX_DEPTH)})
    assert len(item.name) == MAX_NAME
    assert item.input_schema == nested(MAX_DEPTH)


def test_a_long_description_is_cut() -> None:
    assert item_from_json(GOOD | {"description": "d" * (MAX_TEXT + 1)}).description == "d" * MAX_TEXT


def test_characters_that_no_database_stores_are_replaced() -> None:
    item = item_from_json(GOOD | {"name": "a\0b\ud800c", "input_schema": {"k\0": ["\udfff", {"x": "\0"}]}})
    assert item.name == "a�b�c"
    assert item.input_schema == {"k�": ["�", {"x": "�"}]}


def test_numbers_that_are_no_json_become_null() -> None:
    assert storable([float("nan"), float("inf"), -float("inf"), 1.5, 10**400]) == [None, None, None, 1.5, 10**400]


@given(JSON)
def test_any_json_schema_is_stored_as_json_in_utf_8(value: object) -> None:
    data = {"server": "s", "name": "n", "input_schema": {"x": value}, "kind": "tool"}
    item = item_from_json(data)
    json.dumps(item.input_schema, ensure_ascii=False, allow_nan=False).encode()
    assert len(item.fingerprint) == 64


@given(
    JSON, st.sampled_from(["server", "name", "id", "kind", "type", "description", "input_schema", "annotations"])
)
def test_any_json_in_any_field_is_accepted_or_refused(value: object, place: str) -> None:
    with suppress(InvalidRequest):
        item = item_from_json(GOOD | {place: value})
        assert item.name
        assert item.server
        assert item.key
