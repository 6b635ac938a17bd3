"""Local tool search: embed, retrieve, rank, and give each hit a confidence and a reason."""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import ToolscriptError
from toolscript.core.items import ItemKind
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
from toolscript.core.retrieval.spelling import corrections, corrections_of
from toolscript.core.retrieval.timings import Stages
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.retrieval.weights import RankingWeights
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

    def hits(self, index: LocalIndex, threshold: float) -> list[Twins]:
        """Return the positions that reach the threshold: the deprecated behind similar ones, twins as one."""
        passing = self.passing(threshold).tolist()
        rows = {position: int(self.ranking.ids[position]) for position in passing}
        certain = {position for position in passing if self.likeness[position] or position in self.promoted}
        ordered = deprecated_last(
            [
                Standing(
                    position,
                    index.items[rows[position]],
                    float(self.confidence[position]),
                    is_certain=position in certain,
                )
                for position in passing
            ]
        )
        return fold_twins(ordered)


class LocalSearch:
    """`index`, `embedder` and `curation` may be replaced at any time; a search uses those it started with.

    `scale` says what the cosines of its model mean. `is_fallback`: the embedder only stands in for the model that
    was to be used; `model_note` says why.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        weights: RankingWeights,
        search_type: SearchType = SearchType.HYBRID,
    ) -> None:
        self.index = LocalIndex((), ())
        self.embedder: Embedder | None = None
        self.curation = NO_CURATION
        self.is_fallback = False
        self.scale: CosineScale | None = None
        self.model_note = "the embedding model is still loading"
        self._capabilities = capabilities
        self._weights = weights
        self._weights_version = weights.version
        self._search_type = search_type

    def type_of(self, query: LocalQuery) -> SearchType:
        return resolve_search_type(query.search_type, self._search_type)

    async def search(self, query: LocalQuery) -> LocalAnswer:
        prepared = self.prepare(query)
        return self.answer(prepared, await self.embed(prepared))

    def prepare(self, query: LocalQuery) -> PreparedSearch:
        """Parse a query. `prepare` and `answer` do not wait: what runs them decides where `embed` does."""
        stages, index, search_type = Stages(), self.index, self.type_of(query)
        curated = self._curated(query.text, index)
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
        passing = scored.hits(index, query.threshold)
        hits = [_hit(index, scored, hit) for hit in passing[: query.limit]]
        misses = [] if hits else [_hit(index, scored, hit) for hit in scored.hits(index, 0.0)[:NEAR_MISSES]]
        semantic = scored.ranking.semantic
        steps = tuple(_step(query, index, step) for step in scored.steps)
        stages.end("ranking")
        return LocalAnswer(
            query=query.text,
            hits=tuple(hits),
            total=len(passing),
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
            near_misses=tuple(miss for miss in misses if miss.confidence > 0),
            good_match=scored.good_match and bool(hits),
            fit=scored.ranking.fit,
            unmatched=scored.ranking.unmatched,
            rules=prepared.curated.notes,
            steps=steps,
            milliseconds={**stages.spent, "total": stages.total()},
        )

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
            hit = _hit(index, scored, Twins(int(scored.order[place - 1])))
        return Placement(hit, place, len(scored.order), unmatched_words(scored.request, [index.features(row)]))

    def _curated(self, text: str, index: LocalIndex) -> CuratedRequest:
        """Parse a request and apply the rules."""
        curation, scale = self.curation, self.scale if index.model_is_used else None
        corrected = curation.unless_known(corrections_of(text, index.vocabulary, scale))
        return curation.apply(parse_query(text, corrected))

    def _answer_literally(self, prepared: PreparedSearch, embedded: Matrix | None) -> LocalAnswer:
        """Apply the threshold to the weighted sum of two scores, ties by name. Hits show the score compared."""
        query, index, curated, stages = prepared.query, prepared.index, prepared.curated, prepared.stages
        request = curated.request
        allowed = _allowed(query, curated, index)
        scores, inferred = self._literal_scores(prepared, embedded, allowed)
        order = allowed[np.lexsort((index.rank_by_name[allowed], scores.descending[allowed]))]
        passing = scores.standings(index, order[scores.final[order] >= query.threshold])
        shown = passing[: query.limit] or scores.standings(index, order[:NEAR_MISSES])
        found = len(passing) > 0
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
            total=len(passing),
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
        request = parse_query(text, corrections(text, index.vocabulary))
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
        by_evidence = np.where(retrieved, ranking.confidence, 0.0)
        confidence = np.maximum(by_evidence, _confidence_of_names(likeness))
        inferred = _infer(special.general, ranking.ids, confidence)
        confidence[[*inferred]] = [capability.confidence for capability in inferred.values()]
        promoted = _by_position(special.promoted, ranking.ids)
        confidence[[*promoted]] = PROMOTED
        # Ties: higher score first, then by name, so that results are deterministic.
        order = np.lexsort((index.rank_by_name[ranking.ids], -ranking.score, -confidence))
        # A typed name, a promotion or a tool that can do the task by its kind fits, whatever the ranking says.
        certain = [*np.flatnonzero(likeness).tolist(), *inferred, *promoted]
        best = confidence[certain].max(initial=0.0)
        fits = ranking.good_match or bool(best >= weights.calibration.good_match_threshold)
        return _Scored(request, ranking, confidence, likeness, inferred, promoted, order, fits)

    def _general(self, request: Request, index: LocalIndex, allowed: Rows) -> list[tuple[Rows, Inferred]]:
        """Return the general tools that can do the task, by kind."""
        return [
            (_rows_of_general(general, index, allowed), inferred)
            for general, inferred in self._capabilities.asked_by(request.words)
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


def _confidence_of_names(likeness: Scores) -> Scores:
    """Return the confidence of names by similarity: 0 for a dissimilar one, the maximum for an exact one."""
    if not likeness.any():
        return likeness
    near = FARTHEST_NAME + (0.9 - FARTHEST_NAME) * (likeness - FARTHEST_LIKENESS) / (1 - FARTHEST_LIKENESS)
    return np.where(likeness >= EXACT_BUT_FOR_CASE, EXACT_NAME * likeness, np.where(likeness > 0, near, 0.0))


def _step(query: LocalQuery, index: LocalIndex, scored: _Scored) -> LocalStep:
    passing = scored.hits(index, query.threshold)[: min(query.limit, STEP_HITS)]
    hits = tuple(_hit(index, scored, hit) for hit in passing)
    return LocalStep(scored.request.text, hits, scored.good_match and bool(hits))


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
    )
    promoted = scored.promoted.get(position)
    why = reason(parts, promoted or inferred, request, index.domain(row))
    confidence, score = (round(float(values[position]), 4) for values in (scored.confidence, ranking.score))
    item = index.items[row]
    return LocalHit(item, confidence, why, parts, score, also=hit.also, deprecated=item.is_deprecated)


def _hit_not_retrieved(index: LocalIndex, scored: _Scored, row: int, never: Rule | None) -> LocalHit:
    """Return an item that is no candidate, with what little it has in common with the request."""
    cosines = index.similarities(np.array(scored.vectors)) if scored.vectors else None
    semantic = None if cosines is None else round(max(0.0, float(cosines[0][row])), 4)
    parts = ScoreParts(semantic=semantic, matched=matched_words(index.stems(row), scored.request))
    why = reason(parts, never, scored.request, "") if never else NOT_RETRIEVED
    return LocalHit(index.items[row], 0.0, why, parts)
