"""Requests and responses of /search and /documents, with the field names of the source documents."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from toolscript.core.auth.model import Plan
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.results import Exactness
from toolscript.core.web.fields import Count, model_of
from toolscript.documents.model.answer import DocumentHit
from toolscript.documents.model.document import PutOutcome, PutResult, StoredDocument
from toolscript.documents.model.query import MAX_TOP_K, DocumentQuery
from toolscript.documents.plan_limits import usual_top_k
from toolscript.documents.schemas import (
    LEFT_OUT,
    SCORE_HELP,
    Answered,
    DocumentChunkShown,
    PutCounts,
    QueryId,
    SearchOptions,
    Span,
    fields_of_hit,
    optional_of_put,
)

_SEARCH_EXAMPLE: Any = {
    "query": "who pays for a harbour",
    "top_k": 5,
    "filters": {"must": [{"field": "year", "op": "gte", "value": 2020}]},
    "metadata_fields": ["title"],
}


class SearchAliasRequest(SearchOptions):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_SEARCH_EXAMPLE]})

    top_k: Count = Field(10, ge=1, le=MAX_TOP_K, description=f"Maximum number of documents returned. {LEFT_OUT}")

    def as_query(self, default: SearchType, plan: Plan) -> DocumentQuery:
        is_named = "top_k" in self.model_fields_set
        return self.with_limit(self.top_k if is_named else usual_top_k(plan, self.top_k), default)


class SearchAliasHit(BaseModel):
    doc_id: str = Field(description="Id of the document.")
    score: float = Field(description=SCORE_HELP)
    metadata: dict[str, Any] = Field(description="Metadata of the document, as far as requested and allowed.")
    snippet: str | None = Field(description="The part of the text that matched best; null if not requested.")
    snippet_start: int | None = Field(description="Offset of the snippet in the text.")
    snippet_end: int | None = Field(description="End of the snippet in the text, exclusive.")
    highlights: list[Span] = Field(
        description="The matches: start and end (exclusive), counted from the snippet's first character."
    )
    passage: int = Field(description="Number of the chunk that matched best, from 0.")

    @classmethod
    def of(cls, hit: DocumentHit) -> Self:
        return cls.model_construct(doc_id=hit.id, passage=hit.passage, **fields_of_hit(hit))


class SearchAliasEnd(BaseModel):
    """The response without its hits; the last line or event of a stream."""

    query_id: QueryId
    took_ms: float = Field(description="Duration of the search in milliseconds.")
    total: int = Field(description="Number of documents that a request without a limit would return.")
    total_is: Exactness = Field(description="Whether `total` is exact, a lower bound or an estimate.")
    next_cursor: str | None = Field(
        description="`cursor` of the next page; null on the last page, and without paging by cursor."
    )
    search_type: SearchType = Field(description="The retrieval that was used.")
    fusion: Fusion | None = Field(
        description="How dense and sparse retrieval were fused; null for a single retriever."
    )
    degraded: list[str] = Field(description="Parts of the search that failed and were skipped.")
    reranked_by: str | None = Field(description="Name of the reranker; null: not reranked.")

    @classmethod
    def of(cls, answered: Answered, **more: Any) -> Self:
        answer = answered.answer
        return cls.model_construct(
            query_id=answered.query_id,
            took_ms=answered.took_ms,
            total=answer.total.value,
            total_is=answer.total.exactness,
            next_cursor=answer.next_cursor or None,
            search_type=answered.query.search_type,
            fusion=answered.fusion,
            degraded=list(answer.degraded),
            reranked_by=answer.reranked_by or None,
            **more,
        )


class SearchAliasResponse(SearchAliasEnd):
    hits: list[SearchAliasHit] = Field(description="The best documents, best first.")

    @classmethod
    def whole(cls, answered: Answered) -> Self:
        return cls.of(answered, hits=[SearchAliasHit.of(hit) for hit in answered.answer.hits])


class SearchHealth(BaseModel):
    status: Literal["ok", "degraded", "unready"] = Field(description="Whether documents can be searched.")
    parts: dict[str, str] = Field({}, description="Parts that do not respond, and why; absent if all do.")


class PutAliasResult(BaseModel):
    doc_id: str | None = Field(description="Null if the entry is not a document and has no id.")
    status: PutOutcome = Field(description="What became of it.")
    passages: int = Field(description="Number of its chunks.")
    error: str | None = Field(None, description="Why it was refused.")
    line: int | None = Field(None, description="Its line in the request, from 1, for `application/x-ndjson`.")

    @classmethod
    def of(cls, result: PutResult, line: int | None) -> Self:
        return cls.model_construct(
            doc_id=result.id or None,
            status=result.outcome,
            passages=result.passages,
            **optional_of_put(result, line),
        )


class PutAliasResponse(BaseModel):
    results: list[PutAliasResult] = Field(description="What became of each document, in their order.")
    counts: PutCounts = Field(description="Number of documents by status.")


class DocumentAliasShown(BaseModel):
    doc_id: str = Field(description="Id of the document.")
    text: str = Field(description="The text as it was put.")
    metadata: dict[str, Any] = Field(description="The metadata fields that the tenant's plan allows.")
    passages: list[DocumentChunkShown] = Field(description="The chunks of the text.")

    @classmethod
    def of(cls, document: StoredDocument) -> Self:
        return model_of(cls, document, doc_id=document.id, passages=DocumentChunkShown.all_of(document))
