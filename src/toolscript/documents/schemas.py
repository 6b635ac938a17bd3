"""Requests and responses of document search: one model each for HTTP, MCP and `--json`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, WithJsonSchema

from toolscript.core.retrieval.query import Fusion, SearchType, resolve_search_type
from toolscript.core.retrieval.results import Exactness
from toolscript.core.web.fields import Count, model_of
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.document import MAX_ID, PutOutcome, PutResult, StoredDocument
from toolscript.documents.model.filters import (
    MAX_CONDITIONS,
    MAX_FIELD,
    MAX_VALUES,
    NO_FILTERS,
    FieldCondition,
    Filters,
    Op,
)
from toolscript.documents.model.query import (
    MAX_DOCUMENT_QUERY,
    MAX_METADATA_FIELDS,
    MAX_RANKED,
    MAX_SNIPPET,
    MAX_TOP_K,
    DocumentQuery,
    Rerank,
)

MAX_REMOVED = 1_000
MAX_CURSOR = 64_000


def _require_unicode(text: str) -> str:
    """Reject lone surrogates: they are legal in JSON, but nothing can be stored under them."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("has an invalid character")
    return text


DocumentId = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(_require_unicode)]
_SINGLE_VALUE = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}
# FieldCondition itself validates its values, for every interface.
FilterValue = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                *_SINGLE_VALUE["anyOf"],
                {"type": "array", "items": _SINGLE_VALUE, "maxItems": MAX_VALUES},
                {"type": "null"},
            ]
        }
    ),
]


class FilterCondition(BaseModel):
    model_config = ConfigDict(extra="forbid")

    field: str = Field(
        min_length=1,
        max_length=MAX_FIELD,
        description="Field of the metadata; `author.name` is a nested one.",
    )
    op: Op = Field(description="Comparison; only `in` and `nin` take a list as `value`.")
    value: FilterValue = Field(
        None, description="A string, a number, true or false; a date is a string like 2026-01-31T12:00:00Z."
    )

    def as_condition(self) -> FieldCondition:
        return FieldCondition.of(self.field, self.op, self.value)


Conditions = Annotated[list[FilterCondition], Field(max_length=MAX_CONDITIONS)]


class DocumentFilters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    must: Conditions = Field([], description="All of these must hold.")
    should: Conditions = Field([], description="If there are any, at least one of these must hold.")
    must_not: Conditions = Field([], description="None of these may hold.")

    def as_filters(self) -> Filters:
        lists = (
            [condition.as_condition() for condition in listed]
            for listed in (self.must, self.should, self.must_not)
        )
        return Filters(*(tuple(listed) for listed in lists))


_EXAMPLE: Any = {
    "query": "who pays for a harbour",
    "top_k": 5,
    "filters": {"must": [{"field": "year", "op": "gte", "value": 2020}]},
    "metadata_fields": ["title"],
}


class DocumentSearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    query: str | None = Field(
        None,
        description="What the documents are about, in plain words; null: every document that passes the filters.",
        json_schema_extra={"maxLength": MAX_DOCUMENT_QUERY},
    )
    top_k: Count = Field(10, ge=1, le=MAX_TOP_K, description="Maximum number of documents returned.")
    offset: Count = Field(0, ge=0, le=MAX_RANKED, description="Number of top results to skip.")
    search_type: SearchType | None = Field(
        None,
        description="Dense (`semantic`), sparse (`keyword`) or both (`hybrid`) retrieval; null: the default of "
        "the installation, which is `hybrid` unless configured; always `hybrid` with a `fusion`.",
    )
    fusion: Fusion | None = Field(
        None,
        description="How `hybrid` fuses both: by ranks, by z-scores, or with adaptive weights; null is `best`.",
    )
    filters: DocumentFilters | None = Field(None, description="Conditions on the metadata of a document.")
    include_snippets: StrictBool = Field(True, description="Return the part of a document that matched.")
    snippet_max_chars: Count = Field(240, ge=1, le=MAX_SNIPPET, description="Maximum length of a snippet.")
    metadata_fields: list[str] | None = Field(
        None, max_length=MAX_METADATA_FIELDS, description="Metadata fields to return; null: all of them."
    )
    cursor: str | None = Field(
        None,
        max_length=MAX_CURSOR,
        description="`*` starts paging through all results; `next_cursor` of a response continues it.",
    )
    rerank: Rerank = Field(Rerank.OFF, description="Rerank the top results with a cross-encoder or an LLM.")

    def as_query(self, default: SearchType) -> DocumentQuery:
        return DocumentQuery(
            text=self.query or "",
            top_k=self.top_k,
            offset=self.offset,
            search_type=resolve_search_type(self.search_type, default, self.fusion),
            fusion=self.fusion,
            filters=NO_FILTERS if self.filters is None else self.filters.as_filters(),
            include_snippets=self.include_snippets,
            snippet_max_chars=self.snippet_max_chars,
            metadata_fields=None if self.metadata_fields is None else tuple(self.metadata_fields),
            cursor=self.cursor or "",
            rerank=self.rerank,
        )


