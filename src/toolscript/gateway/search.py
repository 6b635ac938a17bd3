"""Local tool search: embed, retrieve, rank, and give each hit a confidence and a reason."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.curation import NO_CURATION, CuratedRequest, Rule, Tool
from toolscript.core.retrieval.fusion import CANDIDATES_PER_RETRIEVER, FusedScores, fuse_scores
from toolscript.core.retrieval.language import Language, foreign_language, unknown_language_hint
from toolscript.core.retrieval.model import CandidateArrays, Candidates, IndexCard, Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType, resolve_search_type
from toolscript.core.retrieval.request import Request, parse_query
from toolscript.core.retrieval.rerank import (
    RERANK_DEPTH,
    STEP_HITS,
    FeaturesById,
    RankedCandidates,
    rank,
    unmatched_words,
)
from toolscript.core.retrieval.rewriting import Rewriter, default_rewriter
from toolscript.core.retrieval.spelling import corrections, corrections_of
from toolscript.core.retrieval.timings import Stages
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import RankingWeights, confidence_of
from toolscript.gateway.capabilities import Capabilities, General, Inferred
from toolscript.gateway.index import (
    EXACT_BUT_FOR_CASE,
    LocalIndex,
    Rows,
    Scores,
    name_likeness,
)
from toolscript.gateway.literal import LiteralScores, boosts, literal_hit, semantic_scores, word_shares
from toolscript.gateway.model import (
    HOW_TO_GET_SERVERS,
    LOWER_THRESHOLD,
    LocalAnswer,
    LocalHit,
    LocalQuery,
    LocalStep,
    Placement,
    ScoreParts,
)
from toolscript.gateway.reasons import matched_words, reason
from toolscript.gateway.twins import Standing, Twins, deprecated_last, fold_twins

NEAR_MISSES = 3
# So many of the nearest are looked at for these, twins and what may be no guess among them.
MAX_GUESSED = 24
# Confidence of an exact name, and of the least similar name that still counts.
EXACT_NAME, FARTHEST_NAME = 0.99, 0.5
FARTHEST_LIKENESS = 0.85
# Confidence of a tool that a person's rule promotes.
PROMOTED = 1.0
# A tool with this share of a general tool's confidence ranks before it; then the general one gets this share of
# the best confidence.
LIKELY_ENOUGH, BEHIND_THE_BEST = 0.8, 0.9
MAX_GENERAL = 2
MULTILINGUAL_SETTING = "TOOLSCRIPT_SEARCH_MODEL=multilingual"
NOT_RETRIEVED = f"Not among the first {CANDIDATES_PER_RETRIEVER} by meaning, nor by words"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedSearch:
    """A parsed query, and the `texts` whose vectors its answer needs; `index` is the one it started with."""

    query: LocalQuery
    search_type: SearchType
    index: LocalIndex
    card: ModelCard | None
    curated: CuratedRequest
    texts: tuple[str, ...]
    stages: Stages


@dataclass(frozen=True)
class _Scope:
    """What a query searches, and how: the `allowed` items of an index."""

    query: LocalQuery
    index: LocalIndex
    allowed: Rows
    weights: RankingWeights


@dataclass(frozen=True)
class _Special:
    """Items that are candidates of a request for another reason than its words and its meaning: general tools that
    can do the task, and those that a rule promotes, by row."""

    general: list[tuple[Rows, Inferred]]
    promoted: Mapping[int, Rule]

    @property
    def rows(self) -> list[int]:
        return [*(row for rows, _ in self.general for row in rows.tolist()), *self.promoted]


@dataclass(frozen=True)
class _Scored:
    """Scores of every candidate for a request, the resulting order, and the same for each of its steps."""

    request: Request
    ranking: RankedCandidates
    probability: Scores
    confidence: Scores
    likeness: Scores
    inferred: dict[int, Inferred]
    promoted: Mapping[int, Rule]
    order: Rows
    good_match: bool
    vectors: list[Vector] | None = None
    steps: "tuple[_Scored, ...]" = ()

    def passing(self, threshold: float) -> Rows:
        return self.order[self.confidence[self.order] >= threshold]

    def hits(self, index: LocalIndex, passing: Rows, limit: int) -> list[Twins]:
        """Return the first of these positions: the deprecated behind similar ones, twins as one."""
        positions = self._deprecated_last(index, passing)
        rows = self.ranking.ids[positions]
        promoted = {place for place, position in enumerate(positions.tolist()) if position in self.promoted}
        twins = fold_twins(
            rows.tolist(), index.twins[rows].tolist(), index.items, limit, self.request.whole.stems, promoted
        )
        return [replace(hit, place=int(positions[hit.place]), best=int(positions[hit.best])) for hit in twins]

    def count(self, index: LocalIndex, passing: Rows) -> int:
        """Return how many tools are at these positions, twins as one."""
        return len(set(index.twins[self.ranking.ids[passing]].tolist()))

    def _deprecated_last(self, index: LocalIndex, passing: Rows) -> Rows:
        rows = self.ranking.ids[passing]
        if not index.is_deprecated[rows].any():
            return passing
        standings = [
            Standing(position, index.items[row], float(self.confidence[position]), self._is_named(position))
            for position, row in zip(passing.tolist(), rows.tolist(), strict=True)
        ]
        return np.array([standing.place for standing in deprecated_last(standings)], dtype=np.int64)

    def _is_named(self, position: int) -> bool:
        """A request that is only like the name of a deprecated tool may mean its successor."""
        return position in self.promoted or bool(self.likeness[position] >= EXACT_BUT_FOR_CASE)


class LocalSearch:
    """`index`, `embedder` and `curation` may be replaced at any time; a search uses those it started with.

    `may_guess`: whether an item may be shown where nothing fits.

    `scale` says what the cosines of its model mean. `is_fallback`: the embedder only stands in for the model that
    was to be used; `model_note` says why.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        weights: RankingWeights,
        search_type: SearchType = SearchType.HYBRID,
        rewriter: Rewriter | None = None,
    ) -> None:
        self.index = LocalIndex((), ())
        self.embedder: Embedder | None = None
        self.curation = NO_CURATION
        self.may_guess: Callable[[Item], bool] = lambda _item: True
        self.is_fallback = False
        self.scale: CosineScale | None = None
        self.model_note = "the embedding model is still loading"
        self._capabilities = capabilities
        self._weights = weights
        self._weights_version = weights.version
        self._search_type = search_type
        self._rewriter = rewriter or default_rewriter()

    def type_of(self, query: LocalQuery) -> SearchType:
        return resolve_search_type(query.search_type, self._search_type)

    async def search(self, query: LocalQuery) -> LocalAnswer:
        prepared = self.prepare(query)
        return self.answer(prepared, await self.embed(prepared))

    def prepare(self, query: LocalQuery) -> PreparedSearch:
        """Parse a query. `prepare` and `answer` do not wait: what runs them decides where `embed` does."""
        stages, index, search_type = Stages(), self.index, self.type_of(query)
        curated = self._curated(query.text, index, as_typed=search_type is not SearchType.HYBRID)
        texts: tuple[str, ...] = ()
        if search_type is SearchType.HYBRID:
            texts = curated.request.texts
        elif search_type is SearchType.SEMANTIC and not self.is_fallback:
            # A cosine of the model that was asked for, or none: S1-032.
            texts = (query.text,)
        stages.end("ranking")
        return PreparedSearch(query, search_type, index, self._card(), curated, texts, stages)

    async def embed(self, prepared: PreparedSearch) -> Matrix | None:
        """Return the vectors of the texts; None without any, without a model, or if it fails."""
        return await self._embed(prepared.texts, prepared.index)

    def answer(self, prepared: PreparedSearch, embedded: Matrix | None) -> LocalAnswer:
        # All the time since `prepare`, also that of a change of threads.
        prepared.stages.end("embedding")
        card, weights = prepared.card, self._weights
        if prepared.search_type is SearchType.HYBRID:
            answer = self._answer_ranked(prepared, embedded, weights)
        else:
            answer = self._answer_literally(prepared, embedded)
        return replace(
            answer,
            search_type=prepared.search_type,
            model=card.name if card and answer.semantic else None,
            index_version=IndexCard(card).fingerprint if card else None,
            weights_version=None if prepared.search_type is SearchType.KEYWORD else self._weights_version,
        )

    def _card(self) -> ModelCard | None:
        """Return the model that embedded the items; None if they are not embedded."""
        return self.embedder.model if self.embedder is not None and self.index.model_is_used else None

    def _answer_ranked(
        self, prepared: PreparedSearch, embedded: Matrix | None, weights: RankingWeights
    ) -> LocalAnswer:
        query, index, stages = prepared.query, prepared.index, prepared.stages
        scored = self._score(prepared, embedded, weights)
        passing = scored.passing(query.threshold)
        hits = _hits(index, scored, passing, query.limit)
        steps = tuple(self._step(query, index, step) for step in scored.steps)
        # A request whose steps all fit fits, though no item fits all of it.
        by_steps = not hits and bool(steps) and all(step.good_match for step in steps)
        if by_steps:
            hits = _first_of_each(steps, query.limit)
        misses = () if hits else self._guesses(index, scored)
        semantic = scored.ranking.semantic
        stages.end("ranking")
        return LocalAnswer(
            query=query.text,
            hits=hits,
            total=len(hits) if by_steps else scored.count(index, passing),
            threshold=query.threshold,
            semantic=semantic,
            hint=self._hint(
                query,
                index,
                scored.ranking.unknown_language,
                found=bool(hits),
                semantic=semantic,
                lower_helps=scored.good_match,
            ),
            near_misses=misses,
            good_match=by_steps or (scored.good_match and bool(hits)),
            read_as=_read_as(prepared.curated.request),
            fit=scored.ranking.fit,
            unmatched=scored.ranking.unmatched,
            rules=prepared.curated.notes,
            steps=steps,
            milliseconds={**stages.spent, "total": stages.total()},
        )

    def _guesses(self, index: LocalIndex, scored: _Scored) -> tuple[LocalHit, ...]:
        """Return the nearest items where none is a hit, but for those that may be no guess."""
        places = (place for place in scored.order.tolist() if self.may_guess(_item(index, scored, place)))
        nearest = np.array([*islice(places, MAX_GUESSED)], dtype=np.int64)
        return _hits(index, scored, nearest, NEAR_MISSES)

    def _step(self, query: LocalQuery, index: LocalIndex, scored: _Scored) -> LocalStep:
        hits = _hits(index, scored, scored.passing(query.threshold), min(query.limit, STEP_HITS))
        guesses = () if hits else self._guesses(index, scored)
        return LocalStep(scored.request.typed, hits, scored.good_match and bool(hits), guesses)

    async def explain(self, query: LocalQuery, row: int) -> Placement:
        """Return the place of an item of the index in the ranking of a query."""
        prepared = self.prepare(replace(query, search_type=SearchType.HYBRID))
        index, curated = prepared.index, prepared.curated
        scored = self._score(prepared, await self.embed(prepared), self._weights)
        places = np.flatnonzero(scored.ranking.ids[scored.order] == row)
        place = int(places[0]) + 1 if len(places) else None
        if place is None:
            never = _rules_by_row(curated.excluded, index, query.kind).get(row)
            hit = _hit_not_retrieved(index, scored, row, never)
        else:
            position = int(scored.order[place - 1])
            hit = _hit(index, scored, Twins(position, position))
        return Placement(hit, place, len(scored.order), unmatched_words(scored.request, [index.features(row)]))

    def _curated(self, text: str, index: LocalIndex, *, as_typed: bool = False) -> CuratedRequest:
        """Parse a request, as it was typed or as it is meant, and apply the rules."""
        curation, scale = self.curation, self.scale if index.model_is_used else None
        request = text if as_typed else self._rewriter.read(text, curation.is_about)
        corrected = curation.unless_known(corrections_of(str(request), index.vocabulary, scale))
        return curation.apply(parse_query(request, corrected))

    def _answer_literally(self, prepared: PreparedSearch, embedded: Matrix | None) -> LocalAnswer:
        """Apply the threshold to the weighted sum of two scores, ties by name. Hits show the score compared."""
        query, index, curated, stages = prepared.query, prepared.index, prepared.curated, prepared.stages
        request = curated.request
        allowed = _allowed(query, curated, index)
        scores, inferred = self._literal_scores(prepared, embedded, allowed)
        order = allowed[np.lexsort((index.rank_by_name[allowed], scores.descending[allowed]))]
        passing = order[scores.final[order] >= query.threshold]
        found = len(passing) > 0
        guesses = islice((row for row in order.tolist() if self.may_guess(index.items[row])), MAX_GUESSED)
        nearest = passing if found else np.array([*guesses], dtype=np.int64)
        shown = scores.first(index, nearest, query.limit if found else NEAR_MISSES)
        by_words = prepared.search_type is SearchType.KEYWORD
        hits = tuple(literal_hit(index, scores, hit, inferred.get(hit.place), request) for hit in shown)
        unmatched = unmatched_words(request, [index.features(row) for row in order[:RERANK_DEPTH].tolist()])
        ranking = self._rank_by_words(request, index, allowed) if by_words else None
        fits = ranking is None or ranking.good_match or self._is_certain(scores, allowed)
        stages.end("ranking")
        unknown, as_requested = self._unknown(query, embedded), by_words or embedded is not None
        return LocalAnswer(
            query=query.text,
            hits=hits if found else (),
            total=len(set(index.twins[passing].tolist())),
            threshold=query.threshold,
            semantic=embedded is not None,
            hint=self._hint(query, index, unknown, found=found, semantic=as_requested, lower_helps=fits),
            near_misses=() if found else tuple(miss for miss in hits if miss.confidence > 0),
            good_match=found and fits,
            fit=None if ranking is None else ranking.fit,
            unmatched=unmatched,
            rules=curated.notes,
            milliseconds={**stages.spent, "total": stages.total()},
        )

    def _literal_scores(
        self, prepared: PreparedSearch, embedded: Matrix | None, allowed: Rows
    ) -> tuple[LiteralScores, dict[int, Inferred]]:
        """Return the scores of all items, and the general tools that can do the task."""
        query, index, curated = prepared.query, prepared.index, prepared.curated
        boost, inferred = boosts(self._general(curated.request, index, allowed), len(index))
        scores = LiteralScores(
            alpha=self._weights.meaning,
            semantic=semantic_scores(index, None if embedded is None else embedded[0]),
            words=word_shares(curated.request, index),
            likeness=name_likeness(query.text, index, index.rows(None)),
            boost=boost,
            promoted=_rules_by_row(curated.promoted, index, query.kind),
        )
        return scores, inferred

    def _rank_by_words(self, request: Request, index: LocalIndex, allowed: Rows) -> RankedCandidates:
        """Rank without vectors, for the verdict on a keyword search."""
        lists = index.candidates(None, [request.whole.terms], allowed, CANDIDATES_PER_RETRIEVER)
        fused = fuse_scores(lists, CANDIDATES_PER_RETRIEVER, self._weights)
        features = {row: index.features(row) for row in fused.ids[:RERANK_DEPTH].tolist()}
        return rank(request, fused, features, self._weights)

    def _is_certain(self, scores: LiteralScores, allowed: Rows) -> bool:
        """Return whether a typed name, a promotion or a tool that can do the task by its kind fits."""
        best = np.maximum(scores.likeness, scores.boost)[allowed].max(initial=0.0)
        return bool(scores.promoted) or bool(best >= self._weights.calibration.good_match_threshold)

    async def fuse_scores(self, text: str, weights: RankingWeights) -> tuple[Request, FusedScores, FeaturesById]:
        """Return request, fused scores and features of the retrievers' candidates, to fit weights."""
        index = self.index
        reading = self._rewriter.read(text)
        request = parse_query(reading, corrections(reading.text, index.vocabulary))
        terms = [part.terms for part in request.parts]
        embedded = await self._embed(request.texts, index)
        vectors = None if embedded is None else request.vectors(embedded)
        candidate_lists = index.candidates(vectors, terms, index.rows(None), CANDIDATES_PER_RETRIEVER)
        fused = fuse_scores(candidate_lists, CANDIDATES_PER_RETRIEVER, weights)
        return request, fused, {row: index.features(row) for row in fused.ids[:RERANK_DEPTH].tolist()}

    async def _embed(self, texts: Sequence[str], index: LocalIndex) -> Matrix | None:
        if self.embedder is None or not index.model_is_used or not texts:
            return None
        try:
            embedded = await asyncio.gather(*map(self.embedder.embed_query, texts))
        except ToolscriptError as error:
            self.model_note = error.message
            logger.warning("keyword search only", extra={"part": "embedding", "reason": error.message})
            return None
        if not self.is_fallback:
            self.model_note = ""
        return np.array(embedded)

    def _score(self, prepared: PreparedSearch, embedded: Matrix | None, weights: RankingWeights) -> _Scored:
        query, index, curated, stages = prepared.query, prepared.index, prepared.curated, prepared.stages
        vectors = None if embedded is None else curated.request.vectors(embedded)
        scope = _Scope(query, index, _allowed(query, curated, index), weights)
        likeness = np.zeros(len(index))
        likeness[scope.allowed] = name_likeness(query.text, index, scope.allowed)
        stages.end("ranking")
        term_lists = [part.terms for part in curated.request.parts]
        candidate_lists = index.candidates(vectors, term_lists, scope.allowed, CANDIDATES_PER_RETRIEVER)
        if self.scale:
            candidate_lists = self.scale.with_baselines(candidate_lists, vectors)
        stages.end("engine")
        special = self._special(scope, curated)
        extra_rows = [*np.flatnonzero(likeness).tolist(), *special.rows]
        fused = fuse_scores(candidate_lists, CANDIDATES_PER_RETRIEVER, weights, extra_rows)
        scored = self._score_candidates(scope, curated.request, special, fused, candidate_lists, likeness)
        # Names are compared with the whole request: a step that is nothing but a name is no step.
        no_likeness = np.zeros_like(likeness)
        steps = [
            self._score_candidates(
                scope, step.request, self._special(scope, step), of_step, [of_step.whole], no_likeness
            )
            for step, of_step in zip(curated.steps, fused.steps, strict=True)
        ]
        return replace(scored, vectors=vectors, steps=tuple(steps))

    def _special(self, scope: _Scope, curated: CuratedRequest) -> _Special:
        return _Special(
            self._general(curated.request, scope.index, scope.allowed),
            _rules_by_row(curated.promoted, scope.index, scope.query.kind),
        )

    def _score_candidates(
        self,
        scope: _Scope,
        request: Request,
        special: _Special,
        fused: FusedScores,
        candidate_lists: list[Candidates],
        likeness_of_all: Scores,
    ) -> _Scored:
        index, weights = scope.index, scope.weights
        features = {row: index.features(row) for row in fused.ids[:RERANK_DEPTH].tolist()}
        ranking = rank(request, fused, features, weights, self.scale)
        likeness = likeness_of_all[ranking.ids]
        retrieved = _were_retrieved(index, candidate_lists)[ranking.ids]
        by_evidence = np.where(retrieved, ranking.probability, 0.0)
        probability = np.maximum(by_evidence, _probability_of_names(likeness))
        inferred = _infer(special.general, ranking.ids, probability)
        probability[[*inferred]] = [capability.confidence for capability in inferred.values()]
        promoted = _by_position(special.promoted, ranking.ids)
        probability[[*promoted]] = PROMOTED
        # Ties: higher score first, then by name, so that results are deterministic.
        order = np.lexsort((index.rank_by_name[ranking.ids], -ranking.score, -probability))
        # A typed name, a promotion or a tool that can do the task by its kind fits, whatever the ranking says.
        certain = [*np.flatnonzero(likeness).tolist(), *inferred, *promoted]
        best = probability[certain].max(initial=0.0)
        least = min(weights.calibration.good_match_threshold, EXACT_NAME * EXACT_BUT_FOR_CASE)
        fits = ranking.good_match or bool(best >= least)
        confidence = np.empty_like(probability)
        confidence[order] = confidence_of(probability[order], good_match=fits).round(4)
        return _Scored(request, ranking, probability, confidence, likeness, inferred, promoted, order, fits)

    def _general(self, request: Request, index: LocalIndex, allowed: Rows) -> list[tuple[Rows, Inferred]]:
        """Return the general tools that can do the task, by kind."""
        return [
            (_rows_of_general(general, index, allowed), inferred)
            for general, inferred in self._capabilities.asked_by(request.words, is_command=_is_command(request))
        ]

    def _hint(
        self,
        query: LocalQuery,
        index: LocalIndex,
        unknown: Language | None,
        *,
        found: bool,
        semantic: bool,
        lower_helps: bool = True,
    ) -> str:
        """`unknown` is a language that the model does not know. `lower_helps`: a lower threshold shows more than
        guesses."""
        hints = [] if unknown is None else [self._language_hint(unknown)]
        if not len(index.rows(query.kind)):
            hints.append(
                "no server offers anything yet: `toolscript list-servers` shows how they are doing, "
                f"{HOW_TO_GET_SERVERS}"
            )
        elif not found and unknown is None:
            hints.append(f"try other words, or {LOWER_THRESHOLD}" if lower_helps else "try other words")
        if self.model_note and not semantic:
            hints.append(f"keyword search only: {self.model_note}")
        elif self.model_note and self.is_fallback and self.type_of(query) is SearchType.HYBRID:
            hints.append(f"ranked by the built-in model: {self.model_note}")
        return "; ".join(hints)

    def _unknown(self, query: LocalQuery, embedded: Matrix | None) -> Language | None:
        """Return the language of an embedded query that the model does not know."""
        language = None if embedded is None else foreign_language(query.text)
        if language is None or not language.is_certain or self.scale is None or self.scale.knows(language.code):
            return None
        return language

    def _language_hint(self, language: Language) -> str:
        """The built-in model that only stands in is soon replaced, or its own hint says how to get another."""
        if self.is_fallback or self.embedder is None:
            return unknown_language_hint(language, "the built-in model")
        return unknown_language_hint(language, self.embedder.model.name, f", or set {MULTILINGUAL_SETTING}")


