"""The operators of filters, and the metadata they match."""

import math
from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolscript.core.items import JsonObject
from toolscript.documents.model.filters import (
    MAX_FIELD,
    MAX_VALUES,
    NO_FILTERS,
    FieldCondition,
    Filters,
    Op,
    comparable,
    filterable,
    moment,
    passes,
)

pytestmark = pytest.mark.requirement("DOC-002")

NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


def holds(metadata: JsonObject, field: str, op: str, value: object) -> bool:
    return passes(Filters(must=(FieldCondition.of(field, op, value),)), filterable(metadata))


COMPARISONS: list[tuple[object, str, object, bool]] = [
    ("en", "eq", "en", True),
    ("en", "eq", "EN", False),
    ("en", "eq", "e", False),
    (["en", "de"], "eq", "de", True),
    (["en", 5, True], "eq", 5, True),
    (5, "eq", 5.0, True),
    (5, "eq", "5", False),
    (1, "eq", True, False),
    (0, "eq", False, False),
    (True, "eq", True, True),
    (True, "eq", "true", False),
    (-0.0, "eq", 0, True),
    ("", "eq", "", True),
    ("en", "ne", "de", True),
    ("en", "ne", "en", False),
    (["en", "de"], "ne", "de", False),
    (["en", "de"], "ne", "fr", True),
    (1, "ne", True, True),
    (["a", "b"], "in", ["b", "c"], True),
    (["a", "b"], "in", ["c"], False),
    ("a", "in", [1, True, "a"], True),
    ("a", "in", [], False),
    (["a", "b"], "nin", ["c"], True),
    (["a", "b"], "nin", ["b"], False),
    ("a", "nin", [], True),
    ("a long text", "contains", "long", True),
    ("a long text", "contains", "Long", False),
    ("a long text", "contains", "text long", False),
    ("a long text", "contains", "", True),
    ("50% [off] \\o/", "contains", "% [off] \\", True),
    ("日本語", "contains", "本", True),
    (["a long text", "b"], "contains", "long", False),
    (["a long text"], "contains", "long", False),
    (["a long text", "b"], "contains", "b", True),
    (["a", ""], "contains", "", True),
    (["a"], "contains", "", False),
    ([1, 2], "contains", 2, True),
    (12, "contains", 12, True),
    (12, "contains", 1, False),
    ("12", "contains", 1, False),
    (True, "contains", True, True),
    (3, "lt", 3, False),
    (3, "lte", 3, True),
    (3, "gt", 2.999, True),
    (3, "gte", 3.001, False),
    ([1, 9], "gt", 5, True),
    ([1, 9], "lt", 5, True),
    (["x", True, 9], "gt", 5, True),
    (True, "gte", 0, False),
    ("3", "gte", 0, False),
    ("2026-01-31", "gt", 0, False),
    ("2026-01-31", "gte", "2026-01-31T00:00:00Z", True),
    ("2026-01-31T01:00:00+01:00", "lte", "2026-01-31", True),
    ("2026-01-31T00:59:59+01:00", "gte", "2026-01-31", False),
    ("soon", "gte", "2026-01-31", False),
    (1769817600, "gte", "2026-01-31", False),
    (["2020-01-01", "2030-01-01"], "gt", "2026-01-31", True),
    ("x", "exists", True, True),
    ("", "exists", True, True),
    (False, "exists", True, True),
    (0, "exists", False, False),
]


def test_each_operator_compares_as_documented(subtests: pytest.Subtests) -> None:
    for stored, op, value, expected in COMPARISONS:
        with subtests.test(stored=stored, op=op, value=value, expected=expected):
            assert holds({"field": stored}, "field", op, value) is expected


def test_two_bounds_on_a_list_may_be_met_by_two_of_its_values() -> None:
    bounds = (FieldCondition.of("n", "gt", 3), FieldCondition.of("n", "lt", 5))
    assert passes(Filters(must=bounds), filterable({"n": [1, 9]}))
    assert not passes(Filters(must=bounds), filterable({"n": 9}))


EMPTY: list[JsonObject] = [
    {},
    {"field": None},
    {"field": []},
    {"field": [None]},
    {"field": [["x"], {"y": 1}]},
    {"field": {}},
]


CONDITIONS: list[tuple[str, object]] = [
    *((op, 1) for op in Op if op not in {"in", "nin", "exists"}),
    ("in", [1]),
    ("nin", [1]),
    ("nin", []),
    ("exists", True),
]


def test_for_a_field_without_values_only_exists_false_holds(subtests: pytest.Subtests) -> None:
    for metadata in EMPTY:
        for op, value in CONDITIONS:
            with subtests.test(metadata=metadata, op=op, value=value):
                assert not holds(metadata, "field", op, value)
                assert holds(metadata, "field", "exists", value=False)


