"""Confidence: 0 to 1, in the order of the standings, and low where nothing fits."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.local.scenes import ITEMS, index_of
from toolscript.adapters.local_model import LocalEmbedder
from toolscript.model.gateway import DEFAULT_THRESHOLD
from toolscript.model.item_text import embedded_text
from toolscript.search.local.confidence import confidences
from toolscript.search.local.index import Scores
from toolscript.search.local.ranking import Ranking, rank
from toolscript.search.local.spelling import wanted

pytestmark = pytest.mark.requirement("TS-003")

NONSENSE = ["qqqq zzzz", "blorp", "xylophone giraffe marmalade", "ждщшгн", "¯\\_(ツ)_/¯", "7777"]
PLAIN = [
    ("read the contents of a file", "read_file"),
    ("send an electronic letter", "send_mail"),
    ("tomorrow's weather", "get_forecast"),
]


def ranking_of(standing: Scores, cosine: float | None, share: float) -> Ranking:
    count = len(standing)
    semantic = None if cosine is None else np.full(count, cosine)
    return Ranking(np.arange(count), standing, semantic, np.ones(count), np.full(count, share))


Standings = st.lists(st.floats(-8, 8), min_size=1, max_size=12).map(np.array)


@settings(max_examples=100, deadline=None)
@given(Standings, st.none() | st.floats(-1, 1), st.floats(0, 1))
def test_confidence_is_0_to_1_in_the_order_of_standings(
    standing: Scores, cosine: float | None, share: float
) -> None:
    found = confidences(ranking_of(standing, cosine, share))
    assert ((found >= 0) & (found <= 1)).all()
    order = np.argsort(standing, kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all()


@settings(max_examples=60, deadline=None)
@given(Standings, st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_more_evidence_for_the_best_is_never_less_confidence(
    standing: Scores, by_meaning: bool, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    if by_meaning:
        low, high = (confidences(ranking_of(standing, cosine, 0.0)) for cosine in (less, more))
    else:
        low, high = (confidences(ranking_of(standing, None, share)) for share in (less, more))
    assert high.max() >= low.max() - 1e-12


def test_no_rows_are_no_confidences() -> None:
    assert len(confidences(ranking_of(np.zeros(0), 0.5, 0.5))) == 0


def test_a_clear_lead_is_surer_than_a_crowd() -> None:
    alone, crowded = np.array([3.0, 0.0, 0.0]), np.array([3.0, 2.99, 2.98])
    assert confidences(ranking_of(alone, 0.7, 0.5)).max() > confidences(ranking_of(crowded, 0.7, 0.5)).max()


@pytest.mark.parametrize(("cosine", "share"), [(0.1, 0.9), (0.6, 0.0)])
def test_either_kind_of_evidence_is_enough(cosine: float, share: float) -> None:
    ahead = np.array([3.0, 0.0, 0.0])
    assert confidences(ranking_of(ahead, cosine, share)).max() > DEFAULT_THRESHOLD
    assert confidences(ranking_of(ahead, 0.1, 0.0)).max() < DEFAULT_THRESHOLD


def test_an_item_without_a_word_in_common_has_no_confidence_by_words_alone() -> None:
    ranking = Ranking(np.arange(2), np.array([1.0, -1.0]), None, np.array([2.0, 0.0]), np.array([0.9, 0.0]))
    found = confidences(ranking)
    assert found[0] > 0.3
    assert found[1] == 0.0


def test_by_words_alone_whatever_has_every_word_is_shown_however_many_others_do() -> None:
    crowd = Ranking(np.arange(4), np.array([0.1, 0.1, 0.1, -0.3]), None, np.ones(4), np.array([1, 1, 1, 0.2]))
    found = confidences(crowd)
    assert (found[:3] >= DEFAULT_THRESHOLD).all()
    assert found[3] < DEFAULT_THRESHOLD


@pytest.fixture(scope="module")
def real_model(model_folder: str) -> Iterator[LocalEmbedder]:
    """How near nonsense comes to something is the model's own; a double would make it up."""
    model = LocalEmbedder(model_folder, threads=1)
    yield model
    model.close()


async def best(text: str, embedder: LocalEmbedder | None) -> tuple[str, float]:
    index, vector = index_of(), None
    if embedder is not None:
        vectors = await embedder.embed_passages([embedded_text(one) for one in ITEMS])
        index, vector = index.with_vectors(vectors), await embedder.embed_query(text)
    found = confidences(rank(index, index.rows(None), wanted(text, index), vector, 0.7))
    return ITEMS[int(np.argmax(found))].name, float(found.max())


@pytest.mark.parametrize("text", NONSENSE)
async def test_nonsense_stays_under_the_usual_threshold(text: str, real_model: LocalEmbedder) -> None:
    assert (await best(text, real_model))[1] < DEFAULT_THRESHOLD
    assert (await best(text, None))[1] < DEFAULT_THRESHOLD


@pytest.mark.parametrize(("text", "name"), PLAIN)
async def test_what_is_plainly_asked_for_reaches_the_usual_threshold(
    text: str, name: str, real_model: LocalEmbedder
) -> None:
    for embedder in (real_model, None):
        found, confidence = await best(text, embedder)
        assert found == name
        assert confidence >= DEFAULT_THRESHOLD
