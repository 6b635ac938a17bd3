"""Requests and responses of documents and tenants under /api/v1, and of the MCP tool."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, WithJsonSchema

from toolscript.core.auth.model import Plan
from toolscript.core.retrieval.query import Fusion, SearchType, resolve_search_type
from toolscript.core.retrieval.results import Exactness
from toolscript.core.web.fields import Count, Time, model_of
from toolscript.core.web.paging import Page
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.document import (
    MAX_ID,
    DocumentHeader,
    PutOutcome,
    PutResult,
    StoredDocument,
)
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
from toolscript.documents.plan_limits import usual_top_k
from toolscript.documents.tenants import TenantUsage

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


LEFT_OUT = "Left out: 10, or what the plan allows if that is less."


class SearchOptions(BaseModel):
    """What a search and its alias have in common: everything but the name of the limit."""

    model_config = ConfigDict(extra="forbid")

    query: str | None = Field(
        None,
        description="What the documents are about, in plain words; null: every document that passes the filters.",
        json_schema_extra={"maxLength": MAX_DOCUMENT_QUERY},
    )
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
        description="`*` asks for the first page of all results, `next_cursor` of an answer for the next. Without "
        "a cursor a search ranks only as deep as `limit`, and its answer has no `next_cursor`.",
    )
    rerank: Rerank = Field(Rerank.OFF, description="Rerank the top results with a cross-encoder or an LLM.")

    def with_limit(self, limit: int, default: SearchType) -> DocumentQuery:
        return DocumentQuery(
            text=self.query or "",
            top_k=limit,
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


_SEARCH_EXAMPLE: Any = {
    "query": "who pays for a harbour",
    "limit": 5,
    "filters": {"must": [{"field": "year", "op": "gte", "value": 2020}]},
    "metadata_fields": ["title"],
}


class DocumentSearchRequest(SearchOptions):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_SEARCH_EXAMPLE]})

    limit: Count = Field(10, ge=1, le=MAX_TOP_K, description=f"Maximum number of documents returned. {LEFT_OUT}")

    def as_query(self, default: SearchType, plan: Plan) -> DocumentQuery:
        is_named = "limit" in self.model_fields_set
        return self.with_limit(self.limit if is_named else usual_top_k(plan, self.limit), default)


@dataclass(frozen=True)
class Answered:
    query_id: str
    query: DocumentQuery
    answer: DocumentAnswer
    took_ms: float

    @property
    def fusion(self) -> Fusion | None:
        is_fused = bool(self.query.text) and self.query.search_type is SearchType.HYBRID
        return (self.query.fusion or Fusion.BEST) if is_fused else None


# Start, and end (exclusive).
Span = Annotated[
    tuple[int, int], WithJsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2})
]


SCORE_HELP = (
    "From 0 to 1, higher is better, and comparable within one answer only: fused scores are relative to the other "
    "results, so that the best of unrelated documents has a high one, too."
)


class DocumentResult(BaseModel):
    id: str = Field(description="Id of the document.")
    score: float = Field(description=SCORE_HELP)
    metadata: dict[str, Any] = Field(description="Metadata of the document, as far as requested and allowed.")
    snippet: str | None = Field(description="The part of the text that matched best; null if not requested.")
    snippet_start: int | None = Field(description="Offset of the snippet in the text.")
    snippet_end: int | None = Field(description="End of the snippet in the text, exclusive.")
    highlights: list[Span] = Field(
        description="The matches: start and end (exclusive), counted from the snippet's first character."
    )
    chunk: int = Field(description="Number of the chunk that matched best, from 0.")

    @classmethod
    def of(cls, hit: DocumentHit) -> Self:
        return cls.model_construct(id=hit.id, chunk=hit.passage, **fields_of_hit(hit))


def fields_of_hit(hit: DocumentHit) -> dict[str, Any]:
    """Return the fields of a result that have the same names in the alias."""
    snippet = hit.snippet
    return {
        "score": hit.score,
        "metadata": dict(hit.metadata),
        "snippet": None if snippet is None else snippet.text,
        "snippet_start": None if snippet is None else snippet.start,
        "snippet_end": None if snippet is None else snippet.end,
        "highlights": [] if snippet is None else list(snippet.highlights),
    }


class DocumentSearchMetadata(BaseModel):
    """How a search was done, and how much it found."""

    search_type: SearchType = Field(description="The retrieval that was used.")
    fusion: Fusion | None = Field(
        description="How dense and sparse retrieval were fused; null for a single retriever."
    )
    took_ms: float = Field(description="Duration of the search in milliseconds.")
    total: int = Field(description="Number of documents that a request without a limit would return.")
    total_is: Exactness = Field(description="Whether `total` is exact, a lower bound or an estimate.")
    next_cursor: str | None = Field(
        description="`cursor` of the next page; null on the last page, and without paging by cursor."
    )
    degraded: list[str] = Field(description="Parts of the search that failed and were skipped.")
    reranked_by: str | None = Field(description="Name of the reranker; null: not reranked.")
    index_version: str | None = Field(description="Name of the index version that answered.")
    weights_version: str | None = Field(description="Always null: documents have no ranking weights.")
    good_match: bool | None = Field(
        description="Whether any document fits the query, the same on every page; never true without results; "
        "false: results are guesses. Null without a query, and where it cannot be told: if `search_type` is "
        "`semantic` or `keyword`, and without embeddings."
    )

    @classmethod
    def of(cls, answered: Answered) -> Self:
        answer = answered.answer
        return cls.model_construct(
            search_type=answered.query.search_type,
            fusion=answered.fusion,
            took_ms=answered.took_ms,
            total=answer.total.value,
            total_is=answer.total.exactness,
            next_cursor=answer.next_cursor or None,
            degraded=list(answer.degraded),
            reranked_by=answer.reranked_by or None,
            index_version=answer.index_version or None,
            weights_version=None,
            good_match=answer.good_match,
        )


QueryId = Annotated[
    str, Field(description="Id of the search, also in the log.", json_schema_extra={"format": "uuid"})
]


class DocumentSearchEnd(BaseModel):
    """The last line or event of a stream."""

    query_id: QueryId
    metadata: DocumentSearchMetadata = Field(description="How the search was done.")

    @classmethod
    def of(cls, answered: Answered) -> Self:
        return cls.model_construct(query_id=answered.query_id, metadata=DocumentSearchMetadata.of(answered))


class DocumentSearchResponse(BaseModel):
    query_id: QueryId
    results: list[DocumentResult] = Field(description="The best documents, best first.")
    metadata: DocumentSearchMetadata = Field(description="How the search was done.")

    @classmethod
    def whole(cls, answered: Answered) -> Self:
        return cls.model_construct(
            query_id=answered.query_id,
            results=[DocumentResult.of(hit) for hit in answered.answer.hits],
            metadata=DocumentSearchMetadata.of(answered),
        )


class PutCounts(BaseModel):
    """Number of documents by what became of them."""

    created: int = Field(0, description="Documents that are new.")
    updated: int = Field(0, description="Documents that replaced an older state.")
    unchanged: int = Field(0, description="Documents that were stored like this already.")
    refused: int = Field(0, description="Documents that are not valid, or beyond the plan.")


class DocumentPut(BaseModel):
    id: str | None = Field(description="Id of the document; null if the entry is not one and has no id.")
    state: PutOutcome = Field(description="What became of it.")
    chunk_count: int = Field(description="Number of its chunks.")
    error: str | None = Field(None, description="Why it was refused.")
    line: int | None = Field(None, description="Its line in the request, from 1, for `application/x-ndjson`.")

    @classmethod
    def of(cls, result: PutResult, line: int | None) -> Self:
        return cls.model_construct(
            id=result.id or None,
            state=result.outcome,
            chunk_count=result.passages,
            **optional_of_put(result, line),
        )


def optional_of_put(result: PutResult, line: int | None) -> dict[str, Any]:
    """Return `error` and `line`, which stay unset if there are none."""
    error: dict[str, Any] = {"error": result.problem} if result.problem else {}
    return error if line is None else {**error, "line": line}


class DocumentsPut(BaseModel):
    results: list[DocumentPut] = Field(description="What became of each document, in their order.")
    counts: PutCounts = Field(description="Number of documents by state.")


class DocumentChunkShown(BaseModel):
    number: int = Field(description="Number of the chunk, from 0.")
    start: int = Field(description="Offset of the chunk in the text.")
    end: int = Field(description="End of the chunk in the text, exclusive.")

    @classmethod
    def all_of(cls, document: StoredDocument) -> list[Self]:
        return [model_of(cls, chunk) for chunk in document.passages]


_UPDATED_AT = "When its current state was put, by the clock of the service."


class DocumentShown(BaseModel):
    id: str = Field(description="Id of the document.")
    text: str = Field(description="The text as it was put.")
    metadata: dict[str, Any] = Field(description="The metadata fields that the tenant's plan allows.")
    chunks: list[DocumentChunkShown] = Field(description="The chunks of the text.")
    updated_at: Time = Field(description=_UPDATED_AT)

    @classmethod
    def of(cls, document: StoredDocument) -> Self:
        chunks = DocumentChunkShown.all_of(document)
        return model_of(cls, document, chunks=chunks, updated_at=_time_of(document.version))


class DocumentListed(BaseModel):
    id: str = Field(description="Id of the document.")
    metadata: dict[str, Any] = Field(description="The metadata fields that the tenant's plan allows.")
    chunk_count: int = Field(description="Number of its chunks.")
    is_complete: bool = Field(
        description="False: its write is not finished, or was interrupted; then put it again."
    )
    updated_at: Time = Field(description=_UPDATED_AT)

    @classmethod
    def of(cls, header: DocumentHeader) -> Self:
        return model_of(
            cls,
            header,
            chunk_count=header.passages,
            is_complete=header.complete,
            updated_at=_time_of(header.version),
        )


def _time_of(version: int) -> str:
    """Return the time of a document's version, which counts the microseconds since 1970."""
    return datetime.fromtimestamp(version / 1_000_000, UTC).isoformat(timespec="milliseconds")


