"""Queries to a library, which cannot exist when they are invalid, and its answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolscript.core.retrieval.query import SearchType, readable_query, require
from toolscript.knowledge.model.library import Chunk, Position, Source, clean_topics, is_id

DEFAULT_RESULTS = 10
MAX_RESULTS = 100
MAX_VALUES = 32
MAX_VALUE = 200
MAX_NEIGHBOURS = 20
# As every list of the API.
MAX_SOURCES = 200

CHUNK, EXTRACTION = "chunk", "extraction"


@dataclass(frozen=True)
class KnowledgeQuery:
    """`types` are `chunk`, `extraction`, and types of extractions such as `decision`; none means all.

    `both`: a chunk and an extraction of it may both be returned.
    """

    text: str
    limit: int = DEFAULT_RESULTS
    types: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    source_ids: tuple[str, ...] = ()
    search_type: SearchType = SearchType.HYBRID
    both: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", readable_query(self.text, "say in a few words what you want to know"))
        require(1 <= self.limit <= MAX_RESULTS, "limit", f"must be 1 to {MAX_RESULTS}")
        object.__setattr__(self, "types", _types(self.types))
        object.__setattr__(self, "topics", _topics(self.topics))
        _require_few("source_id", self.source_ids)
        for source_id in self.source_ids:
            require_id("source_id", source_id)

    @property
    def is_literal(self) -> bool:
        """Return True for the cosine alone: no sparse retrieval, no fusion."""
        return self.search_type is SearchType.SEMANTIC

    @property
    def wants_chunks(self) -> bool:
        return not self.types or CHUNK in self.types

    @property
    def extraction_types(self) -> tuple[str, ...] | None:
        """Return the requested types; None for no extractions, empty for all."""
        if not self.types or EXTRACTION in self.types:
            return ()
        return tuple(type_ for type_ in self.types if type_ != CHUNK) or None


@dataclass(frozen=True)
class PassageQuery:
    """A chunk with its neighbours: `before` and `after` are their numbers."""

    chunk_id: str
    before: int = 1
    after: int = 1

    def __post_init__(self) -> None:
        require_id("chunk_id", self.chunk_id)
        for name, value in (("before", self.before), ("after", self.after)):
            require(0 <= value <= MAX_NEIGHBOURS, name, f"must be 0 to {MAX_NEIGHBOURS}")


@dataclass(frozen=True)
class SourcesQuery:
    """The next sources in order of id, after the id `after`."""

    limit: int = 20
    after: str = ""
    types: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(1 <= self.limit <= MAX_SOURCES, "limit", f"must be 1 to {MAX_SOURCES}")
        if self.after:
            require_id("after", self.after)
        object.__setattr__(self, "types", _types(self.types))
        object.__setattr__(self, "topics", _topics(self.topics))


@dataclass(frozen=True)
class KnowledgeHit:
    """`kind` is `chunk` or `extraction`, `type` what kind of extraction; `position` is that of the chunk."""

    id: str
    score: float
    kind: str
    type: str
    content: str
    chunk_id: str
    source: Source
    position: Position
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnowledgeAnswer:
    """`degraded` lists the parts that failed; `search_type` is the type that ran.

    `index_version` is the fingerprint of both collections that answered. `good_match` says whether anything fits
    the query; never true without hits, None if it cannot be told.
    """

    query: str
    hits: Sequence[KnowledgeHit] = ()
    search_type: SearchType = SearchType.HYBRID
    took_ms: float = 0.0
    degraded: tuple[str, ...] = ()
    index_version: str = ""
    good_match: bool | None = None


@dataclass(frozen=True)
class PassageAnswer:
    """Chunks in reading order, around the requested `chunk`."""

    source: Source
    chunk: Chunk
    chunks: Sequence[Chunk]

    @property
    def before(self) -> list[Chunk]:
        return [neighbour for neighbour in self.chunks if neighbour.number < self.chunk.number]

    @property
    def after(self) -> list[Chunk]:
        return [neighbour for neighbour in self.chunks if neighbour.number > self.chunk.number]


@dataclass(frozen=True)
class SourcesAnswer:
    """`next_after` is empty after a page that is not full; `has_more` tells whether it leads to another source."""

    sources: Sequence[Source] = field(default=())
    next_after: str = ""
    has_more: bool = False


def shows_both(requested: bool | None, search_type: SearchType) -> bool:
    """Return whether to show both. The default is True for `semantic`; other types show only the better one."""
    return search_type is SearchType.SEMANTIC if requested is None else requested


def require_id(name: str, value: str) -> str:
    require(is_id(value), name, "must be 24 hex digits, as answers give them")
    return value


def _types(types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types as they are stored: lower case, without duplicates."""
    _require_few("type", types)
    return tuple(dict.fromkeys(type_.strip().lower() for type_ in types))


def _topics(topics: tuple[str, ...]) -> tuple[str, ...]:
    _require_few("topics", topics)
    cleaned = clean_topics(topics)
    require(bool(cleaned) or not topics, "topics", "has none that anything could be filed under")
    return cleaned


def _require_few(name: str, values: tuple[str, ...]) -> None:
    require(len(values) <= MAX_VALUES, name, f"must be at most {MAX_VALUES}")
    require(all(0 < len(value) <= MAX_VALUE for value in values), name, f"must be 1 to {MAX_VALUE} long each")
