"""Limits of filters, and their error messages."""

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.documents.model.filters import (
    MAX_CONDITIONS,
    MAX_FIELD,
    MAX_VALUE,
    MAX_VALUES,
    NO_FILTERS,
    FieldCondition,
    Filters,
    Op,
)

pytestmark = pytest.mark.requirement("DOC-002")


INVALID: list[tuple[str, object, str, str]] = [
    ("like", "x", "'like' is not an op", "contains"),
    ("EQ", "x", "'EQ' is not an op", "eq"),
    ("in", "x", "in takes a list", "[a, b, c]"),
    ("nin", None, "nin takes a list", "[a, b, c]"),
    ("in", {"a": 1}, "in takes a list", "[a, b, c]"),
    ("eq", None, "a string, a number, true or false", "exists"),
    ("eq", ["x"], "a string, a number, true or false", "in"),
    ("eq", {"a": 1}, "a string, a number, true or false", "in"),
    ("in", ["x", None], "a string, a number, true or false", "exists"),
    ("in", [["x"]], "a string, a number, true or false", "in"),
    ("in", list(range(MAX_VALUES + 1)), f"in with {MAX_VALUES + 1} values", str(MAX_VALUES)),
    ("exists", "true", "exists takes true or false", "has none"),
    ("exists", 1, "exists takes true or false", "has none"),
    ("lt", "soon", "lt compares numbers or dates, not 'soon'", "2026-01-31"),
    ("gte", True, "gte compares numbers or dates, not 'True'", "a number"),
    ("gt", "2026-02-30", "gt compares numbers or dates", "2026-01-31"),
    ("lt", float("inf"), "inf is not a number", "leave the condition out"),
    ("eq", float("nan"), "nan is not a number", "leave the condition out"),
    ("eq", "x" * (MAX_VALUE + 1), f"a string of {MAX_VALUE + 1} characters", str(MAX_VALUE)),
    ("eq", "\ud800", "an invalid character", "UTF-8"),
]


def test_an_invalid_condition_is_refused_with_its_field(subtests: pytest.Subtests) -> None:
    for op, value, message, hint in INVALID:
        with subtests.test(op=op, value=value, message=message, hint=hint):
            with pytest.raises(InvalidRequest) as raised:
                FieldCondition.of("my field", op, value)
            assert raised.value.message.startswith("filters: 'my field': ")
            assert message in raised.value.message
            assert hint in raised.value.hint
            assert raised.value.details == {"field": "filters"}


@pytest.mark.parametrize("name", ["", "n" * (MAX_FIELD + 1), "\udfff"])
def test_a_name_that_no_field_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a field name") as raised:
        FieldCondition.of(name, "eq", 1)
    raised.value.message.encode()


def test_a_condition_made_by_hand_is_checked_like_any_other() -> None:
    with pytest.raises(InvalidRequest, match="eq takes one value"):
        FieldCondition("n", Op.EQ, (1.0, 2.0))
    with pytest.raises(InvalidRequest, match="lt takes one value"):
        FieldCondition("n", Op.LT, ())
    assert FieldCondition("n", Op.EQ, (0.1 + 0.2,)) == FieldCondition.of("n", "eq", 0.3)


def test_filters_at_the_limits_are_accepted() -> None:
    condition = FieldCondition.of("n" * MAX_FIELD, "in", ["x" * MAX_VALUE, *range(MAX_VALUES - 1)])
    assert len(Filters((condition,) * MAX_CONDITIONS).conditions) == MAX_CONDITIONS


@pytest.mark.parametrize("kind", ["must", "should", "must_not"])
def test_too_many_conditions_are_refused_in_every_clause(kind: str) -> None:
    condition = FieldCondition.of("n", "eq", 1)
    with pytest.raises(InvalidRequest, match=f"{MAX_CONDITIONS + 1} conditions") as raised:
        Filters(
            **{
                "must": (condition,),
                kind: (condition,) * MAX_CONDITIONS + ((condition,) if kind == "must" else ()),
            }
        )
    assert "in" in raised.value.hint


def test_exists_without_a_value_means_true() -> None:
    assert FieldCondition.of("n", "exists", None) == FieldCondition.of("n", "exists", value=True)


def test_filters_without_conditions_are_falsy() -> None:
    assert not NO_FILTERS
    assert Filters(must_not=(FieldCondition.of("n", "eq", 1),))
