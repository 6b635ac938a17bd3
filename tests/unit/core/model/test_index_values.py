"""The IDF of a term, from the shares that retrieval reports; candidates as arrays."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.retrieval.model import RAREST_SHARE, Candidate, CandidateArrays, Candidates

TERM, ABSENT = 1, 2
Points = st.integers(0, 10**7)
Shares = st.floats(0, 1)


def idf(points: int, share: float) -> float:
    return Candidates(points=points, shares={TERM: share}).idf(TERM)


def test_the_idf_is_that_of_bm25() -> None:
    """100 of 1,000 points contain the term."""
    assert idf(1_000, 0.1) == pytest.approx(math.log(1 + 900.5 / 100.5))


def test_a_term_missing_from_the_sample_has_the_maximum_idf() -> None:
    candidates = Candidates(points=1_000_000, shares={TERM: RAREST_SHARE / 10})
    assert candidates.idf(ABSENT) == candidates.idf(TERM) == idf(1_000_000, RAREST_SHARE)


@given(Points, Shares, Shares)
def test_the_idf_falls_as_more_points_contain_a_term(points: int, first: float, second: float) -> None:
    less, more = sorted((first, second))
    assert 0 < idf(points, more) <= idf(points, less)
    assert idf(points, less) <= idf(points, 0.0)


def test_without_shares_all_terms_have_the_same_idf() -> None:
    nothing = Candidates()
    assert nothing.shares == {}
    assert nothing.idf(TERM) == nothing.idf(ABSENT) > 0


@given(st.lists(st.tuples(st.integers(0, 2**62), st.floats(-1, 1)), max_size=5))
def test_candidates_as_arrays_are_the_same_sequence(pairs: list[tuple[int, float]]) -> None:
    candidates = [Candidate(*pair) for pair in pairs]
    arrays = CandidateArrays.of(candidates)
    assert list(arrays) == candidates
    assert [arrays[place] for place in range(len(arrays))] == candidates
    assert list(arrays[1:3]) == candidates[1:3]
    assert CandidateArrays.of(arrays) is arrays
    assert not len(CandidateArrays.of(None))
