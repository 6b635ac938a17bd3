"""Requests and answers about documents: one model each for HTTP, MCP and `--json`."""

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


def _whole(text: str) -> str:
    """Half a character is legal in JSON, and nothing can be kept under it."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("has a character that is none")
    return text


DocumentId = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(_whole)]
_ONE_VALUE = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}
# What a condition may hold is decided by the condition itself, for every surface.
FilterValue = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                *_ONE_VALUE["anyOf"],
                {"type": "array", "items": _ONE_VALUE, "maxItems": MAX_VALUES},
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
        description="Name in the metadata; `author.name` is one within another.",
    )
    op: Op = Field(description="How the field's values compare; a list of `value` is for `in` and `nin` alone.")
    value: FilterValue = Field(
        None, description="A text, a number, true or false; dates compare as texts like 2026-01-31T12:00:00Z."
    )

    def as_condition(self) -> FieldCondition:
        return FieldCondition.of(self.field, self.op, self.value)


Conditions = Annotated[list[FilterCondition], Field(max_length=MAX_CONDITIONS)]


class DocumentFilters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    must: Conditions = Field([], description="All of these hold.")
    should: Conditions = Field([], description="If there are any, one of these holds.")
    must_not: Conditions = Field([], description="None of these holds.")

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
        description="What the documents are about, in plain words; none: whatever the filters let through.",
        json_schema_extra={"maxLength": MAX_DOCUMENT_QUERY},
    )
    top_k: Count = Field(10, ge=1, le=MAX_TOP_K, description="Most documents returned.")
    offset: Count = Field(0, ge=0, le=MAX_RANKED, description="How many of the best are left out.")
    search_type: SearchType | None = Field(
        None,
        description="What is compared: meaning, words or both; null: what the installation has set, which is "
        "`hybrid` unless it says otherwise, and always is with a `fusion`.",
    )
    fusion: Fusion | None = Field(
        None, description="How `hybrid` joins the two: by ranks, by scores, or as we think best; null is `best`."
    )
    filters: DocumentFilters | None = Field(None, description="What the metadata of a document must say.")
    include_snippets: StrictBool = Field(True, description="Show the part of a document that matched.")
    snippet_max_chars: Count = Field(240, ge=1, le=MAX_SNIPPET, description="How long that part may be.")
    metadata_fields: list[str] | None = Field(
        None, max_length=MAX_METADATA_FIELDS, description="Which metadata is returned; null: all of it."
    )
    cursor: str | None = Field(
        None,
        max_length=MAX_CURSOR,
        description="`*` begins a walk through all that is found; `next_cursor` of an answer goes on with it.",
    )
    rerank: Rerank = Field(Rerank.OFF, description="Who looks at the best once more, if anybody does.")

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
    score: float = Field(description="Higher is better; what it means depends on how was searched.")
    metadata: dict[str, Any]
    snippet: str | None = Field(description="The part of the text that matched best; null where none was wanted.")
    snippet_start: int | None = Field(description="Where in the text the snippet begins.")
    snippet_end: int | None = Field(description="Where it ends: the character after its last.")
    highlights: list[tuple[int, int]] = Field(
        description="What matched: from where to before where, counted from the snippet's first character."
    )
    passage: int = Field(description="Number of the passage that matched best, from 0.")

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
    """What is said of a search beside its hits; the last line or event of a stream."""

    query_id: str = Field(json_schema_extra={"format": "uuid"})
    took_ms: float
    total: int = Field(description="How many documents would be returned if all were asked for.")
    total_is: Exactness
    next_cursor: str | None = Field(
        description="`cursor` of the next page; null on the last, and where none began."
    )
    search_type: SearchType
    fusion: Fusion | None = Field(description="How both arms were joined; null where there was nothing to join.")
    degraded: list[str] = Field(description="Parts that failed, and were done without.")
    reranked_by: str | None = Field(description="Who looked at the best once more; null: nobody.")

    @classmethod
    def of(cls, answered: Answered, **more: Any) -> Self:
        query, answer = answered.query, answered.answer
        joined = bool(query.text) and query.search_type is SearchType.HYBRID
        return cls.model_construct(
            query_id=answered.query_id,
            took_ms=answered.took_ms,
            total=answer.total.value,
            total_is=answer.total.exactness,
            next_cursor=answer.next_cursor or None,
            search_type=query.search_type,
            fusion=(query.fusion or Fusion.BEST) if joined else None,
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
    parts: dict[str, str] = Field({}, description="What does not answer, and why; absent when all of it does.")


class PutCounts(BaseModel):
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0


class PutResultShown(BaseModel):
    doc_id: str | None = Field(description="Null where a document is none, and has no id.")
    status: PutOutcome
    passages: int = Field(description="How many pieces it is searched in.")
    error: str | None = Field(None, description="Why it was refused.")
    line: int | None = Field(None, description="The line it came in, from 1, where documents came in lines.")

    @classmethod
    def of(cls, result: PutResult, line: int | None) -> Self:
        """Without `error` and `line` where there are none."""
        more: dict[str, Any] = {"error": result.problem} if result.problem else {}
        more |= {} if line is None else {"line": line}
        return cls.model_construct(
            doc_id=result.id or None, status=result.outcome, passages=result.passages, **more
        )


class DocumentsPut(BaseModel):
    results: list[PutResultShown]
    counts: PutCounts


class DocumentPassageShown(BaseModel):
    number: int
    start: int
    end: int


class DocumentShown(BaseModel):
    doc_id: str
    text: str
    metadata: dict[str, Any]
    passages: list[DocumentPassageShown] = Field(description="Where the text was cut into what is searched.")

    @classmethod
    def of(cls, document: StoredDocument) -> Self:
        passages = [model_of(DocumentPassageShown, passage) for passage in document.passages]
        return model_of(cls, document, doc_id=document.id, passages=passages)


class DocumentsToRemove(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: list[DocumentId] = Field(max_length=MAX_REMOVED)


class DocumentsRemoved(BaseModel):
    deleted: list[str]
    missing: list[str] = Field(description="Those that were not there.")
