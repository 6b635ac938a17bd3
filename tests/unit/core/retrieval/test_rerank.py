"""How well a candidate's words, name and action fit a request."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import RequestTexts, catalog, having, stems
from toolscript.core.retrieval.model import Candidates
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rerank import FIT_PARTS, NO_FEATURES, FeatureReranker, Features, Fit
from toolscript.core.retrieval.weights import RankingWeights

SOME = catalog(1_000)
Stems = st.frozensets(st.sampled_from(sorted(stems("get show create file weather letter info"))))
Named = st.builds(Features, st.sampled_from(["", "get_file", "deleteWeather", "письмо", "x"]), Stems)


def fit(text: str, features: Features, candidates: Candidates = SOME) -> Fit:
    return Fit(*FeatureReranker(parse_query(text), candidates).fits([features])[0].tolist())


def test_a_candidate_that_matches_everything_fits_fully() -> None:
    assert fit("delete file", having("delete_file")) == Fit(1.0, 1.0, 1.0, 1.0, 1.0)


def test_a_candidate_that_shares_nothing_does_not_fit() -> None:
    assert fit("delete file", having("xyz")) == Fit()
    assert fit("delete file", NO_FEATURES) == Fit()


def test_coverage_is_weighted_by_idf() -> None:
    """Of 1,000 points 500 contain `file` and 10 contain `invoice`; the shares are those of the IDFs."""
    candidates = catalog(1_000, {"file": 0.5, "invoice": 0.01})
    common, rare = math.log(1 + 500.5 / 500.5), math.log(1 + 990.5 / 10.5)
    assert fit("file invoice", having("x", "file"), candidates).coverage == pytest.approx(common / (common + rare))
    assert fit("file invoice", having("x", "invoice"), candidates).coverage == pytest.approx(
        rare / (common + rare)
    )


def test_literals_count_for_coverage_only() -> None:
    fit_of_words = fit('read the notes in "garden"', having("x", "read notes"))
    assert fit_of_words.word_match == 1.0
    assert 0 < fit_of_words.coverage < 1
    assert fit('read the notes in "garden"', having("x", "garden")).word_match == 0.0


@pytest.mark.parametrize(
    ("text", "name", "share"),
    [
        ("read file", "read_file", 1.0),
        ("readFile please", "read_file", 1.0),
        ("i read books", "read", 1.0),
        ("read it", "read_file", 2 / 6),
        ("weather", "read_file", 0.0),
        ("go", "go", 1.0),
        ("let us go home", "go", 1.0),
        ("anything", "", 0.0),
    ],
)
def test_a_name_fits_as_far_as_its_letters_are_in_the_request(text: str, name: str, share: float) -> None:
    assert fit(text, Features(name, frozenset())).name == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "name", "action"),
    [
        ("create a file", "create_file", 1.0),
        ("create a file", "addFile", 1.0),
        ("create a file", "delete_file", -1.0),
        ("create a file", "file", 0.0),
        ("a file", "delete_file", 0.0),
        ("create a file", "", 0.0),
    ],
)
def test_creating_is_not_deleting(text: str, name: str, action: float) -> None:
    assert fit(text, having(name, "file")).action == action


def test_the_subject_is_the_object_of_the_subquery() -> None:
    text = "show me the blobs in the container"
    assert fit(text, having("x", "blobs")).subject == 1.0
    assert fit(text, having("x", "container")).subject == 0.0
    assert fit(text, Features("", stems("blobs"))).subject == 0.0, "a document is about more than its title"


def test_a_candidate_is_compared_with_its_best_subquery() -> None:
    text = "delete the old folder and send a letter to Ann"
    assert len(parse_query(text).subqueries) == 2
    for features in (having("delete_folder"), having("send_letter")):
        assert (fit(text, features).action, fit(text, features).subject > 0) == (1.0, True)
    assert fit(text, having("create_folder")).action == -1.0


def test_no_candidate_fits_an_empty_request() -> None:
    assert fit("", having("read_file")) == Fit()


def test_each_part_adds_its_weight_and_coverage_grows_with_the_catalog() -> None:
    weights = RankingWeights(coverage=1.0, word_match=2.0, name=3.0, action=4.0, subject=5.0)
    fits = np.array([Fit(1.0, 1.0, 1.0, -1.0, 1.0), Fit(0.5, 0.5, 0.5, 1.0, 0.5), Fit()])

    def worth(points: int) -> list[list[float]]:
        rows: list[list[float]] = FeatureReranker(parse_query("x"), catalog(points)).worth(fits, weights).tolist()
        return rows

    assert worth(100_000) == [[2.5, 2, 3, -4, 5], [1.25, 1, 1.5, 4, 2.5], [0, 0, 0, 0, 0]]
    for small in (0, 1, 316):
        assert worth(small) == [[0, 2, 3, -4, 5], [0, 1, 1.5, 4, 2.5], [0, 0, 0, 0, 0]]
    none = np.zeros((0, len(FIT_PARTS)))
    assert FeatureReranker(parse_query("x"), SOME).worth(none, weights).shape == none.shape


@settings(max_examples=150, deadline=None)
@given(RequestTexts, Named, st.integers(0, 10**6))
def test_any_fit_is_within_its_bounds(text: str, features: Features, points: int) -> None:
    result = fit(text, features, catalog(points))
    assert result.action in (-1.0, 0.0, 1.0)
    shares = [value for part, value in result._asdict().items() if part != "action"]
    assert all(0 <= share <= 1 + 1e-9 for share in shares)


@settings(max_examples=100, deadline=None)
@given(RequestTexts, Named, Stems)
def test_more_common_words_never_lower_the_fit(text: str, features: Features, more: frozenset[int]) -> None:
    less, with_more = fit(text, features), fit(text, Features(features.name, features.stems | more))
    assert with_more.coverage >= less.coverage - 1e-9
    assert with_more.word_match >= less.word_match - 1e-9
