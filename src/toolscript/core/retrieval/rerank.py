"""Reranking of the best candidates by their features."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.item_text import unpack_stems
from toolscript.core.retrieval.fusion import RETRIEVER_PARTS, FusedScores, Ids, Scores
from toolscript.core.retrieval.language import Language, foreign_language
from toolscript.core.retrieval.model import Candidates, Fields
from toolscript.core.retrieval.request import (
    SYNONYM_WEIGHT,
    Request,
    actions_named,
    agreement,
    is_english,
    strip_phrases,
)
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, words_of
from toolscript.core.retrieval.verdict import (
    MAX_LOGIT,
    CosineScale,
    FitEvidence,
    ServedEvidence,
    WordEvidence,
    fit,
    fit_by_words,
    verdict_of,
)
from toolscript.core.retrieval.weights import EVIDENCE, MAX_LEAD, RankingWeights, confidence_of

# The payload fields that features are read from.
FEATURE_FIELDS = ("server", "name", "stems")

RERANK_DEPTH = 50
# The maximum number of results for one step of a request for several things.
STEP_HITS = 3
# So many candidates are shown: the verdict is about these.
FIRST = 3
# A catalog of up to 10^SMALL items is small: a matching word proves little there.
SMALL = 2.5


@dataclass(frozen=True)
class Features:
    """The features of a candidate. `name` is blank for a document: its title does not name an action."""

    name: str
    stems: frozenset[int]

    @cached_property
    def trigrams(self) -> frozenset[str]:
        return trigrams(self.name)

    @cached_property
    def actions(self) -> frozenset[str]:
        return actions_named(split_identifier(self.name).casefold().split())


def features_of_payload(fields: Fields) -> Features:
    """A catalog has no tools without a server, so a payload without one is that of a document."""
    return Features(
        str(fields["name"]) if fields.get("server") else "", unpack_stems(str(fields.get("stems", "")))
    )


def trigrams(text: str) -> frozenset[str]:
    letters = "".join(filter(str.isalnum, text.casefold()))
    return frozenset([letters[index : index + 3] for index in range(len(letters) - 2)] or filter(None, [letters]))


@lru_cache(maxsize=2_048)
def _trigrams_of_word(word: str) -> frozenset[str]:
    """Cached: requests share many words."""
    return trigrams(word)


NO_FEATURES = Features("", frozenset())
FeaturesById = Mapping[int, Features]


class Fit(NamedTuple):
    """How a candidate fits a request: each value is 0 to 1, except `action`, -1 for a different action."""

    coverage: float = 0.0
    word_match: float = 0.0
    name: float = 0.0
    action: float = 0.0
    subject: float = 0.0


FIT_PARTS = Fit._fields


@dataclass(frozen=True)
class _SubQueryTerms:
    """A sub-query with its stems as bit masks."""

    stems: int
    subject: int
    action: frozenset[str]


class FeatureReranker:
    """Reranks by features. `candidates` provide the IDF of each term and the size of the catalog.

    Each word of the request is a bit, so the words that a candidate matches are one integer: few different ones
    occur, and what each is worth is cached. A word that matches only by a synonym counts less.
    """

    def __init__(self, request: Request, candidates: Candidates) -> None:
        self._stems = frozenset().union(
            *(query.stems | query.subject for query in request.parts), request.plain_stems
        )
        self._bits = {stem: 1 << index for index, stem in enumerate(self._stems)}
        self._idfs = {bit: candidates.idf(stem) for stem, bit in self._bits.items()}
        self._synonyms = [(synonym.meaning, self._mask(synonym.source)) for synonym in request.synonyms]
        self._meant = frozenset().union(*(meaning.stems for meaning, _ in self._synonyms))
        self._weights: dict[int, float] = {}
        self._fits: dict[tuple[int, frozenset[str]], Fit] = {}
        self._whole, self._plain = self._mask(request.whole.stems), self._mask(request.plain_stems)
        self._subqueries = [
            _SubQueryTerms(self._mask(query.stems), self._mask(query.subject), query.action)
            for query in request.single_subqueries
        ]
        self._letters = trigrams(request.text).union(*map(_trigrams_of_word, words_of(request.text)))
        self._points = candidates.points
        self._size = max(0.0, math.log10(max(1, candidates.points)) - SMALL)

    def fits(self, candidates: Sequence[Features]) -> NDArray[np.float64]:
        """Return how each candidate fits: a row per candidate, a column per part of `Fit`."""
        values = chain.from_iterable(map(self._fit, candidates))
        return np.fromiter(values, np.float64).reshape(-1, len(FIT_PARTS))

    def _fit(self, features: Features) -> tuple[float, ...]:
        matched = self._mask(features.stems & self._stems)
        if not self._meant.isdisjoint(features.stems):
            matched |= self._by_synonyms(features.stems, matched)
        key = matched, features.actions
        of_words = self._fits.get(key)
        if of_words is None:
            of_words = self._fits[key] = self._fit_of_words(*key)
        coverage, word_match, _, action, subject = of_words
        letters = features.trigrams
        name = len(letters & self._letters) / len(letters) if letters else 0.0
        return coverage, word_match, name, action, subject if features.name else 0.0

    def _fit_of_words(self, matched: int, actions: frozenset[str]) -> Fit:
        """Return the fit of candidates that match these words and are named after these actions, but for names."""

        def suits(subquery: _SubQueryTerms) -> float:
            shared = self._share(subquery.stems, matched) + self._share(subquery.subject, matched)
            return shared + 0.2 * agreement(subquery.action, actions)

        best = max(self._subqueries, key=suits) if len(self._subqueries) > 1 else self._subqueries[0]
        return Fit(
            coverage=self._share(self._whole, matched),
            word_match=self._share(self._plain, matched),
            action=agreement(best.action, actions),
            subject=self._share(best.subject, matched),
        )

    def worth(self, fits: NDArray[np.float64], weights: RankingWeights) -> NDArray[np.float64]:
        """Return what each part adds to each candidate's score: a row per candidate, a column per part."""
        by_part = [getattr(weights, part) * (self._size if part == "coverage" else 1.0) for part in FIT_PARTS]
        return np.asarray(fits * np.array(by_part))

    def word_evidence(self, fits: NDArray[np.float64], matched: float) -> WordEvidence:
        """Return the evidence of words alone that anything fits. `fits` has a row per candidate."""
        by_part = {part: fits[:, FIT_PARTS.index(part)] for part in ("word_match", "subject", "action", "name")}
        return WordEvidence(**by_part, information=self._weight(self._plain), matched=matched, items=self._points)

    def _mask(self, stems: Iterable[int]) -> int:
        return sum(map(self._bits.__getitem__, stems))

    def _by_synonyms(self, stems: frozenset[int], matched: int) -> int:
        """Return the words that match by a synonym only, as bits above those of the words themselves."""
        by_synonyms = 0
        for meaning, source in self._synonyms:
            if meaning.is_in(stems):
                by_synonyms |= source
        return (by_synonyms & ~matched) << len(self._bits)

    def _share(self, stems: int, matched: int) -> float:
        """Return the share of the stems that match, weighted by IDF."""
        if not matched:
            return 0.0
        total, weight = self._weight(stems), self._weight(stems & matched)
        if by_synonyms := matched >> len(self._bits):
            weight += SYNONYM_WEIGHT * self._weight(stems & by_synonyms)
        return weight / total if total else 0.0

    def _weight(self, stems: int) -> float:
        weight = self._weights.get(stems)
        if weight is None:
            weight, rest = 0.0, stems
            while rest:
                bit = rest & -rest
                weight += self._idfs[bit]
                rest ^= bit
            self._weights[stems] = weight
        return weight


