"""Arguments are checked against schemas that servers wrote: wrong, hostile and large ones too."""

import time
from typing import Any

import pytest

from toolscript.core.argument_checks import INPUT_SCHEMA, MAX_SCHEMA_BYTES, mistakes_in, require_arguments
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind

pytestmark = pytest.mark.requirement("TS-010")

ISSUE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "owner": {"type": "string"},
        "title": {"type": "string", "minLength": 1},
        "labels": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "closed"]},
        "address": {"type": "string", "format": "email"},
    },
    "required": ["owner", "title"],
    "additionalProperties": False,
}
SLOW = "^(a+)+$"


@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        ({"owner": "a", "title": "b", "labels": ["c"], "state": "open", "address": "no mail"}, []),
        ({"owner": "a"}, ["`title` is missing"]),
        (
            {"owner": "a", "titel": "b"},
            ["`title` is missing, and `titel` is not its name", "`titel` is unknown: did you mean `title`?"],
        ),
        ({"owner": 1, "title": "b"}, ["`owner` must be string, not number"]),
        (
            {"owner": True, "title": None},
            ["`owner` must be string, not boolean", "`title` must be string, not null"],
        ),
        ({"owner": "a", "title": "b", "labels": ["c", 5]}, ["`labels[1]` must be string, not number"]),
        ({"owner": "a", "title": "b", "state": "opened"}, ['`state` must be one of "open", "closed"']),
        ({"owner": "a", "title": ""}, ["`title` must have minLength 1"]),
    ],
)
def test_what_is_wrong_is_said_in_words(arguments: dict[str, Any], mistakes: list[str]) -> None:
    assert mistakes_in(arguments, ISSUE) == mistakes


def test_no_value_is_repeated_for_it_may_be_a_secret() -> None:
    (mistake,) = mistakes_in({"owner": "a", "title": ["hunter2"]}, ISSUE)
    assert "hunter2" not in mistake


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "nonsense"},
        {"properties": {"x": {"type": "strng"}}},
        {"properties": 5},
        {"$ref": "#"},
        {"$ref": "#/$defs/absent"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"properties": {"x": {"pattern": "(?<=a)b"}}},
        {"patternProperties": {"(?<=a)": {"type": "string"}}, "additionalProperties": False},
    ],
)
def test_a_schema_that_is_invalid_or_refers_elsewhere_is_not_enforced(schema: Any) -> None:
    assert mistakes_in({"x": 1, "y": "z"}, schema) == []


def test_local_references_and_patterns_are_followed() -> None:
    schema = {
        "$defs": {"name": {"type": "string", "pattern": "^[a-z]+$"}},
        "properties": {"x": {"$ref": "#/$defs/name"}},
        "patternProperties": {"^n_": {"type": "number"}},
        "additionalProperties": False,
    }
    assert mistakes_in({"x": "abc", "n_1": 5}, schema) == []
    assert mistakes_in({"x": "ABC"}, schema) == ['`x` must have pattern "^[a-z]+$"']
    assert {*mistakes_in({"n_1": "a", "m": 1}, schema)} == {"`n_1` must be number, not string", "`m` is unknown"}


CLOSED = {"unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"oneOf": [{"pattern": "^(?!re:)"}, {"pattern": "^re:"}]}, "re:abc"),
        ({"oneOf": [{"properties": {"a": {}}, **CLOSED}, {"properties": {"b": {}}, **CLOSED}]}, {"a": 1}),
        (
            {"oneOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]},
            "2026-11-19",
        ),
        ({"oneOf": [{"$dynamicRef": "#none"}, {"type": "string"}]}, "a"),
        ({"not": {"pattern": "(?<=a)b"}}, "z"),
        ({"not": {"uniqueItems": True}}, [1, 1]),
        ({"if": {"pattern": "(?=http)"}, "then": {"minLength": 20}}, "short"),
        ({"contains": {"pattern": "(?=a)"}, "maxContains": 1}, ["b", "c"]),
        ({"type": "string", "nullable": True}, None),
        ({"pattern": r"^[\w&&.-]+$"}, "a&b"),
        ({"pattern": r"^[!-~--]+$"}, "a-b"),
        ({"pattern": r"^[[a-z]+]$"}, "a]"),
    ],
)
def test_what_is_not_enforced_refuses_nothing(schema: dict[str, Any], value: object) -> None:
    assert mistakes_in({"x": value}, {"properties": {"x": schema}}) == []


def test_one_of_several_alternatives_must_fit() -> None:
    schema = {"properties": {"x": {"oneOf": [{"type": "string"}, {"type": "number", "nullable": False}]}}}
    assert mistakes_in({"x": 1}, schema) == []
    assert mistakes_in({"x": None}, schema) == ["`x` fits none of its alternatives"]


def test_words_about_many_names_are_few() -> None:
    schema = {
        "properties": {f"prop_{number}": {} for number in range(300)},
        "required": [f"prop_{number}" for number in range(300)],
        "additionalProperties": False,
    }
    began = time.thread_time()
    assert len(mistakes_in({f"key_number_{number}": 1 for number in range(20_000)}, schema)) == 5
    assert time.thread_time() - began < 1.0


def _exploding() -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(40)
    }
    return {"$defs": {**parts, "d40": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize(
    "schema",
    [
        _exploding(),
        {"properties": {"x": {"pattern": SLOW}}},
        {"properties": {"x": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": SLOW}}},
        {"patternProperties": {SLOW: False}},
        {"properties": {"y": {"uniqueItems": True}}},
        {"properties": {"y": {"items": {"type": "integer"}}}},
    ],
    ids=["references", "pattern", "pattern of another dialect", "name", "unique", "long list"],
)
def test_a_check_takes_bounded_time(schema: dict[str, Any]) -> None:
    text = "a" * 60 + "!"
    began = time.thread_time()
    mistakes_in({"x": text, text: 1, "y": list(range(100_000))}, schema)
    assert time.thread_time() - began < 5.0


def test_the_schema_comes_with_the_error_unless_it_is_large() -> None:
    def refusal(schema: dict[str, Any]) -> InvalidRequest:
        with pytest.raises(InvalidRequest) as refused:
            require_arguments(Item("a__b", ItemKind.TOOL, "a", "b", input_schema=schema), {"owner": "a"})
        return refused.value

    error = refusal(ISSUE)
    assert error.message == "wrong arguments for a__b: `title` is missing"
    assert error.hint.startswith("it takes b(owner, title, labels?")
    assert error.details[INPUT_SCHEMA] == ISSUE
    assert INPUT_SCHEMA not in refusal({**ISSUE, "description": "x" * MAX_SCHEMA_BYTES}).details
