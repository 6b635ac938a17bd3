"""Tool search on a person's own machine: embed once, rank everything, say how sure, and say why."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from toolscript.errors import ToolscriptError
from toolscript.model.gateway import LocalAnswer, LocalHit, LocalQuery, ScoreParts
from toolscript.model.models import Vector
from toolscript.ports import Embedder
from toolscript.search.local.capabilities import Capabilities, Inferred
from toolscript.search.local.confidence import confidences
from toolscript.search.local.index import LocalIndex, Rows, Scores
from toolscript.search.local.ranking import Ranking, rank
from toolscript.search.local.reasons import matched_words, reason
from toolscript.search.local.spelling import EXACT_BUT_FOR_CASE, Wanted, name_likeness, wanted

NEAR_MISSES = 3
# The least an exact name is worth, and a name as far off as names may be.
EXACT_NAME, FARTHEST_NAME = 0.99, 0.5
FARTHEST_LIKENESS = 0.85
# A tool that is so much as likely as a general one stands before it, and the general one so far behind.
LIKELY_ENOUGH, BEHIND_THE_BEST = 0.8, 0.9
MOST_GENERAL = 2

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Scored:
    """Everything that is known about every row, and the order that follows from it."""

    ranking: Ranking
    confidence: Scores
    likeness: Scores
    inferred: dict[int, Inferred]
    order: Rows


class LocalSearch:
    """`index` and `embedder` may be replaced at any time; a search uses what is there when it begins."""

    def __init__(self, capabilities: Capabilities, *, alpha: float) -> None:
        self.index = LocalIndex((), ())
        self.embedder: Embedder | None = None
        self.why_words_alone = "the embedding model is still loading"
        self._capabilities = capabilities
        self._alpha = alpha

    async def search(self, query: LocalQuery) -> LocalAnswer:
        index = self.index
        vector = await self._embed(query.text, index)
        asked = wanted(query.text, index)
        scored = self._score(query, asked, vector, index)
        passing = scored.order[scored.confidence[scored.order] >= query.threshold]
        hits = [_hit(index, scored, at, asked) for at in passing[: query.limit]]
        misses = [] if hits else [_hit(index, scored, at, asked) for at in scored.order[:NEAR_MISSES]]
        semantic = scored.ranking.semantic is not None
        return LocalAnswer(
            query=query.text,
            hits=tuple(hits),
            total=len(passing),
            threshold=query.threshold,
            semantic=semantic,
            hint=self._hint(query, index, found=bool(hits), semantic=semantic),
            near_misses=tuple(miss for miss in misses if miss.confidence > 0),
        )

    async def _embed(self, text: str, index: LocalIndex) -> Vector | None:
        if self.embedder is None or not index.model_is_used:
            return None
        try:
            vector = await self.embedder.embed_query(text)
        except ToolscriptError as error:
            self.why_words_alone = error.message
            logger.warning("search by words alone", extra={"part": "embedding", "reason": error.message})
            return None
        self.why_words_alone = ""
        return vector

    def _score(self, query: LocalQuery, asked: Wanted, vector: Vector | None, index: LocalIndex) -> _Scored:
        rows = index.rows(query.kind)
        ranking = rank(index, rows, asked, vector, self._alpha)
        likeness = name_likeness(query.text, index, rows)
        confidence = np.maximum(confidences(ranking), _worth_of_names(likeness))
        inferred = self._infer(asked, index, ranking, confidence)
        for at, one in inferred.items():
            confidence[at] = one.confidence
        # Equal confidence: the better standing first, then by name, so that one question has one answer.
        order = np.lexsort((index.place_by_name[rows], -ranking.standing, -confidence))
        return _Scored(ranking, confidence, likeness, inferred, order)

    def _infer(
        self, asked: Wanted, index: LocalIndex, ranking: Ranking, confidence: Scores
    ) -> dict[int, Inferred]:
        """General tools that can do what is asked, where nothing else made them as likely.

        The best few of each kind, and behind a tool that is likely to be just what was asked for.
        """
        best = float(confidence.max(initial=0.0))
        found: dict[int, Inferred] = {}
        for general, inferred in self._capabilities.asked_by(asked.words):
            # The surer it is that a general tool will do, the likelier another has to be to stand before it.
            stands_behind = best >= inferred.confidence * LIKELY_ENOUGH
            worth = min(inferred.confidence, BEHIND_THE_BEST * best if stands_behind else 1.0)
            of_kind = np.flatnonzero(np.isin(ranking.rows, index.rows_matching(general, general.includes)))
            best_first = of_kind[np.argsort(-ranking.standing[of_kind], kind="stable")]
            for at in best_first[:MOST_GENERAL].tolist():
                if worth > max(confidence[at], found[at].confidence if at in found else 0.0):
                    found[at] = replace(inferred, confidence=worth)
        return found

    def _hint(self, query: LocalQuery, index: LocalIndex, *, found: bool, semantic: bool) -> str:
        hints = []
        if not len(index.rows(query.kind)):
            hints.append("no server offers anything yet: `toolscript list-servers` shows how they are doing")
        elif not found:
            hints.append("try other words, or a lower threshold (--threshold)")
        if not semantic and self.why_words_alone:
            hints.append(f"words alone: {self.why_words_alone}")
        return "; ".join(hints)


def _worth_of_names(likeness: Scores) -> Scores:
    """0 for a name that is not alike; an exact one is always worth the most."""
    near = FARTHEST_NAME + (0.9 - FARTHEST_NAME) * (likeness - FARTHEST_LIKENESS) / (1 - FARTHEST_LIKENESS)
    return np.where(likeness >= EXACT_BUT_FOR_CASE, EXACT_NAME * likeness, np.where(likeness > 0, near, 0.0))


def _hit(index: LocalIndex, scored: _Scored, at: int, asked: Wanted) -> LocalHit:
    row = int(scored.ranking.rows[at])
    fields = index.words(row)
    semantic = scored.ranking.semantic
    inferred = scored.inferred.get(int(at))
    parts = ScoreParts(
        semantic=None if semantic is None or np.isnan(semantic[at]) else round(max(0.0, float(semantic[at])), 4),
        words=round(float(scored.ranking.share[at]), 4),
        fuzzy=round(float(scored.likeness[at]), 4),
        boost=round(inferred.confidence, 4) if inferred else 0.0,
        matched=matched_words(fields, asked),
    )
    why = reason(fields, parts, inferred, asked)
    return LocalHit(index.items[row], round(float(scored.confidence[at]), 4), why, parts)
