"""How rare a term is, as far as the arms can tell."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.retrieval.model import RAREST_SHARE, Candidates

TERM, ABSENT = 1, 2
Points = st.integers(0, 10**7)
Shares = st.floats(0, 1)


def idf(points: int, share: float) -> float:
    return Candidates(points=points, shares={TERM: share}).idf(TERM)


def test_rarity_is_that_of_bm25_with_the_points_that_have_the_term() -> None:
    """Of 1,000 points 100 have it."""
    assert idf(1_000, 0.1) == pytest.approx(math.log(1 + 900.5 / 100.5))


def test_a_term_no_sample_has_is_as_rare_as_a_term_gets() -> None:
    found = Candidates(points=1_000_000, shares={TERM: RAREST_SHARE / 10})
    assert found.idf(ABSENT) == found.idf(TERM) == idf(1_000_000, RAREST_SHARE)


@given(Points, Shares, Shares)
def test_the_more_points_have_a_term_the_less_rare_it_is(points: int, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0 < idf(points, more) <= idf(points, less)
    assert idf(points, less) <= idf(points, 0.0)


def test_an_answer_that_knows_no_shares_finds_all_terms_alike() -> None:
    nothing = Candidates()
    assert nothing.shares == {}
    assert nothing.idf(TERM) == nothing.idf(ABSENT) > 0
