"""The fingerprint of an item changes exactly when the item does."""

from dataclasses import replace

import pytest

from toolscript.core.items import Item, ItemKind, StoreReport

READ = Item("k", ItemKind.TOOL, "fs", "read", "Reads.", "Files", {"a": 1}, {"b": 2}, {"c": 3})

CHANGES: list[dict[str, object]] = [
    {"kind": ItemKind.PROMPT},
    {"server": "other"},
    {"name": "write"},
    {"description": "Reads!"},
    {"server_description": "file"},
    {"input_schema": {"a": 2}},
    {"input_schema": None},
    {"output_schema": {}},
    {"annotations": {"c": "3"}},
]


@pytest.mark.requirement("SK-009")
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_of_anything_stored_changes_the_fingerprint(change: dict[str, object]) -> None:
    assert replace(READ, **change).fingerprint != READ.fingerprint  # type: ignore[arg-type]


def test_neither_the_key_nor_the_order_of_members_is_part_of_the_fingerprint() -> None:
    schema, reordered = {"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 2, "x": 1}, "a": 1}
    assert replace(READ, input_schema=schema).fingerprint == replace(READ, input_schema=reordered).fingerprint
    assert replace(READ, key="other").fingerprint == READ.fingerprint


def test_text_moved_from_one_field_to_the_next_is_a_change() -> None:
    first = Item("k", ItemKind.TOOL, "s", "ab", "c")
    assert first.fingerprint != Item("k", ItemKind.TOOL, "s", "a", "bc").fingerprint


def test_reports_add_up() -> None:
    assert StoreReport(1, 2, 3) + StoreReport(10, 20, 30) == StoreReport(11, 22, 33)
