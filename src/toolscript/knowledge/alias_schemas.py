"""Requests and responses of the aliases, with the field names of the source document; MCP has its search, too."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.core.retrieval.query import MAX_QUERY, SearchType
from toolscript.core.web.fields import QUERY_TEXT, Count, model_of
from toolscript.knowledge.model.library import Chunk, Source
from toolscript.knowledge.model.query import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    KnowledgeAnswer,
    KnowledgeHit,
    KnowledgeQuery,
    PassageAnswer,
    SourcesAnswer,
)
from toolscript.knowledge.schemas import (
    BOTH_HELP,
    GOOD_MATCH_HELP,
    QUERY_HELP,
    SOURCE_HELP,
    TOPICS_HELP,
    Id,
    Ids,
    PositionShown,
    State,
    Value,
    Values,
    cited,
    listed,
    query_of,
)

TYPE_HELP = "Only `chunk`, only `extraction`, or types of extractions such as `decision` or `warning`."
SEARCH_TYPE_HELP = (
    "Which retrievers search; `semantic` is the cosine alone; null: the default of the installation, `hybrid` "
    "unless TOOLSCRIPT_SEARCH_TYPE sets another."
)


class KnowledgeRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "how do I keep a hive dry", "limit": 5}]}
    )

    query: str = Field(description=QUERY_HELP, json_schema_extra=dict[str, Any](QUERY_TEXT))
    limit: Count = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS, description="Maximum number of results.")
    type: Value | Values | None = Field(None, description=TYPE_HELP)
    topics: Value | Values | None = Field(None, description=TOPICS_HELP)
    source_id: Id | Ids | None = Field(None, description=SOURCE_HELP)
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE_HELP)
    include_both: StrictBool | None = Field(None, description=BOTH_HELP)

    def as_query(self, default: SearchType) -> KnowledgeQuery:
        return query_of(self, listed(self.type), default)


class KnowledgeParameters(BaseModel):
    """The same as a query string, where every value is text and a list is a repeated name."""

    model_config = ConfigDict(extra="forbid")

    query: str | None = Field(None, description=QUERY_HELP, max_length=MAX_QUERY)
    limit: int = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS, description="Maximum number of results.")
    type: Values = Field([], description=TYPE_HELP)
    topics: Values = Field([], description=TOPICS_HELP)
    source_id: Ids = Field([], description=SOURCE_HELP)
    search_type: SearchType | None = Field(None, description=SEARCH_TYPE_HELP)
    include_both: bool | None = Field(None, description=BOTH_HELP)

    def as_query(self, default: SearchType) -> KnowledgeQuery:
        return query_of(self, tuple(self.type), default)


class Attribution(BaseModel):
    """Where a result comes from."""

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
    """How the library was searched."""

    query: str = Field(description="The query.")
    sources_cited: list[str] = Field(description="Titles of the sources of the results, each once.")
    result_count: int = Field(description="How many results there are.")
    search_type: SearchType = Field(description="The search type that ran.")
    took_ms: float = Field(description="How long the search took.")
    degraded: list[str] = Field(description="The parts that failed, if any did.")

    @classmethod
    def of(cls, answer: KnowledgeAnswer) -> Self:
        took_ms = round(answer.took_ms, 2)
        return model_of(cls, answer, sources_cited=cited(answer), result_count=len(answer.hits), took_ms=took_ms)


class KnowledgeResponse(BaseModel):
    results: list[KnowledgeResult] = Field(description="Best first.")
    metadata: KnowledgeMetadata = Field(description="About the search.")

    @classmethod
    def of(cls, answer: KnowledgeAnswer) -> Self:
        hits = [KnowledgeResult.of(hit) for hit in answer.hits]
        return cls.model_construct(results=hits, metadata=KnowledgeMetadata.of(answer))


class KnowledgeToolMetadata(KnowledgeMetadata):
    good_match: bool | None = Field(description=GOOD_MATCH_HELP)


class KnowledgeToolResponse(KnowledgeResponse):
    """The response over MCP: that of the alias, with the verdict."""

    metadata: KnowledgeToolMetadata = Field(description="About the search.")

    @classmethod
    def of(cls, answer: KnowledgeAnswer) -> Self:
        of_alias = super().of(answer)
        return of_alias.model_copy(update={"metadata": KnowledgeToolMetadata.of(answer)})


class SourceShown(BaseModel):
    """A source of the library: a book, a paper, a page."""

    source_id: str = Field(description="Its id, 24 hexadecimal digits.")
    type: str = Field(description="Kind of the source, such as `pdf`.")
    title: str = Field(description="Its title.")
    authors: list[str] = Field(description="Its authors.")
    topics: list[str] = Field(description="Its topics.")
    ingested_at: str = Field(description="In ISO 8601.")
    status: State = Field(description="`ready` when all of it can be found.")
    chunk_count: int = Field(description="How many chunks it has.")
    metadata: dict[str, Any] = Field(description="Further facts of its file.")

    @classmethod
    def of(cls, source: Source) -> Self:
        """Leave out the path: only operators of the library need it."""
        return model_of(cls, source, source_id=source.id, status=source.status.value)


class SourcesShown(BaseModel):
    sources: list[SourceShown] = Field(description="In order of id.")
    next_after: str = Field(description="`after` of the next page; empty at the end.")

    @classmethod
    def of(cls, answer: SourcesAnswer) -> Self:
        sources = [SourceShown.of(source) for source in answer.sources]
        return model_of(cls, answer, sources=sources)


class ChunkShown(BaseModel):
    chunk_id: str = Field(description="Its id, 24 hexadecimal digits.")
    number: int = Field(description="Its place among the chunks of its source, from 0.")
    content: str = Field(description="Its text.")
    position: PositionShown = Field(description="Its position in the source.")
    token_count: int = Field(description="Its length in tokens.")

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        return model_of(cls, chunk, chunk_id=chunk.id, position=PositionShown.of(chunk.position))


class KnowledgePassageShown(BaseModel):
    source: SourceShown = Field(description="The source of the chunks.")
    chunks: list[ChunkShown] = Field(description="In reading order.")

    @classmethod
    def of(cls, answer: PassageAnswer) -> Self:
        chunks = [ChunkShown.of(chunk) for chunk in answer.chunks]
        return cls.model_construct(source=SourceShown.of(answer.source), chunks=chunks)
