"""Requests to the library and its responses: the resources of the API."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.core.retrieval.query import SearchType, require, resolve_search_type
from toolscript.core.web.cursors import encode_cursor
from toolscript.core.web.fields import QUERY_TEXT, Count, model_of
from toolscript.core.web.paging import Page
from toolscript.knowledge.model.library import ID_PATTERN, Chunk, Position, Source
from toolscript.knowledge.model.query import (
    CHUNK,
    DEFAULT_RESULTS,
    EXTRACTION,
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
TOPICS_HELP = "Only results with any of these topics."
SOURCE_HELP = "Only results from any of these sources."
BOTH_HELP = "Whether a chunk and an extraction of it may both be returned; null: only with `semantic`."

GOOD_MATCH_HELP = (
    "Whether anything in the library fits the query; never true without results; false: results are guesses. Null "
    "where it cannot be told: if `search_type` is `semantic` or `keyword`, and without embeddings."
)

Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE)]
Values = Annotated[list[Value], Field(max_length=MAX_VALUES)]
Id = Annotated[str, Field(pattern=ID_PATTERN)]
# A query has the kind `chunk` in the same list.
ExtractionTypes = Annotated[list[Value], Field(max_length=MAX_VALUES - 1)]
Ids = Annotated[list[Id], Field(max_length=MAX_VALUES)]
Kind = Literal["chunk", "extraction"]
State = Literal["ingesting", "ready"]


class LibrarySearchRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"query": "how do I keep a hive dry", "limit": 5},
                {
                    "query": "sugar in autumn",
                    "kind": "extraction",
                    "extraction_type": ["method"],
                    "topics": ["bees"],
                },
            ]
        },
    )

    query: str = Field(description=QUERY_HELP, json_schema_extra=dict[str, Any](QUERY_TEXT))
    limit: Count = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS, description="Maximum number of results.")
    kind: Kind | Annotated[list[Kind], Field(max_length=2)] | None = Field(
        None, description="Only chunks of sources, or only extractions; null: both."
    )
    extraction_type: Value | ExtractionTypes | None = Field(
        None,
        description="Only extractions of any of these types, such as `decision` or `warning`. Chunks are left "
        "out, unless `kind` names them beside `extraction`.",
    )
    topics: Value | Values | None = Field(None, description=TOPICS_HELP)
    source_id: Id | Ids | None = Field(None, description=SOURCE_HELP)
    search_type: SearchType | None = Field(
        None, description="Which retrievers search; `semantic` is the cosine alone; null: the service's default."
    )
    include_both: StrictBool | None = Field(None, description=BOTH_HELP)

    def as_query(self, default: SearchType) -> KnowledgeQuery:
        return query_of(self, types_of(listed(self.kind), listed(self.extraction_type)), default)


class PositionShown(BaseModel):
    """Where a chunk stands in its source."""

    chapter: str = Field(description="The outermost heading above it.")
    section: str = Field(description="The innermost heading above it.")
    page: int | None = Field(description="Counted from 1, where there are pages.")
    line: int | None = Field(description="Its first line, where there are lines.")
    start: int = Field(description="Offset of its start in the source's text.")
    end: int = Field(description="Offset of its end, exclusive.")

    @classmethod
    def of(cls, position: Position) -> Self:
        return model_of(cls, position)


class SourceReference(BaseModel):
    """The source of a result, to cite it."""

    id: str = Field(description="Its id: `GET /api/v1/knowledge/sources/{source_id}` shows all of it.")
    title: str = Field(description="Its title.")
    authors: list[str] = Field(description="Its authors.")


class LibraryHit(BaseModel):
    id: str = Field(description="Id of the chunk or the extraction, 24 hexadecimal digits.")
    kind: Kind = Field(description="A chunk of a source, or a statement extracted from one.")
    extraction_type: str | None = Field(description="`decision`, `warning` ...; null for a chunk.")
    score: float = Field(ge=0, le=1, description="Comparable within one answer, on the scale of a cosine.")
    content: str = Field(description="Its text.")
    topics: list[str] = Field(description="Its topics.")
    chunk_id: str = Field(
        description="The chunk itself, or the one it was extracted from: "
        "`GET /api/v1/knowledge/chunks/{chunk_id}` has its neighbours."
    )
    position: PositionShown = Field(description="Position of that chunk in its source.")
    source: SourceReference = Field(description="The source of that chunk.")

    @classmethod
    def of(cls, hit: KnowledgeHit) -> Self:
        return model_of(
            cls,
            hit,
            extraction_type=hit.type or None,
            score=round(hit.score, 4),
            position=PositionShown.of(hit.position),
            source=model_of(SourceReference, hit.source),
        )


class LibrarySearchMetadata(BaseModel):
    """How the library was searched."""

    query: str = Field(description="The query, as it was searched.")
    search_type: SearchType = Field(description="The search type that ran.")
    limit: int = Field(description="Maximum number of results.")
    result_count: int = Field(description="How many results there are.")
    sources_cited: list[str] = Field(description="Titles of the sources of the results, each once.")
    took_ms: float = Field(description="How long the search took, in milliseconds.")
    degraded: list[str] = Field(description="The parts that failed; empty if the search is complete.")
    index_version: str = Field(description="Version of the index that answered.")
    weights_version: str | None = Field(description="Always null: the library is ranked without fitted weights.")
    good_match: bool | None = Field(description=GOOD_MATCH_HELP)

    @classmethod
    def of(cls, query: KnowledgeQuery, answer: KnowledgeAnswer) -> Self:
        return model_of(
            cls,
            answer,
            limit=query.limit,
            result_count=len(answer.hits),
            sources_cited=cited(answer),
            took_ms=round(answer.took_ms, 2),
            weights_version=None,
        )


class LibrarySearchAnswer(BaseModel):
    query_id: str = Field(
        description="Id of this search, also in the log of the service.", json_schema_extra={"format": "uuid"}
    )
    results: list[LibraryHit] = Field(description="Best first.")
    metadata: LibrarySearchMetadata = Field(description="About the search.")

    @classmethod
    def of(cls, query_id: str, query: KnowledgeQuery, answer: KnowledgeAnswer) -> Self:
        hits = [LibraryHit.of(hit) for hit in answer.hits]
        metadata = LibrarySearchMetadata.of(query, answer)
        return cls.model_construct(query_id=query_id, results=hits, metadata=metadata)


class LibrarySource(BaseModel):
    """A source of the library: a book, a paper, a page."""

    id: str = Field(description="Its id, 24 hexadecimal digits.")
    kind: str = Field(description="Kind of the source, such as `pdf`, `markdown` or `book`.")
    title: str = Field(description="Its title.")
    authors: list[str] = Field(description="Its authors.")
    topics: list[str] = Field(description="Its topics.")
    state: State = Field(description="`ingesting` until all of its chunks can be found.")
    ingested_at: str = Field(description="When it was last ingested, in ISO 8601; empty if that is not known.")
    chunk_count: int = Field(description="How many chunks it has.")
    metadata: dict[str, Any] = Field(description="Further facts, as its file has them.")

    @classmethod
    def of(cls, source: Source) -> Self:
        """Leave out the path: only operators of the library need it."""
        return model_of(cls, source, kind=source.type, state=source.status.value)


class LibrarySourcePage(Page[LibrarySource]):
    """One page of the sources of the library, in order of their ids."""

    @classmethod
    def of_answer(cls, answer: SourcesAnswer) -> Self:
        sources = [LibrarySource.of(source) for source in answer.sources]
        following = encode_cursor(answer.next_after) if answer.has_more else None
        return cls.model_construct(results=sources, next_cursor=following)


class ChunkText(BaseModel):
    id: str = Field(description="Its id, 24 hexadecimal digits.")
    number: int = Field(description="Its place among the chunks of its source, from 0.")
    content: str = Field(description="Its text.")
    topics: list[str] = Field(description="Its topics.")
    position: PositionShown = Field(description="Its position in the source.")
    token_count: int = Field(description="Its length in tokens of the embedding model.")

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        return model_of(cls, chunk, position=PositionShown.of(chunk.position))


class LibraryChunk(ChunkText):
    source: LibrarySource = Field(description="The source that it is part of.")
    before: list[ChunkText] = Field(description="The chunks before it, in reading order.")
    after: list[ChunkText] = Field(description="The chunks after it, in reading order.")

    @classmethod
    def of_answer(cls, answer: PassageAnswer) -> Self:
        return model_of(
            cls,
            answer.chunk,
            position=PositionShown.of(answer.chunk.position),
            source=LibrarySource.of(answer.source),
            before=[ChunkText.of(chunk) for chunk in answer.before],
            after=[ChunkText.of(chunk) for chunk in answer.after],
        )


class SearchFields(Protocol):
    """What the request of a search and those of its alias have in common."""

    @property
    def query(self) -> str | None: ...
    @property
    def limit(self) -> int: ...
    @property
    def topics(self) -> str | Sequence[str] | None: ...
    @property
    def source_id(self) -> str | Sequence[str] | None: ...
    @property
    def search_type(self) -> SearchType | None: ...
    @property
    def include_both(self) -> bool | None: ...


def query_of(request: SearchFields, types: tuple[str, ...], default: SearchType) -> KnowledgeQuery:
    """Return the query of a request, or of its alias; `types` are kinds and types of extractions."""
    search_type = resolve_search_type(request.search_type, default)
    return KnowledgeQuery(
        request.query or "",
        request.limit,
        types,
        listed(request.topics),
        listed(request.source_id),
        search_type,
        shows_both(request.include_both, search_type),
    )


def types_of(kinds: tuple[str, ...], extraction_types: tuple[str, ...]) -> tuple[str, ...]:
    """Return kinds and types of extractions as a query has them: in one list."""
    if not extraction_types:
        return kinds
    field = "extraction_type"
    require(not kinds or EXTRACTION in kinds, field, "is about extractions, which `kind` leaves out")
    names = {name.strip().lower() for name in extraction_types}
    require(names.isdisjoint((CHUNK, EXTRACTION)), field, "must be a type such as `decision`; `kind` has the rest")
    return (*((CHUNK,) if CHUNK in kinds else ()), *extraction_types)


def cited(answer: KnowledgeAnswer) -> list[str]:
    return list(dict.fromkeys(hit.source.title for hit in answer.hits))


def listed(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