PART_NAMES = RETRIEVER_PARTS + FIT_PARTS
_COLUMNS = {name: column for column, name in enumerate(EVIDENCE)}


@dataclass(frozen=True)
class RankedCandidates:
    """The candidates after fusion and rerank: a row each, best first. `similarity` is NaN without a dense score.

    `score` is the combined score, `contributions` what each part adds, `evidence` the input of `probability`, that
    the candidate is right. `confidence` is this on a scale from which the verdict can be read: what is worth its
    place has at least SHOWN where something fits, and nothing has where nothing does.
    `fits` are zero for those that are not reranked.
    `fit` is the logit that anything fits, by cosines or, without a model that can be trusted, by words; None if
    neither is known. `unknown_language` is that of a request that the model does not know: then nothing is a good
    match. `unmatched` are the words of the request that none of the reranked candidates has.
    """

    ids: Ids
    score: Scores
    probability: Scores
    confidence: Scores
    similarity: Scores
    fits: NDArray[np.float64]
    contributions: NDArray[np.float64]
    evidence: NDArray[np.float64]
    good_match: bool
    semantic: bool
    fit: float | None = None
    unknown_language: Language | None = None
    unmatched: tuple[str, ...] = ()

    def parts(self, row: int) -> dict[str, float]:
        """Return the contribution of each part to a candidate's score; those near zero are left out."""
        values = zip(PART_NAMES, self.contributions[row].tolist(), strict=True)
        return {name: round(value, 3) for name, value in values if abs(value) > 5e-4}

    def fit_of(self, row: int) -> Fit:
        return Fit(*self.fits[row].tolist())

    def promoted(self, ids: Collection[int]) -> "RankedCandidates":
        """Return the candidates with these first, in the order that they have, with a confidence of 1."""
        is_promoted = np.isin(self.ids, [*ids])
        order = np.argsort(~is_promoted, kind="stable")
        return replace(
            self,
            ids=self.ids[order],
            score=self.score[order],
            probability=np.where(is_promoted, 1.0, self.probability)[order],
            confidence=np.where(is_promoted, 1.0, self.confidence)[order],
            similarity=self.similarity[order],
            fits=self.fits[order],
            contributions=self.contributions[order],
            evidence=self.evidence[order],
            good_match=self.good_match or bool(is_promoted.any()),
        )


