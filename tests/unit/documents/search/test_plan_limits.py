"""A plan bounds what is asked for and what is shown."""

import pytest

from toolscript.core.auth.model import UNLIMITED, Plan
from toolscript.core.errors import PlanExceeded
from toolscript.documents.model.filters import FieldCondition, Filters
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.plan_limits import require_within, shown_metadata

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
def test_more_than_the_plan_has_is_refused_and_named(query: DocumentQuery, field: str) -> None:
    with pytest.raises(PlanExceeded, match="plan small") as refused:
        require_within(SMALL, query)
    assert refused.value.details["field"] == field


@pytest.mark.parametrize("field", ["title", "author", "author.name"])
def test_what_is_within_a_field_of_the_plan_may_be_filtered_by(field: str) -> None:
    require_within(SMALL, filtered_by(field))


def test_without_limits_everything_goes() -> None:
    require_within(UNLIMITED, DocumentQuery("x", top_k=200, metadata_fields=("salary",)))
    assert shown_metadata(UNLIMITED, DocumentQuery("x"), METADATA) == METADATA


def test_fields_beyond_the_plan_are_not_shown_even_unasked() -> None:
    assert set(shown_metadata(SMALL, DocumentQuery("x"), METADATA)) == {"title", "author"}


def test_only_the_fields_asked_for_are_shown() -> None:
    asked = DocumentQuery("x", metadata_fields=("title", "unknown"))
    assert shown_metadata(UNLIMITED, asked, METADATA) == {"title": "T"}
