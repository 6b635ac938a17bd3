"""Filters of the command line."""

import pytest

from toolscript.cli.documents import filters_of
from toolscript.core.errors import InvalidRequest
from toolscript.documents.schemas import DocumentFilters

pytestmark = pytest.mark.requirement("DOC-002")


CONDITIONS: list[tuple[str, str, str, object]] = [
    ("year>=2020", "year", "gte", 2020),
    ("year <= 2020.5", "year", "lte", 2020.5),
    ("year<-1", "year", "lt", -1),
    (" year > 3 ", "year", "gt", 3),
    ("lang=en", "lang", "eq", "en"),
    ("lang==en", "lang", "eq", "en"),
    ("lang != de", "lang", "ne", "de"),
    ('year="2020"', "year", "eq", "2020"),
    ("public=true", "public", "eq", True),
    ("title~the whale", "title", "contains", "the whale"),
    ("title contains the whale", "title", "contains", "the whale"),
    ("at>=2026-01-31T12:00:00Z", "at", "gte", "2026-01-31T12:00:00Z"),
    ("author.name=Ada Lovelace", "author.name", "eq", "Ada Lovelace"),
    ("formula=a<b", "formula", "eq", "a<b"),
    ("motto=to be or not in", "motto", "eq", "to be or not in"),
    ("tags in law,sea", "tags", "in", ["law", "sea"]),
    ("tags in  law , 7 ,true", "tags", "in", ["law", 7, True]),
    ('tags in ["a, b", "c"]', "tags", "in", ["a, b", "c"]),
    ("tags not in law", "tags", "nin", ["law"]),
    ("tags nin law", "tags", "nin", ["law"]),
    ("draft exists", "draft", "exists", True),
    ("draft not  exists", "draft", "exists", False),
    ("year gte 2020", "year", "gte", 2020),
    ('{"field": "a b", "op": "eq", "value": 1}', "a b", "eq", 1),
]


def test_a_condition_is_a_field_an_op_and_a_value(subtests: pytest.Subtests) -> None:
    for text, field, op, value in CONDITIONS:
        with subtests.test(text=text, field=field, op=op, value=value):
            filters = filters_of([text])
            assert filters == {"must": [{"field": field, "op": op, "value": value}]}
            assert DocumentFilters.model_validate(filters).as_filters(), "the service would refuse it"


def test_several_filters_are_combined_and_json_may_contain_all_of_them() -> None:
    whole = '{"should": [{"field": "b", "op": "exists"}], "must_not": [{"field": "c", "op": "eq", "value": 1}]}'
    assert filters_of(["a=1", whole, "d=2"]) == {
        "must": [{"field": "a", "op": "eq", "value": 1}, {"field": "d", "op": "eq", "value": 2}],
        "should": [{"field": "b", "op": "exists"}],
        "must_not": [{"field": "c", "op": "eq", "value": 1}],
    }
    assert filters_of([]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "year",
        "year>=",
        ">=2020",
        "year of 2020",
        "tags in",
        "draft exists yes",
        "{",
        '{"all": []}',
        '{"must": 7}',
    ],
)
def test_an_invalid_filter_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a filter") as refused:
        filters_of([text])
    assert "year>=2020" in refused.value.hint
