"""Names and values that a client sends back unchanged: hidden characters are refused, and nothing else."""

import pytest

from toolscript.core.item_json import item_from_json
from toolscript.core.items import why_hidden

pytestmark = pytest.mark.requirement("TS-010")


def why(name: str, schema: dict[str, object] | None = None) -> str:
    return why_hidden(item_from_json({"server": "s", "name": name, "input_schema": schema}))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"line_end": {"enum": ["\n", "\r\n", "\t"]}}},
        {"properties": {"required": {"description": "a\r\nb \u200b"}, "enum": {"const": "x"}}},
        {"properties": {"a": {"pattern": "^\u0001$", "description": "\u202e"}}},
        {"properties": {"größe": {"enum": ["日本", "👍🏽"]}}},
    ],
)
def test_visible_values_and_read_only_texts_are_accepted(schema: dict[str, object]) -> None:
    assert why("tool", schema) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a\u200b": {}}},
        {"properties": {"a": {"enum": ["x", "y\u202e"]}}},
        {"properties": {"a": {"items": {"const": "\u2063"}}}},
        {"$defs": {"b": {"properties": {"c\u00ad": {}}}}},
        {"required": ["a\ufeff"]},
        {"properties": {"enum": {"properties": {"x\u200b": {}}}}},
    ],
)
def test_values_that_a_client_sends_back_must_be_visible(schema: dict[str, object]) -> None:
    assert "invisible character" in why("tool", schema)


def test_look_alike_names_are_refused() -> None:
    assert "mixes Latin letters" in why("re\u0430d_file")
    assert "invisible character" in why("read\u200b_file")
    assert why("прочитать_файл") == ""