def _rules_by_row(rules: Mapping[Tool, Rule], index: LocalIndex, kind: ItemKind | None) -> dict[int, Rule]:
    rows = [(row, rule) for tool, rule in rules.items() for row in index.rows_of_tool(str(tool))]
    return {row: rule for row, rule in rows if kind in (None, index.items[row].kind)}


def _allowed(query: LocalQuery, curated: CuratedRequest, index: LocalIndex) -> Rows:
    """Return the items of the requested kind that no rule excludes."""
    rows, excluded = index.rows(query.kind), _rules_by_row(curated.excluded, index, query.kind)
    return rows[~np.isin(rows, [*excluded])] if excluded else rows


def _is_command(request: Request) -> bool:
    return request.reading is not None and request.reading.is_command


def _by_position(rules: Mapping[int, Rule], rows: Rows) -> dict[int, Rule]:
    positions = np.flatnonzero(np.isin(rows, [*rules])).tolist() if rules else ()
    return {position: rules[int(rows[position])] for position in positions}


def _were_retrieved(index: LocalIndex, candidate_lists: list[Candidates]) -> NDArray[np.bool_]:
    """Return which items a retriever found; the others get no confidence from the ranking."""
    retrieved = np.zeros(len(index), dtype=np.bool_)
    for candidates in candidate_lists:
        for hits in (candidates.dense, candidates.words):
            retrieved[CandidateArrays.of(hits).ids] = True
    return retrieved


