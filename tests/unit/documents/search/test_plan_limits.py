"""A plan limits requests and returned metadata."""

import pytest

from toolscript.core.auth.model import UNLIMITED, Plan
from toolscript.core.errors import PlanExceeded
from toolscript.core.retrieval.query import SearchType
from toolscript.documents.alias_schemas import SearchAliasRequest
from toolscript.documents.model.filters import FieldCondition, Filters
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.plan_limits import require_within, visible_metadata
from toolscript.documents.schemas import DocumentSearchRequest

SMALL = Plan("small", max_top_k=5, metadata_fields=frozenset({"title", "author"}))
METADATA = {"title": "T", "author": {"name": "N"}, "salary": 1}


def filtered_by(field: str) -> DocumentQuery:
    return DocumentQuery("x", top_k=5, filters=Filters(must=(FieldCondition.of(field, "exists", True),)))


@pytest.mark.requirement("DOC-007")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        (DocumentQuery("x", top_k=6), "top_k"),
        (DocumentQuery("x", top_k=5, metadata_fields=("salary",)), "metadata_fields"),
        (filtered_by("salary"), "filters"),
        (filtered_by("authors.name"), "filters"),
    ],
)
def test_a_query_beyond_the_plan_is_refused_with_the_field(query: DocumentQuery, field: str) -> None:
    with pytest.raises(PlanExceeded, match="plan small") as refused:
        require_within(SMALL, query)
    assert refused.value.details["field"] == field


@pytest.mark.parametrize("field", ["title", "author", "author.name"])
def test_nested_fields_of_an_allowed_field_may_be_filtered_by(field: str) -> None:
    require_within(SMALL, filtered_by(field))


def test_without_limits_every_query_is_allowed() -> None:
    require_within(UNLIMITED, DocumentQuery("x", top_k=200, metadata_fields=("salary",)))
    assert visible_metadata(UNLIMITED, DocumentQuery("x"), METADATA) == METADATA


def test_a_search_without_a_limit_asks_for_no_more_than_the_plan_allows() -> None:
    for model, name in ((DocumentSearchRequest, "limit"), (SearchAliasRequest, "top_k")):
        sent: list[dict[str, object]] = [{"query": "x"}, {"query": "x", name: 10}]
        queries = [model.model_validate(body).as_query(SearchType.HYBRID, SMALL) for body in sent]
        assert [query.top_k for query in queries] == [5, 10]


def test_fields_beyond_the_plan_are_not_returned_by_default() -> None:
    assert set(visible_metadata(SMALL, DocumentQuery("x"), METADATA)) == {"title", "author"}


def test_only_the_requested_fields_are_returned() -> None:
    query = DocumentQuery("x", metadata_fields=("title", "unknown"))
    assert visible_metadata(UNLIMITED, query, METADATA) == {"title": "T"}