def rank(
    request: Request,
    fused: FusedScores,
    features: FeaturesById,
    weights: RankingWeights,
    scale: CosineScale | None = None,
) -> RankedCandidates:
    """Rerank the first RERANK_DEPTH candidates by their features; all others stay behind them.

    Without the `scale` of its cosines, the verdict on what a model finds is that of the confidence.
    """
    first = _Reranked.of(request, fused, features, weights)
    fits, score, order = first.fits, first.score, first.order
    language = _unknown_language(request, first.unmatched, scale) if scale and fused.is_semantic else None
    logit = first.verdict(scale)
    if logit is not None and language is not None:
        logit = min(logit, 0.0)
    evidence = _evidence(request, fused, score, fits, _trusted(scale, fused), logit)[order]
    probability = weights.calibration.probabilities(evidence, semantic=fused.is_semantic)
    good_match = language is None and _is_good(logit, float(probability.max(initial=0.0)), weights)
    return RankedCandidates(
        ids=fused.ids[order],
        score=score[order],
        probability=probability,
        confidence=confidence_of(probability, good_match=good_match),
        similarity=fused.similarity[order],
        fits=_followed_by_zeros(fits, len(score))[order],
        contributions=_contributions(fused, first.added)[order],
        evidence=evidence,
        good_match=good_match,
        semantic=fused.is_semantic,
        fit=logit,
        unmatched=first.unmatched,
        unknown_language=language,
    )


