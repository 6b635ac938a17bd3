"""A sparse search reads no more than its budget, and drops the most common terms."""

from toolscript.core.qdrant.index import ALWAYS_KEPT, BUDGET, CommonTerms

RARE, HALF, ALL = 1, 2, 3


def test_a_small_collection_is_searched_for_every_term() -> None:
    terms = {RARE: 0.65, HALF: 0.65, ALL: 0.35}
    assert CommonTerms(10_000, {HALF: 0.5, ALL: 1.0}).within_budget(terms) == terms


def test_the_most_common_terms_of_a_large_collection_are_left_out_first() -> None:
    common = CommonTerms(BUDGET, {HALF: 0.5, ALL: 1.0})
    rare = dict.fromkeys(range(10, 10 + ALWAYS_KEPT), 0.65)
    assert common.within_budget({ALL: 1.0, **rare, HALF: 1.0}) == {**rare, HALF: 1.0}


def test_a_query_of_only_common_terms_keeps_its_rarest() -> None:
    common = CommonTerms(BUDGET * 10, {term: 0.5 + term / 100 for term in range(20)})
    assert set(common.within_budget(dict.fromkeys(range(20), 1.0))) == set(range(ALWAYS_KEPT))


def test_a_sample_measures_how_common_a_term_is() -> None:
    common = CommonTerms.of_sample(1_000, [[ALL, HALF], [ALL], [ALL, HALF], [ALL, RARE]])
    assert common.shares == {ALL: 1.0, HALF: 0.5, RARE: 0.25}


def test_shares_are_returned_for_the_terms_of_a_sample() -> None:
    common = CommonTerms(1_000, {ALL: 1.0, HALF: 0.5})
    assert common.shares_of([HALF, RARE]) == {HALF: 0.5}
    assert common.shares_of([]) == {}


def test_an_empty_sample_has_no_shares() -> None:
    assert CommonTerms.of_sample(0, []).within_budget({RARE: 1.0}) == {RARE: 1.0}