def _rows_of_general(general: General, index: LocalIndex, allowed: Rows) -> Rows:
    return np.intersect1d(allowed, index.rows_matching(general, general.includes))


def _infer(general: list[tuple[Rows, Inferred]], rows: Rows, confidence: Scores) -> dict[int, Inferred]:
    """Return the general tools that can do the task, where this raises their confidence.

    At most a few of each kind, and ranked behind a specific tool that is likely to match.
    """
    best = float(confidence.max(initial=0.0))
    by_position: dict[int, Inferred] = {}
    for of_kind, inferred in general:
        # The higher the confidence in a general tool, the more a specific one needs to rank before it.
        ranks_behind = best >= inferred.confidence * LIKELY_ENOUGH
        worth = min(inferred.confidence, BEHIND_THE_BEST * best if ranks_behind else 1.0)
        for position in np.flatnonzero(np.isin(rows, of_kind))[:MAX_GENERAL].tolist():
            if worth > max(
                confidence[position], by_position[position].confidence if position in by_position else 0.0
            ):
                by_position[position] = replace(inferred, confidence=worth)
    return by_position


def _probability_of_names(likeness: Scores) -> Scores:
    """Return the probability of names by similarity: 0 for a dissimilar one, the maximum for an exact one."""
    if not likeness.any():
        return likeness
    near = FARTHEST_NAME + (0.9 - FARTHEST_NAME) * (likeness - FARTHEST_LIKENESS) / (1 - FARTHEST_LIKENESS)
    return np.where(likeness >= EXACT_BUT_FOR_CASE, EXACT_NAME * likeness, np.where(likeness > 0, near, 0.0))