@dataclass(frozen=True)
class _Reranked:
    """The first candidates with their features and `fits`; the scores of all, and the order that these make."""

    request: Request
    fused: FusedScores
    reranker: FeatureReranker
    features: Sequence[Features]
    unmatched: tuple[str, ...]
    fits: NDArray[np.float64]
    added: NDArray[np.float64]
    score: Scores
    order: Ids

    @classmethod
    def of(
        cls, request: Request, fused: FusedScores, features: FeaturesById, weights: RankingWeights
    ) -> "_Reranked":
        listed = [features.get(id_, NO_FEATURES) for id_ in fused.ids[:RERANK_DEPTH].tolist()]
        reranker = FeatureReranker(request, fused.whole)
        fits = reranker.fits(listed)
        added = reranker.worth(fits, weights)
        score = _add_to_top(fused.score, added.sum(axis=1))
        is_rest = np.arange(len(score)) >= len(fits)
        order = np.lexsort((fused.ids, -score, is_rest))
        unmatched = unmatched_words(request, listed)
        return cls(request, fused, reranker, listed, unmatched, fits, added, score, order)

    def verdict(self, scale: CosineScale | None) -> float | None:
        """Return the logit of the verdict: from that of the subject, and from what the first candidates do."""
        subject = self._subject(scale)
        if subject is None:
            return None
        reading = self.request.reading
        if not len(self.fits) or (reading is not None and reading.says_nothing):
            return -MAX_LOGIT
        single, best = not self.request.subqueries, int(self.order[0])
        first = [self.features[place] for place in self.order[:FIRST].tolist()]
        evidence = ServedEvidence(
            fit=subject,
            score=float(self.score[best]),
            items=self.fused.whole.points,
            differs=single and float(self.fits[best, FIT_PARTS.index("action")]) < 0,
            verb_missing=single and self._lack(self.request.whole.verb, first),
            subqueries=len(self.request.subqueries),
        )
        products = () if reading is None else reading.products
        missing = any(self._lack(terms_of_word(product)[0], self.features) for product in products)
        return verdict_of(evidence, product_missing=missing)

    def _subject(self, scale: CosineScale | None) -> float | None:
        """Return the logit that anything is on the subject, by cosines or by words; None if neither tells."""
        trusted = _trusted(scale, self.fused)
        if trusted and not _is_in_other_letters(self.request, trusted):
            return fit(_fit_evidence(self.request, self.fused, self.fits, self.unmatched), trusted)
        if self.fused.is_semantic and scale is None:
            return None
        if all(one is NO_FEATURES for one in self.features):
            # No payload could be read, so words do not tell.
            return None if len(self.fits) else -math.inf
        return fit_by_words(self.reranker.word_evidence(self.fits, _matched(self.request, self.unmatched)))

    def _lack(self, stem: int | None, candidates: Sequence[Features]) -> bool:
        """Return whether none of the candidates has the word or what it means."""
        if stem is None:
            return False
        stem_sets = [features.stems for features in candidates]
        return not any(stem in stems for stems in stem_sets) and not _has_meaning(stem, self.request, stem_sets)


def _is_in_other_letters(request: Request, scale: CosineScale) -> bool:
    """Return whether the request is written in letters that the model cannot read: then words have to tell."""
    if request.typed.isascii():
        return False
    language = foreign_language(request.typed)
    return language is not None and language.is_certain and not scale.knows(language.code)


def _trusted(scale: CosineScale | None, fused: FusedScores) -> CosineScale | None:
    return scale if scale and scale.is_trusted and fused.is_semantic else None


def _is_good(logit: float | None, best: float, weights: RankingWeights) -> bool:
    """Return the verdict by the logit that anything fits and the best confidence, or by this alone."""
    if logit is None:
        return best >= weights.calibration.good_match_threshold
    return logit > 0


def _unknown_language(request: Request, unmatched: Sequence[str], scale: CosineScale) -> Language | None:
    """Return the language of a request that the model does not know, unless the catalog has most of its words.

    Where the language is not certain, no word may be one of English or of the catalog.
    """
    # Between words of one script a correction is another form of a word; to English words it is a loan word.
    loans = [word for word, meant in request.corrections.items() if word.isascii() or meant.isascii()]
    foreign = {*unmatched, *loans}
    # Telling the language takes longer than all else here, so it comes last.
    if 2 * len(foreign) < len(request.words):
        return None
    language = foreign_language(request.typed)
    if language is None or scale.knows(language.code):
        return None
    is_foreign = foreign.issuperset(request.words) and not any(map(is_english, request.words))
    return language if language.is_certain or is_foreign else None