@pytest.mark.states("S2-063", "S2-080")
def test_all_of_must_hold_one_of_should_and_none_of_must_not() -> None:
    lang, year, tag = (
        FieldCondition.of("lang", "eq", "en"),
        FieldCondition.of("year", "eq", 1),
        FieldCondition.of("tag", "eq", "x"),
    )

    def passing(filters: Filters) -> list[str]:
        documents: dict[str, JsonObject] = {
            "nothing": {},
            "lang": {"lang": "en"},
            "year": {"year": 1},
            "both": {"lang": "en", "year": 1},
            "all": {"lang": "en", "year": 1, "tag": "x"},
        }
        return [name for name, metadata in documents.items() if passes(filters, filterable(metadata))]

    assert passing(NO_FILTERS) == ["nothing", "lang", "year", "both", "all"]
    assert passing(Filters(must=(lang, year))) == ["both", "all"]
    assert passing(Filters(should=(lang, year))) == ["lang", "year", "both", "all"]
    assert passing(Filters(must_not=(lang, year))) == ["nothing"]
    assert passing(Filters(must_not=(tag,))) == ["nothing", "lang", "year", "both"]
    assert passing(Filters(must=(lang,), should=(year, tag), must_not=(tag,))) == ["both"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"author": {"name": "x"}}, "author.name"),
        ({"author.name": "x"}, "author.name"),
        ({"a": {"b": {"c": "x"}}}, "a.b.c"),
        ({"": {"a": "x"}}, ".a"),
        ({"a": {"": "x"}}, "a."),
        ({'a"[]\\ é': "x"}, 'a"[]\\ é'),
        ({"n" * MAX_FIELD: "x"}, "n" * MAX_FIELD),
    ],
)
def test_fields_within_objects_are_named_by_their_path(metadata: JsonObject, field: str) -> None:
    assert dict(filterable(metadata).values) == {field: ("x",)}
    assert holds(metadata, field, "eq", "x")


def test_names_that_no_filter_can_have_are_left_out() -> None:
    assert dict(filterable({"": 1, "n" * (MAX_FIELD + 1): 2, "a": {"n" * MAX_FIELD: 3}}).values) == {}


def test_two_ways_to_one_path_are_a_list() -> None:
    metadata: JsonObject = {"a": {"b": "one"}, "a.b": "two"}
    assert holds(metadata, "a.b", "eq", "one")
    assert holds(metadata, "a.b", "contains", "two")
    assert not holds(metadata, "a.b", "contains", "tw")


@given(st.dictionaries(st.text(), JSON))
@example({"huge": 10**400, "below": -(10**400), "list": [10**400]})
def test_every_metadata_can_be_filtered(metadata: JsonObject) -> None:
    metadata_seen = filterable(metadata)
    for name, values in metadata_seen.values.items():
        assert values
        assert passes(Filters(must=(FieldCondition(name, Op.IN, values[:MAX_VALUES]),)), metadata_seen)
        assert all(value == comparable(value) for value in values if not isinstance(value, str | bool))


@given(NUMBER, NUMBER)
@example(2**63 - 1, 2.0**63)
@example(1e15 - 0.5, 1e15)
@example(1e300, 1.7976931348623157e308)
@example(5e-324, 1e-300)
def test_comparable_numbers_keep_their_order_and_are_stable(number: float, other: float) -> None:
    assert comparable(comparable(number)) == comparable(number)
    assert math.isfinite(comparable(number))
    if number <= other:
        assert comparable(number) <= comparable(other)


@given(st.integers(-(2**53), 2**53))
def test_integers_are_compared_exactly(number: int) -> None:
    assert comparable(number) == number


@pytest.mark.parametrize(
    ("number", "other", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (1.00000000000001, 1, False),
        (1.000000000000001, 1, True),
        (2**53, 2**53 + 1, True),
        (2**53, 2**53 + 2, False),
        (2**53 - 1, 2**53, False),
        (1e15 + 0.25, 1e15, True),
        (5e-324, 0, True),
        (1e-299, 0, False),
        (10**400, 1e300, True),
        (1e299, 1e300, False),
    ],
)
def test_numbers_are_compared_by_15_digits(number: float, other: float, same: bool) -> None:
    assert holds({"n": number}, "n", "eq", other) is same


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T12:30", "2026-01-31T12:30:00+00:00"),
        ("2026-01-31 12:30:15Z", "2026-01-31T12:30:15+00:00"),
        ("2026-01-31T12:30:15.5+0130", "2026-01-31T11:00:15.500000+00:00"),
        ("2026-01-31T12:30:15.1234567-05:00", "2026-01-31T17:30:15.123456+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_dates_are_moments_to_the_microsecond_and_default_to_utc(text: str, same_as: str) -> None:
    since = datetime.fromisoformat(same_as) - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    assert moment(text) == float(microseconds)


NO_MOMENTS: list[str] = [
    *("", "soon", "2026", "2026-01", "2026-1-31", "20260131", "2026-W05-6", "2026-02-30", "2023-02-29"),
    *("0000-01-01", "2026-01-31T", "2026-01-31T24:00:00", "2026-01-31T12:00:60", "2026-01-31X12:00"),
    *(
        "2026-01-31T12:00:00+25:00",
        " 2026-01-31",
        "2026-01-31\n",
        "٢٠٢٦-٠١-٣١",
        "2026-01-31T12:00:00Z and more",
    ),
]


def test_other_strings_are_not_moments(subtests: pytest.Subtests) -> None:
    for text in NO_MOMENTS:
        with subtests.test(text=text):
            assert moment(text) is None
