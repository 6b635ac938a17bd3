"""Reranking of the best documents, by a learned ranker."""

from collections.abc import Mapping, Sequence

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.fusion import RankedDocument
from toolscript.core.retrieval.ports import Reranker
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.model.query import DocumentQuery, Rerank
from toolscript.documents.ports import TenantDocuments

MAX_RERANKED = 30


class Reranking:
    def __init__(self, rerankers: Mapping[Rerank, Reranker]) -> None:
        self._rerankers = rerankers

    def require(self, query: DocumentQuery) -> None:
        if query.rerank is not Rerank.OFF and query.rerank not in self._rerankers:
            raise InvalidRequest(
                f"rerank {query.rerank.value} is not set up here",
                hint="set TOOLSCRIPT_RERANK_MODEL",
                details={"field": "rerank"},
            )

    async def reranked(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, order: Sequence[RankedDocument]
    ) -> tuple[Sequence[RankedDocument], str]:
        """Return the new order and the name of the reranker; the old order and "" if the reranker fails."""
        if not order:
            return order, ""
        reranker = self._rerankers[query.rerank]
        work = _rescore(reranker, documents, query.text, order[:MAX_RERANKED])
        rescored = await attempt.or_else(Part.RERANK, work, None)
        if rescored is None:
            return order, ""
        return [*rescored, *_scale_rest(rescored, order[len(rescored) :])], reranker.name


async def _rescore(
    reranker: Reranker, documents: TenantDocuments, text: str, best: Sequence[RankedDocument]
) -> list[RankedDocument]:
    chunks = await documents.passages([ChunkId(ranked.key, ranked.passage) for ranked in best])
    texts = [chunks[id_].text if (id_ := ChunkId(ranked.key, ranked.passage)) in chunks else "" for ranked in best]
    scores = await reranker.scores(text, texts)
    scored = [ranked._replace(score=score) for ranked, score in zip(best, scores, strict=True)]
    return sorted(scored, key=lambda ranked: -ranked.score)


def _scale_rest(rescored: Sequence[RankedDocument], rest: Sequence[RankedDocument]) -> list[RankedDocument]:
    """Scale the scores of the documents that were not reranked, so that they stay behind the others."""
    maximum = rescored[-1].score
    return [ranked._replace(score=ranked.score * maximum) for ranked in rest]
