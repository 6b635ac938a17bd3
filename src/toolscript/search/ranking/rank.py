"""The order of the candidates, why it is so, and how sure that is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.model.words import terms_of_word, words_of
from toolscript.search.ranking.actions import without_phrases
from toolscript.search.ranking.confidence import EVIDENCE, MOST_LEAD
from toolscript.search.ranking.first_look import FirstLook, Ids, Scores
from toolscript.search.ranking.recipe import Recipe
from toolscript.search.ranking.request import Request
from toolscript.search.ranking.second_look import FIT_PARTS, LOOKED_AT, Fit, SecondLook
from toolscript.search.ranking.traits import NOTHING_KNOWN, Traits, TraitsById

ARM_PARTS = ("meaning", "words", "wishes")
PART_NAMES = ARM_PARTS + FIT_PARTS


@dataclass(frozen=True)
class Ranking:
    """A row per candidate, best first. `similarity` is NaN where the dense arm is silent.

    `given` is what each part gave to the standing, `evidence` what each confidence was made from.
    """

    ids: Ids
    standing: Scores
    confidence: Scores
    similarity: Scores
    fits: Sequence[Fit]
    given: NDArray[np.float64]
    evidence: NDArray[np.float64]
    good_match: bool
    semantic: bool

    def parts(self, row: int) -> dict[str, float]:
        """What spoke for and against a candidate, part by part."""
        named = zip(PART_NAMES, self.given[row].tolist(), strict=True)
        return {name: round(value, 3) for name, value in named if abs(value) > 5e-4}


def rank(request: Request, look: FirstLook, traits: TraitsById, recipe: Recipe) -> Ranking:
    """`traits` are those of the first `LOOKED_AT`; whoever comes after them stays behind them."""
    closer = SecondLook(request, look.whole)
    fits = [closer.fit(traits.get(id_, NOTHING_KNOWN)) for id_ in look.ids[:LOOKED_AT].tolist()]
    added = closer.worth(fits, {part: getattr(recipe, part) for part in FIT_PARTS})
    standing = _with_the_rest_behind(look.standing, added.sum(axis=1))
    is_rest = np.arange(len(standing)) >= len(fits)
    order = np.lexsort((look.ids, -standing, is_rest))
    every_fit = [*fits, *[Fit()] * (len(standing) - len(fits))]
    evidence = _evidence(request, look, standing, fits)[order]
    confidence = recipe.calibration.confidences(evidence, semantic=look.is_semantic)
    return Ranking(
        ids=look.ids[order],
        standing=standing[order],
        confidence=confidence,
        similarity=look.similarity[order],
        fits=[every_fit[at] for at in order.tolist()],
        given=_given(look, added)[order],
        evidence=evidence,
        good_match=bool(confidence.max(initial=0.0) >= recipe.calibration.good_match),
        semantic=look.is_semantic,
    )


def unmatched_words(request: Request, looked_at: Iterable[Traits]) -> tuple[str, ...]:
    """The words of a request that none of the candidates has, as they were said."""
    there = [traits.stems for traits in looked_at]
    stem_of = {word: terms_of_word(request.meant.get(word, word))[0] for word in request.words}
    nowhere = [word for word, stem in stem_of.items() if not any(stem in stems for stems in there)]
    # What is part of a phrase that means another word was not asked for.
    read = frozenset(words_of(without_phrases(request.text))) if nowhere else frozenset()
    return tuple(word for word in nowhere if word in read)


def _with_the_rest_behind(standing: Scores, added: Scores) -> Scores:
    closer = standing[: len(added)] + added
    rest = standing[len(added) :]
    gap = max(0.0, float(rest.max() - closer.min())) if len(rest) and len(closer) else 0.0
    return np.concatenate([closer, rest - gap])


def _given(look: FirstLook, added: NDArray[np.float64]) -> NDArray[np.float64]:
    arms = np.column_stack([look.meaning, look.words, look.wishes])
    rest = np.zeros((len(arms) - len(added), len(FIT_PARTS)))
    return np.hstack([arms, np.vstack([added, rest])])


def _evidence(request: Request, look: FirstLook, standing: Scores, fits: Sequence[Fit]) -> NDArray[np.float64]:
    """Of those that nobody looked at closely, nothing is known to fit."""
    rows = np.zeros((len(standing), len(EVIDENCE)))
    of = {name: rows[:, at] for at, name in enumerate(EVIDENCE)}
    of["one"][:] = 1.0
    of["wishes"][:] = len(request.wishes)
    of["similarity"][:] = np.nan_to_num(look.similarity)
    of["lead"][:] = _leads(standing)
    for name in ("said", "name", "subject"):
        of[name][: len(fits)] = [getattr(fit, name) for fit in fits]
    return rows


def _leads(standing: Scores) -> Scores:
    """How far each stands before the best of the others."""
    if len(standing) < 2:
        return np.full(len(standing), MOST_LEAD)
    second, first = np.partition(standing, -2)[-2:]
    rival = np.where(standing == first, second, first)
    return np.asarray(np.clip(standing - rival, -MOST_LEAD, MOST_LEAD))