@dataclass(frozen=True)
class Answered:
    query_id: str
    query: DocumentQuery
    answer: DocumentAnswer
    took_ms: float


class DocumentFound(BaseModel):
    doc_id: str
    score: float = Field(description="Higher is better; its scale depends on the search type.")
    metadata: dict[str, Any]
    snippet: str | None = Field(description="The part of the text that matched best; null if not requested.")
    snippet_start: int | None = Field(description="Offset of the snippet in the text.")
    snippet_end: int | None = Field(description="End of the snippet in the text, exclusive.")
    highlights: list[tuple[int, int]] = Field(
        description="The matches: start and end (exclusive), counted from the snippet's first character."
    )
    passage: int = Field(description="Number of the chunk that matched best, from 0.")

    @classmethod
    def of(cls, hit: DocumentHit) -> Self:
        snippet = hit.snippet
        return cls.model_construct(
            doc_id=hit.id,
            score=hit.score,
            metadata=dict(hit.metadata),
            snippet=None if snippet is None else snippet.text,
            snippet_start=None if snippet is None else snippet.start,
            snippet_end=None if snippet is None else snippet.end,
            highlights=[] if snippet is None else list(snippet.highlights),
            passage=hit.passage,
        )


class SearchEnd(BaseModel):
    """The response without its hits; the last line or event of a stream."""

    query_id: str = Field(json_schema_extra={"format": "uuid"})
    took_ms: float
    total: int = Field(description="Number of documents that a request without a limit would return.")
    total_is: Exactness
    next_cursor: str | None = Field(
        description="`cursor` of the next page; null on the last page, and without paging by cursor."
    )
    search_type: SearchType
    fusion: Fusion | None = Field(
        description="How dense and sparse retrieval were fused; null for a single retriever."
    )
    degraded: list[str] = Field(description="Parts of the search that failed and were skipped.")
    reranked_by: str | None = Field(description="Name of the reranker; null: not reranked.")

    @classmethod
    def of(cls, answered: Answered, **more: Any) -> Self:
        query, answer = answered.query, answered.answer
        is_fused = bool(query.text) and query.search_type is SearchType.HYBRID
        return cls.model_construct(
            query_id=answered.query_id,
            took_ms=answered.took_ms,
            total=answer.total.value,
            total_is=answer.total.exactness,
            next_cursor=answer.next_cursor or None,
            search_type=query.search_type,
            fusion=(query.fusion or Fusion.BEST) if is_fused else None,
            degraded=list(answer.degraded),
            reranked_by=answer.reranked_by or None,
            **more,
        )


class DocumentSearchResponse(SearchEnd):
    hits: list[DocumentFound]

    @classmethod
    def whole(cls, answered: Answered) -> Self:
        return cls.of(answered, hits=[DocumentFound.of(hit) for hit in answered.answer.hits])


class SearchHealth(BaseModel):
    status: Literal["ok", "degraded", "unready"]
    parts: dict[str, str] = Field({}, description="Parts that do not respond, and why; absent if all do.")


class PutCounts(BaseModel):
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0


class PutResultShown(BaseModel):
    doc_id: str | None = Field(description="Null if the entry is not a document and has no id.")
    status: PutOutcome
    passages: int = Field(description="Number of its chunks.")
    error: str | None = Field(None, description="Why it was refused.")
    line: int | None = Field(None, description="Its line in the request, from 1, for `application/x-ndjson`.")

    @classmethod
    def of(cls, result: PutResult, line: int | None) -> Self:
        """Return the result. `error` and `line` stay unset if there are none."""
        more: dict[str, Any] = {"error": result.problem} if result.problem else {}
        more |= {} if line is None else {"line": line}
        return cls.model_construct(
            doc_id=result.id or None, status=result.outcome, passages=result.passages, **more
        )


class DocumentsPut(BaseModel):
    results: list[PutResultShown]
    counts: PutCounts


class DocumentChunkShown(BaseModel):
    number: int
    start: int
    end: int


class DocumentShown(BaseModel):
    doc_id: str
    text: str
    metadata: dict[str, Any]
    passages: list[DocumentChunkShown] = Field(description="The chunks of the text.")

    @classmethod
    def of(cls, document: StoredDocument) -> Self:
        chunks = [model_of(DocumentChunkShown, chunk) for chunk in document.passages]
        return model_of(cls, document, doc_id=document.id, passages=chunks)


class DocumentsToRemove(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: list[DocumentId] = Field(max_length=MAX_REMOVED)


class DocumentsRemoved(BaseModel):
    deleted: list[str]
    missing: list[str] = Field(description="Ids without a document.")
