"""Names and values that must be sent as they are: what hides something is refused, and nothing else."""

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
def test_what_can_be_seen_or_is_only_read_is_let_through(schema: dict[str, object]) -> None:
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
def test_what_is_sent_back_must_be_seen(schema: dict[str, object]) -> None:
    assert "nobody sees" in why("tool", schema)


def test_names_that_look_like_others_are_refused() -> None:
    assert "mixes Latin letters" in why("re\u0430d_file")
    assert "nobody sees" in why("read\u200b_file")
    assert why("прочитать_файл") == ""