class DocumentPage(Page[DocumentListed]):
    """Documents in the order of their keys, which is not that of their ids; an update does not move them."""


class DocumentsToDelete(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ids": ["a.md", "b.md"]}]})

    ids: list[DocumentId] = Field(max_length=MAX_REMOVED, description="Ids of documents.")


class DocumentsDeleted(BaseModel):
    deleted: list[str] = Field(description="Ids of the documents that were deleted.")
    missing: list[str] = Field(description="Ids without a document.")


class TenantShown(BaseModel):
    name: str = Field(description="Name of the tenant, as in its tokens.")
    document_count: int = Field(description="Number of its documents.")
    document_count_is: Exactness = Field(
        description="Whether `document_count` is exact, a lower bound or an estimate."
    )
    chunk_count: int = Field(description="Number of chunks of its documents.")
    has_own_shard: bool = Field(description="Whether it has a shard of its own; false: it shares one.")
    created_at: Time = Field(description="When it first put a document.")

    @classmethod
    def of(cls, usage: TenantUsage) -> Self:
        return cls.model_construct(
            name=usage.tenant.name,
            document_count=usage.documents.value,
            document_count_is=usage.documents.exactness,
            chunk_count=usage.passages,
            has_own_shard=usage.own_shard,
            created_at=usage.since,
        )


class TenantPage(Page[TenantShown]):
    """Tenants ordered by name."""
