"""Requests to the library and its responses: one model each for HTTP, MCP and `--json`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.core.retrieval.query import MAX_QUERY, SearchType, resolve_search_type
from toolscript.core.web.fields import QUERY_TEXT, Count, model_of
from toolscript.knowledge.model.library import ID_PATTERN, Chunk, Position, Source
from toolscript.knowledge.model.query import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    MAX_VALUE,
    MAX_VALUES,
    KnowledgeAnswer,
    KnowledgeHit,
    KnowledgeQuery,
    PassageAnswer,
    SourcesAnswer,
    shows_both,
)

QUERY_HELP = "What you want to know, in plain words; 1 to 1,000 characters."
TYPE_HELP = "Only `chunk`, only `extraction`, or types of extractions such as `decision` or `warning`."
TOPICS_HELP = "Only results with any of these topics."
SOURCE_HELP = "Only results from any of these sources."
BOTH_HELP = "Whether a chunk and an extraction of it may both be returned; null: only with `semantic`."
SEARCH_TYPE_HELP = (
    "Which retrievers search; `semantic` is the cosine alone; null: the default of the installation, `hybrid` "
    "unless TOOLSCRIPT_SEARCH_TYPE sets another."
)

Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE)]
Values = Annotated[list[Value], Field(max_length=MAX_VALUES)]
Id = Annotated[str, Field(pattern=ID_PATTERN)]


class KnowledgeRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(description=QUERY_HELP, json_schema_extra=dict[str, Any](QUERY_TEXT))
    limit: Count = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS, description="Maximum number of results.")
    type: Value | Values | None = Field(None, description=TYPE_HELP)
    topics: Value | Values | None = Field(None, description=TOPICS_HELP)
    source_id: Id | Annotated[list[Id], Field(max_length=MAX_VALUES)] | None = Field(None, description=SOURCE_HELP)
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE_HELP)
    include_both: StrictBool | None = Field(None, description=BOTH_HELP)

    def as_query(self, default: SearchType) -> KnowledgeQuery:
        return _query(self, default)


class KnowledgeParameters(BaseModel):
    """The same as a query string, where every value is text and a list is a repeated name."""

    model_config = ConfigDict(extra="forbid")

    query: str | None = Field(None, description=QUERY_HELP, max_length=MAX_QUERY)
    limit: int = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS, description="Maximum number of results.")
    type: Values = Field([], description=TYPE_HELP)
    topics: Values = Field([], description=TOPICS_HELP)
    source_id: Annotated[list[Id], Field(max_length=MAX_VALUES)] = Field([], description=SOURCE_HELP)
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE_HELP)
    include_both: bool | None = Field(None, description=BOTH_HELP)

    def as_query(self, default: SearchType) -> KnowledgeQuery:
        return _query(self, default)


class PositionShown(BaseModel):
    chapter: str = Field(description="The outermost heading above it.")
    section: str = Field(description="The innermost heading above it.")
    page: int | None = Field(description="Counted from 1, where there are pages.")
    line: int | None = Field(description="Its first line, where there are lines.")
    start: int = Field(description="Offset of its start in the source's text.")
    end: int = Field(description="Offset of its end, exclusive.")

    @classmethod
    def of(cls, position: Position) -> Self:
        return model_of(cls, position)


class Attribution(BaseModel):
    source_id: str = Field(description="For more of the source, see `get_source`.")
    chunk_id: str = Field(description="For its neighbours, see `get_passage`.")
    title: str = Field(description="Of the source.")
    authors: list[str] = Field(description="Of the source.")
    position: PositionShown = Field(description="Its position in the source.")

    @classmethod
    def of(cls, hit: KnowledgeHit) -> Self:
        position = PositionShown.of(hit.position)
        return model_of(cls, hit.source, source_id=hit.source.id, chunk_id=hit.chunk_id, position=position)


class KnowledgeResult(BaseModel):
    id: str = Field(description="Of the chunk or the extraction, 24 hexadecimal digits.")
    score: float = Field(ge=0, le=1, description="Comparable within one response, on the scale of a cosine.")
    type: Literal["chunk", "extraction"] = Field(description="A chunk, or a statement extracted from one.")
    extraction_type: str | None = Field(None, description="Of an extraction: `decision`, `warning` ...")
    content: str = Field(description="Its text.")
    topics: list[str] = Field(description="Its topics.")
    source: Attribution = Field(description="Where it comes from.")

    @classmethod
    def of(cls, hit: KnowledgeHit) -> Self:
        """A chunk has no `extraction_type`, not even null."""
        extraction: dict[str, Any] = {"extraction_type": hit.type} if hit.type else {}
        return cls.model_construct(
            id=hit.id,
            score=round(hit.score, 4),
            type=hit.kind,
            **extraction,
            content=hit.content,
            topics=list(hit.topics),
            source=Attribution.of(hit),
        )


class KnowledgeMetadata(BaseModel):
    query: str = Field(description="The query.")
    sources_cited: list[str] = Field(description="Titles of the sources of the results, each once.")
    result_count: int = Field(description="How many results there are.")
    search_type: SearchType = Field(description="The search type that ran.")
    took_ms: float = Field(description="How long the search took.")
    degraded: list[str] = Field(description="The parts that failed, if any did.")

    @classmethod
    def of(cls, answer: KnowledgeAnswer) -> Self:
        cited = list(dict.fromkeys(hit.source.title for hit in answer.hits))
        took_ms = round(answer.took_ms, 2)
        return model_of(cls, answer, sources_cited=cited, result_count=len(answer.hits), took_ms=took_ms)


class KnowledgeResponse(BaseModel):
    results: list[KnowledgeResult] = Field(description="Best first.")
    metadata: KnowledgeMetadata = Field(description="About the search.")

    @classmethod
    def of(cls, answer: KnowledgeAnswer) -> Self:
        hits = [KnowledgeResult.of(hit) for hit in answer.hits]
        return cls.model_construct(results=hits, metadata=KnowledgeMetadata.of(answer))


class SourceShown(BaseModel):
    source_id: str
    type: str
    title: str
    authors: list[str]
    topics: list[str]
    ingested_at: str = Field(description="In ISO 8601.")
    status: Literal["ingesting", "ready"]
    chunk_count: int
    metadata: dict[str, Any]

    @classmethod
    def of(cls, source: Source) -> Self:
        """Leave out the path: only operators of the library need it."""
        return model_of(cls, source, source_id=source.id, status=source.status.value)


class SourcesShown(BaseModel):
    sources: list[SourceShown]
    next_after: str = Field(description="`after` of the next page; empty at the end.")

    @classmethod
    def of(cls, answer: SourcesAnswer) -> Self:
        sources = [SourceShown.of(source) for source in answer.sources]
        return model_of(cls, answer, sources=sources)


class ChunkShown(BaseModel):
    chunk_id: str
    number: int = Field(description="Its place among the chunks of its source, from 0.")
    content: str
    position: PositionShown
    token_count: int

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        return model_of(cls, chunk, chunk_id=chunk.id, position=PositionShown.of(chunk.position))


class KnowledgePassageShown(BaseModel):
    source: SourceShown
    chunks: list[ChunkShown] = Field(description="In reading order.")

    @classmethod
    def of(cls, answer: PassageAnswer) -> Self:
        chunks = [ChunkShown.of(chunk) for chunk in answer.chunks]
        return cls.model_construct(source=SourceShown.of(answer.source), chunks=chunks)


def _query(request: KnowledgeRequest | KnowledgeParameters, default: SearchType) -> KnowledgeQuery:
    search_type = resolve_search_type(request.search_type, default)
    return KnowledgeQuery(
        request.query or "",
        request.limit,
        _listed(request.type),
        _listed(request.topics),
        _listed(request.source_id),
        search_type,
        shows_both(request.include_both, search_type),
    )


def _listed(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
