"""Whether anything fits: what raises and what lowers it, and what the cosines of a model mean."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toolscript.core.embedding.scale import FOREIGN_PROBES, PROBES, measure_scale, scale_of
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.retrieval.model import ModelCard, Vector
from toolscript.core.retrieval.verdict import (
    FITTED,
    PROBED_LANGUAGES,
    CosineScale,
    FitEvidence,
    ServedEvidence,
    WordEvidence,
    fit,
    fit_by_words,
    served,
    verdict_of,
)
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("VE-001")

SCALE = CosineScale(0.1, 0.1)
NEAR = FitEvidence(
    similarity=np.array([0.7, 0.6]),
    word_match=np.array([0.5, 0.0]),
    subject=np.array([0.5, 0.0]),
    action=np.array([1.0, 0.0]),
    neighbours=np.full(10, 0.5),
    matched=0.5,
    items=200,
)


def test_what_raises_and_what_lowers_the_fit() -> None:
    near = fit(NEAR, SCALE)
    assert near > 0
    assert fit(replace(NEAR, similarity=NEAR.similarity - 0.3), SCALE) < near
    assert fit(replace(NEAR, neighbours=NEAR.neighbours - 0.3), SCALE) < near
    assert fit(replace(NEAR, matched=0.0), SCALE) < near
    assert fit(replace(NEAR, items=20_000), SCALE) < near
    assert fit(replace(NEAR, word_match=np.zeros(2)), SCALE) < near
    assert fit(replace(NEAR, subject=np.zeros(2)), SCALE) < near


def test_equal_distances_mean_the_same_with_every_model() -> None:
    other = CosineScale(0.75, 0.03)
    moved = replace(
        NEAR,
        similarity=0.75 + (NEAR.similarity - 0.1) * 0.3,
        neighbours=0.75 + (NEAR.neighbours - 0.1) * 0.3,
    )
    assert fit(moved, other) == pytest.approx(fit(NEAR, SCALE))


def test_nothing_fits_without_candidates() -> None:
    none = np.zeros(0)
    nothing = replace(NEAR, similarity=none, word_match=none, subject=none, action=none)
    assert fit(nothing, SCALE) == -np.inf
    assert fit(replace(NEAR, neighbours=np.zeros(0)), SCALE) == -np.inf


def test_a_catalog_beyond_those_measured_is_judged_like_the_largest() -> None:
    assert fit(replace(NEAR, items=10**6), SCALE) == fit(replace(NEAR, items=10**5), SCALE)


# Two words of three that one item in twenty has, in a catalog of 200.
IN_WORDS = WordEvidence(
    word_match=np.array([0.67, 0.1]),
    subject=np.array([1.0, 0.0]),
    action=np.array([1.0, -1.0]),
    name=np.array([0.6, 0.2]),
    information=9.0,
    matched=0.67,
    items=200,
)


@pytest.mark.parametrize("feature", ["word_match", "subject", "action", "name"])
def test_every_feature_of_the_best_candidate_raises_the_fit_by_words(feature: str) -> None:
    assert fit_by_words(IN_WORDS) > 0
    less = getattr(IN_WORDS, feature) - np.array([0.3, 0.0])
    assert fit_by_words(replace(IN_WORDS, **{feature: less})) < fit_by_words(IN_WORDS)


def test_words_that_a_catalog_of_this_size_has_by_chance_say_little() -> None:
    common = replace(IN_WORDS, information=IN_WORDS.information / 3)
    assert fit_by_words(common) < fit_by_words(IN_WORDS)
    assert fit_by_words(replace(IN_WORDS, items=20_000)) < fit_by_words(IN_WORDS)
    assert fit_by_words(replace(IN_WORDS, items=10**6)) == fit_by_words(replace(IN_WORDS, items=10**5))
    assert fit_by_words(replace(IN_WORDS, matched=0.3)) < fit_by_words(IN_WORDS)


def test_many_words_in_common_count_up_to_a_limit() -> None:
    many = replace(IN_WORDS, information=100.0)
    assert fit_by_words(replace(many, information=1_000.0)) == fit_by_words(many)


def test_nothing_fits_by_words_without_candidates_or_common_words() -> None:
    none = np.zeros(0)
    assert fit_by_words(replace(IN_WORDS, word_match=none, subject=none, action=none, name=none)) == -np.inf
    zero = np.zeros(2)
    no_words = replace(IN_WORDS, word_match=zero, subject=zero, matched=0.0)
    assert fit_by_words(no_words) < 0


async def test_the_built_in_model_is_trusted_and_one_that_knows_no_meaning_is_not() -> None:
    scale = await measure_scale(StaticEmbedder())
    assert scale.is_trusted
    assert 0 < scale.unrelated < scale.spread < 0.2

    class Equal(HashEmbedder):
        """All texts are alike."""

        async def embed_query(self, text: str) -> Vector:
            return await super().embed_query("the same")

    assert not (await measure_scale(Equal())).is_trusted


async def test_a_model_is_measured_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    file, embedder = tmp_path_factory.mktemp("cache") / "scales.json", HashEmbedder()
    first = await scale_of(embedder, file)
    embedded = embedder.texts_embedded
    assert embedded >= len(PROBES)
    assert await scale_of(embedder, file) == first
    assert embedder.texts_embedded == embedded
    file.write_text('{"damaged": 1}')
    assert await scale_of(embedder, file) == first


async def test_a_request_near_to_tools_of_any_kind_has_a_higher_baseline() -> None:
    embedder = StaticEmbedder()
    scale = await measure_scale(embedder)
    any_kind = await embedder.embed_query("a tool that returns a list of the items that it finds")
    something = await embedder.embed_query("photosynthesis")
    assert scale.baseline(any_kind) > scale.baseline(something)
    assert CosineScale(0.1, 0.1).baseline(any_kind) == 0.0


def test_cosines_of_another_model_are_read_as_those_of_the_fitted_one() -> None:
    cosines = np.array([0.1, 0.5])
    assert FITTED.as_fitted(cosines) == pytest.approx(cosines)
    other = CosineScale(0.75, FITTED.spread / 4)
    moved = 0.75 + (cosines - FITTED.unrelated) / 4
    assert other.as_fitted(moved) == pytest.approx(cosines)


ENGLISH_OF = {
    foreign: next(request for request, _, name, _ in PROBES if name == tool)
    for probes in FOREIGN_PROBES.values()
    for tool, foreign in probes.items()
}


class Polyglot(StaticEmbedder):
    """Knows the probes of some languages: it reads them as if they were English."""

    def __init__(self, *languages: str) -> None:
        super().__init__()
        self._known = {text for language in languages for text in FOREIGN_PROBES[language].values()}

    async def embed_query(self, text: str) -> Vector:
        return await super().embed_query(ENGLISH_OF[text] if text in self._known else text)


async def test_the_languages_of_a_model_are_those_in_which_it_finds_the_right_tools() -> None:
    assert (await measure_scale(Polyglot())).languages == ()
    assert (await measure_scale(Polyglot("zh"))).languages == ("zh",)
    assert (await measure_scale(Polyglot(*PROBED_LANGUAGES))).languages == PROBED_LANGUAGES


async def test_a_model_that_is_multilingual_by_its_name_is_not_tried() -> None:
    class Named(HashEmbedder):
        @property
        def model(self) -> ModelCard:
            return replace(super().model, name="intfloat/Multilingual-E5-Small")

    assert (await measure_scale(Named())).languages == PROBED_LANGUAGES


def test_a_language_that_was_not_tried_is_known_with_most_others() -> None:
    assert not CosineScale(0.1, 0.1, languages=()).knows("it")
    assert not CosineScale(0.1, 0.1, languages=("de", "es")).knows("it")
    assert CosineScale(0.1, 0.1, languages=("de", "es", "ru")).knows("it")
    assert not CosineScale(0.1, 0.1, languages=("de", "es", "ru")).knows("zh")
    assert CosineScale(0.1, 0.1).knows("zh"), "nothing is claimed of a model that was not tried"


def test_every_probe_in_another_language_is_for_a_tool_of_the_probes() -> None:
    assert set(FOREIGN_PROBES) == set(PROBED_LANGUAGES)
    assert {tool for probes in FOREIGN_PROBES.values() for tool in probes} <= {name for _, _, name, _ in PROBES}


def evidence(fit: float = 2.0, score: float = 5.0, items: int = 200, **more: Any) -> ServedEvidence:
    return ServedEvidence(fit, score, items, **more)


def test_a_good_match_is_on_the_subject_and_stands_out() -> None:
    assert verdict_of(evidence(), product_missing=False) > 0
    assert verdict_of(evidence(fit=-1.0), product_missing=False) < 0, "the subject is another one"
    assert verdict_of(evidence(score=1.0), product_missing=False) < 0, "nothing stands out"


@pytest.mark.parametrize("against", [{"differs": True}, {"verb_missing": True}, {"score": 4.0}, {"fit": 1.0}])
def test_what_speaks_against_an_answer_lowers_the_logit(against: dict[str, Any]) -> None:
    assert served(evidence(**against)) < served(evidence())


def test_a_product_that_nobody_has_is_no_good_match() -> None:
    assert (
        verdict_of(evidence(score=8.0), product_missing=False) > 0 > verdict_of(evidence(), product_missing=True)
    )


def test_among_few_items_nothing_has_to_stand_out_as_far() -> None:
    assert served(evidence(items=4)) > served(evidence(items=50)) == served(evidence(items=5_000))
