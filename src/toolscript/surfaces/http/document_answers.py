"""What a search for documents found, as it is answered over HTTP. Built once: nothing of it is validated again."""

from dataclasses import dataclass
from typing import Any

from toolscript.model.document_queries import DocumentQuery, Fusion
from toolscript.model.document_results import DocumentAnswer, DocumentHit
from toolscript.model.queries import SearchType
from toolscript.surfaces.http.document_models import DocumentFound, DocumentSearchResponse, SearchEnd


@dataclass(frozen=True)
class Answered:
    query_id: str
    query: DocumentQuery
    answer: DocumentAnswer
    took_ms: float


def whole_answer(answered: Answered) -> DocumentSearchResponse:
    hits = [found(hit) for hit in answered.answer.hits]
    return DocumentSearchResponse.model_construct(hits=hits, **_rest(answered))


def end_of_answer(answered: Answered) -> SearchEnd:
    return SearchEnd.model_construct(**_rest(answered))


def found(hit: DocumentHit) -> DocumentFound:
    snippet = hit.snippet
    return DocumentFound.model_construct(
        doc_id=hit.id,
        score=hit.score,
        metadata=dict(hit.metadata),
        snippet=None if snippet is None else snippet.text,
        snippet_start=None if snippet is None else snippet.start,
        snippet_end=None if snippet is None else snippet.end,
        highlights=[] if snippet is None else list(snippet.highlights),
        passage=hit.passage,
    )


def _rest(answered: Answered) -> dict[str, Any]:
    query, answer = answered.query, answered.answer
    joined = bool(query.text) and query.search_type is SearchType.HYBRID
    return {
        "query_id": answered.query_id,
        "took_ms": answered.took_ms,
        "total": answer.total.value,
        "total_is": answer.total.exactness,
        "next_cursor": answer.next_cursor or None,
        "search_type": query.search_type,
        "fusion": (query.fusion or Fusion.BEST) if joined else None,
        "degraded": list(answer.degraded),
        "reranked_by": answer.reranked_by or None,
    }
