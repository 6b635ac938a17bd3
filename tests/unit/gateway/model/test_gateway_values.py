"""Queries of a gateway: an invalid query cannot exist."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, MAX_QUERY
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD, LocalQuery

pytestmark = pytest.mark.requirement("TS-002", "TS-008")


def test_missing_parameters_have_defaults() -> None:
    query = LocalQuery("read")
    assert (query.limit, query.threshold, query.kind) == (DEFAULT_LIMIT, DEFAULT_THRESHOLD, ItemKind.TOOL)
    assert (DEFAULT_LIMIT, DEFAULT_THRESHOLD) == (3, 0.35)


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u3000", "\u2003"])
def test_a_blank_query_is_refused(text: str) -> None:
    with pytest.raises(BlankQuery):
        LocalQuery(text)


def test_a_query_of_the_maximum_length_is_accepted() -> None:
    assert len(LocalQuery("x" * MAX_QUERY).text) == MAX_QUERY
    with pytest.raises(InvalidRequest) as refused:
        LocalQuery("x" * (MAX_QUERY + 1))
    assert refused.value.details == {"field": "q"}


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        LocalQuery("x", limit=limit)
    assert refused.value.details == {"field": "limit"}


@pytest.mark.parametrize("threshold", [-0.001, 1.001, math.nan, math.inf, -math.inf])
def test_a_threshold_out_of_range_is_refused(threshold: float) -> None:
    with pytest.raises(InvalidRequest) as refused:
        LocalQuery("x", threshold=threshold)
    assert refused.value.details == {"field": "threshold"}


def test_the_ends_of_each_range_are_in_it() -> None:
    assert [LocalQuery("x", limit=limit).limit for limit in (1, MAX_LIMIT)] == [1, MAX_LIMIT]
    assert [LocalQuery("x", threshold=end).threshold for end in (0.0, 1.0)] == [0.0, 1.0]


@given(st.text(max_size=MAX_QUERY))
def test_the_text_of_a_query_can_be_stored_and_sent(text: str) -> None:
    try:
        query = LocalQuery(text)
    except BlankQuery:
        assert not text.strip()
        return
    assert query.text == query.text.strip()
    assert query.text.encode()
    assert "\0" not in query.text
    assert LocalQuery(query.text) == query
