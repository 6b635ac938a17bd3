"""The best once more, by somebody who reads query and passage together."""

from collections.abc import Mapping, Sequence

from toolscript.errors import InvalidRequest
from toolscript.model.document_points import PassageId
from toolscript.model.document_queries import DocumentQuery, Rerank
from toolscript.ports import Reranker, TenantDocuments
from toolscript.search.documents.fusion import Ranked
from toolscript.search.fallbacks import Attempt, Part

MOST_LOOKED_AT = {Rerank.CROSS_ENCODER: 30, Rerank.LLM: 10}


class Reranking:
    def __init__(self, rerankers: Mapping[Rerank, Reranker]) -> None:
        self._rerankers = rerankers

    def require(self, query: DocumentQuery) -> None:
        if query.rerank is not Rerank.OFF and query.rerank not in self._rerankers:
            raise InvalidRequest(
                f"rerank {query.rerank.value} is not set up here",
                hint="set TOOLSCRIPT_RERANK_MODEL for cross_encoder, TOOLSCRIPT_TEXT_URL for llm",
                details={"field": "rerank"},
            )

    async def reranked(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, order: Sequence[Ranked]
    ) -> tuple[Sequence[Ranked], str]:
        """The order, and who made it; as it was where whoever is to look does not answer."""
        if not order:
            return order, ""
        reranker, most = self._rerankers[query.rerank], MOST_LOOKED_AT[query.rerank]
        work = _looked_at(reranker, documents, query.text, order[:most])
        looked_at = await attempt.or_else(Part.RERANK, work, None)
        if looked_at is None:
            return order, ""
        return [*looked_at, *_behind(looked_at, order[len(looked_at) :])], reranker.name


async def _looked_at(
    reranker: Reranker, documents: TenantDocuments, text: str, best: Sequence[Ranked]
) -> list[Ranked]:
    passages = await documents.passages([PassageId(one.key, one.passage) for one in best])
    texts = [passages[id_].text if (id_ := PassageId(one.key, one.passage)) in passages else "" for one in best]
    scores = await reranker.scores(text, texts)
    scored = [one._replace(score=score) for one, score in zip(best, scores, strict=True)]
    return sorted(scored, key=lambda one: -one.score)


def _behind(looked_at: Sequence[Ranked], rest: Sequence[Ranked]) -> list[Ranked]:
    """Whom nobody looked at stays behind, and so does their score."""
    most = looked_at[-1].score
    return [one._replace(score=one.score * most) for one in rest]