def _fit_evidence(
    request: Request, fused: FusedScores, fits: NDArray[np.float64], unmatched: Sequence[str]
) -> FitEvidence:
    """Return the evidence that anything fits, from the candidates that are reranked."""
    similarity = fused.best_similarity[: len(fits)]
    return FitEvidence(
        # A candidate without a dense score is farther than all that have one.
        similarity=np.where(np.isnan(similarity), fused.neighbours.min(initial=0.0), similarity),
        word_match=fits[:, FIT_PARTS.index("word_match")],
        subject=fits[:, FIT_PARTS.index("subject")],
        action=fits[:, FIT_PARTS.index("action")],
        neighbours=fused.neighbours,
        matched=_matched(request, unmatched),
        items=fused.whole.points,
    )


def _matched(request: Request, unmatched: Sequence[str]) -> float:
    """Return the share of the words that some candidate has."""
    return 1 - len(unmatched) / max(1, len(request.words))


def unmatched_words(request: Request, candidates: Iterable[Features]) -> tuple[str, ...]:
    """Return the words of a request that no candidate contains, as they were written."""
    stem_sets = [features.stems for features in candidates]
    missing = frozenset(request.stems_of_words.values())
    for stems in stem_sets:
        missing = missing - stems
        if not missing:
            return ()
    unmatched = [word for word, stem in request.stems_of_words.items() if stem in missing]
    if request.synonyms:
        unmatched = [word for word in unmatched if not _has_meaning(request.stem_of(word), request, stem_sets)]
    # Words of an idiom that `strip_phrases` replaces do not count.
    counted = frozenset(words_of(strip_phrases(request.text))) if unmatched else frozenset()
    return tuple(word for word in unmatched if word in counted)


def _has_meaning(stem: int, request: Request, stem_sets: Sequence[frozenset[int]]) -> bool:
    return any(meaning.is_in(stems) for meaning in request.meanings_of(stem) for stems in stem_sets)


def _add_to_top(score: Scores, added: Scores) -> Scores:
    """Add to the scores of the first candidates, and shift the rest so that none overtakes them."""
    top = score[: len(added)] + added
    rest = score[len(added) :]
    gap = max(0.0, float(rest.max() - top.min())) if len(rest) and len(top) else 0.0
    return np.concatenate([top, rest - gap])


def _contributions(fused: FusedScores, added: NDArray[np.float64]) -> NDArray[np.float64]:
    of_retrievers = [getattr(fused, part) for part in RETRIEVER_PARTS]
    return np.column_stack([*of_retrievers, _followed_by_zeros(added, len(fused.ids))])


def _followed_by_zeros(rows: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return as many rows as there are candidates: those beyond the rerank depth have none."""
    return np.concatenate([rows, np.zeros((count - len(rows), rows.shape[1]))])


def _evidence(
    request: Request,
    fused: FusedScores,
    score: Scores,
    fits: NDArray[np.float64],
    scale: CosineScale | None,
    logit: float | None,
) -> NDArray[np.float64]:
    """Return the evidence for each candidate; those beyond the rerank depth have no features."""
    rows = np.zeros((len(score), len(EVIDENCE)))
    rows[:, _COLUMNS["one"]] = 1.0
    rows[:, _COLUMNS["fit"]] = min(MAX_LOGIT, max(-MAX_LOGIT, logit or 0.0))
    rows[:, _COLUMNS["subqueries"]] = len(request.subqueries)
    similarity = scale.as_fitted(fused.similarity) if scale else fused.similarity
    rows[:, _COLUMNS["similarity"]] = np.where(np.isnan(similarity), 0.0, similarity)
    # In a catalog of one item there is nobody to be ahead of.
    rows[:, _COLUMNS["lead"]] = _leads(score) if fused.whole.points > 1 else 0.0
    for name in ("word_match", "name", "subject"):
        rows[: len(fits), _COLUMNS[name]] = fits[:, FIT_PARTS.index(name)]
    return rows


def _leads(score: Scores) -> Scores:
    """Return the lead of each score over the best of the others."""
    if len(score) < 2:
        return np.full(len(score), MAX_LEAD)
    second, first = np.partition(score, -2)[-2:]
    rival = np.where(score == first, second, first)
    return np.asarray(np.minimum(np.maximum(score - rival, -MAX_LEAD), MAX_LEAD))
