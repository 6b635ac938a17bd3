"""A document search as a value that is valid by construction, and its entry in the query log."""

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.text import readable
from toolscript.documents.model.filters import NO_FILTERS, Filters

MAX_DOCUMENT_QUERY = 2_000
MAX_TOP_K = 200
# Depth of a ranking: offsets and cursors of a query end there.
MAX_RANKED = 1_000
MAX_SNIPPET = 4_000
MAX_METADATA_FIELDS = 100
# The cursor that requests the first page, and a cursor to the next one.
FIRST_PAGE = "*"


class Rerank(StrEnum):
    """How the best documents are reranked."""

    OFF = "off"
    CROSS_ENCODER = "cross_encoder"
    LLM = "llm"


@dataclass(frozen=True)
class DocumentQuery:
    """Without a text: every document that passes the filters, unranked."""

    text: str = ""
    top_k: int = 10
    offset: int = 0
    search_type: SearchType = SearchType.HYBRID
    fusion: Fusion | None = None
    filters: Filters = NO_FILTERS
    include_snippets: bool = True
    snippet_max_chars: int = 240
    metadata_fields: tuple[str, ...] | None = None
    cursor: str = ""
    rerank: Rerank = Rerank.OFF

    def __post_init__(self) -> None:
        _require(len(self.text) <= MAX_DOCUMENT_QUERY, "query", f"is longer than {MAX_DOCUMENT_QUERY} characters")
        object.__setattr__(self, "text", readable(self.text).strip())
        if not self.text and not self.filters and not self.cursor:
            raise BlankQuery("neither a query nor filters", hint="send a query or filters, or cursor '*'")
        _require(1 <= self.top_k <= MAX_TOP_K, "top_k", f"must be 1 to {MAX_TOP_K}")
        _require(0 <= self.offset <= MAX_RANKED, "offset", f"must be 0 to {MAX_RANKED}; a cursor goes further")
        _require(
            self.fusion is None or self.search_type is SearchType.HYBRID, "fusion", "is for search_type hybrid"
        )
        _require(not (self.cursor and self.offset), "offset", "and a cursor exclude each other")
        _require(1 <= self.snippet_max_chars <= MAX_SNIPPET, "snippet_max_chars", f"must be 1 to {MAX_SNIPPET}")
        _require(len(self.metadata_fields or ()) <= MAX_METADATA_FIELDS, "metadata_fields", "are too many fields")

    @property
    def wanted(self) -> int:
        """The depth of the ranking that this page needs."""
        return self.offset + self.top_k

    @property
    def fingerprint(self) -> bytes:
        """The same for every page of one search."""
        same = replace(self, cursor=FIRST_PAGE, offset=0, top_k=1, include_snippets=True, snippet_max_chars=1)
        return hashlib.blake2b(repr(same).encode("utf-8", "replace"), digest_size=8).digest()


def _require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise InvalidRequest(f"{field} {problem}", details={"field": field})


class LogDetail(StrEnum):
    """How much of a search the query log keeps: metrics only, also the query text, or also the ids of the hits."""

    FIGURES = "figures"
    TEXT = "text"
    RESULTS = "results"


@dataclass(frozen=True)
class LoggedQuery:
    """`text` and `found` are empty unless the installation keeps them. `at` is ISO 8601."""

    at: str
    query_id: str
    tenant: str
    plan: str
    search_type: str
    fusion: str
    filters: int
    top_k: int
    hits: int
    total: int
    took_ms: float
    degraded: tuple[str, ...] = ()
    reranked_by: str = ""
    text: str = ""
    found: tuple[str, ...] = ()
