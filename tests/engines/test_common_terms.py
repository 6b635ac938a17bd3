"""A word search reads no more than its budget, and leaves out what says the least."""

from toolscript.core.qdrant.index import ALWAYS_KEPT, BUDGET, CommonTerms

RARE, HALF, ALL = 1, 2, 3


def test_a_small_collection_is_asked_for_every_term() -> None:
    asked = {RARE: 0.65, HALF: 0.65, ALL: 0.35}
    assert CommonTerms(10_000, {HALF: 0.5, ALL: 1.0}).within_budget(asked) == asked


def test_the_most_common_terms_of_a_large_collection_are_left_out_first() -> None:
    known = CommonTerms(BUDGET, {HALF: 0.5, ALL: 1.0})
    rare = dict.fromkeys(range(10, 10 + ALWAYS_KEPT), 0.65)
    assert known.within_budget({ALL: 1.0, **rare, HALF: 1.0}) == {**rare, HALF: 1.0}


def test_a_query_of_common_words_alone_keeps_its_rarest() -> None:
    known = CommonTerms(BUDGET * 10, {term: 0.5 + term / 100 for term in range(20)})
    assert set(known.within_budget(dict.fromkeys(range(20), 1.0))) == set(range(ALWAYS_KEPT))


def test_a_sample_tells_how_common_a_term_is() -> None:
    known = CommonTerms.of_sample(1_000, [[ALL, HALF], [ALL], [ALL, HALF], [ALL, RARE]])
    assert known.shares == {ALL: 1.0, HALF: 0.5, RARE: 0.25}


def test_shares_are_told_of_the_terms_that_a_sample_has() -> None:
    known = CommonTerms(1_000, {ALL: 1.0, HALF: 0.5})
    assert known.shares_of([HALF, RARE]) == {HALF: 0.5}
    assert known.shares_of([]) == {}


def test_an_empty_sample_knows_nothing() -> None:
    assert CommonTerms.of_sample(0, []).within_budget({RARE: 1.0}) == {RARE: 1.0}