def _first_of_each(steps: Sequence[LocalStep], limit: int) -> tuple[LocalHit, ...]:
    """Return the first hits of all steps, then the second ones: each item once, those of surest match first."""
    rounds = chain.from_iterable(zip_longest(*(step.hits for step in steps)))
    each = {hit.item.key: hit for hit in reversed([hit for hit in rounds if hit is not None])}
    first = [*reversed(each.values())][:limit]
    return tuple(sorted(first, key=lambda hit: -hit.confidence))


def _read_as(request: Request) -> str:
    """Return the request as it was read, if that is not how it was typed."""
    return "" if request.text == request.typed else request.text


def _item(index: LocalIndex, scored: _Scored, place: int) -> Item:
    return index.items[int(scored.ranking.ids[place])]


def _hits(index: LocalIndex, scored: _Scored, passing: Rows, limit: int) -> tuple[LocalHit, ...]:
    """Return the first hits. None has more confidence than those before it, such as a deprecated tool than the one
    that its text names."""
    hits = [_hit(index, scored, twins) for twins in scored.hits(index, passing, limit)]
    least = accumulate((hit.confidence for hit in hits), min)
    return tuple(replace(hit, confidence=confidence) for hit, confidence in zip(hits, least, strict=True))


def _hit(index: LocalIndex, scored: _Scored, hit: Twins) -> LocalHit:
    position = hit.place
    request, ranking, row = scored.request, scored.ranking, int(scored.ranking.ids[position])
    inferred = scored.inferred.get(position)
    similarity = float(ranking.similarity[position])
    parts = ScoreParts(
        semantic=None if math.isnan(similarity) else round(max(0.0, similarity), 4),
        words=round(ranking.fit_of(position).coverage, 4),
        fuzzy=round(float(scored.likeness[position]), 4),
        boost=round(inferred.confidence, 4) if inferred else 0.0,
        matched=matched_words(index.stems(row), request),
        contributions=ranking.parts(position),
        probability=round(float(scored.probability[position]), 4),
    )
    promoted = scored.promoted.get(position)
    why = reason(parts, promoted or inferred, index.domain(row))
    confidence, score = float(scored.confidence[hit.best]), round(float(ranking.score[position]), 4)
    item = index.items[row]
    return LocalHit(item, confidence, why, parts, score, also=hit.also, deprecated=item.is_deprecated)


def _hit_not_retrieved(index: LocalIndex, scored: _Scored, row: int, never: Rule | None) -> LocalHit:
    """Return an item that is no candidate, with what little it has in common with the request."""
    cosines = index.similarities(np.array(scored.vectors)) if scored.vectors else None
    semantic = None if cosines is None else round(max(0.0, float(cosines[0][row])), 4)
    parts = ScoreParts(semantic=semantic, matched=matched_words(index.stems(row), scored.request))
    why = reason(parts, never, "") if never else NOT_RETRIEVED
    return LocalHit(index.items[row], 0.0, why, parts)
