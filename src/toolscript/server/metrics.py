"""The values that labels may have. Every series with known labels is there from the start: see `Figures`."""

import asyncio

from toolscript import errors
from toolscript.adapters.telemetry.words import OTHER
from toolscript.model.document_queries import Fusion
from toolscript.model.queries import SearchType
from toolscript.search.fallbacks import Part

TOOLS, DOCUMENTS, KNOWLEDGE = PRODUCTS = ("tools", "documents", "knowledge")
OK, EMPTY, DEGRADED, REFUSED, ERROR = OUTCOMES = ("ok", "empty", "degraded", "refused", "error")
WORKED = (OK, ERROR)
NONE = "none"
UNMATCHED = "unmatched"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
EXECUTE = "execute"
STAGES = {
    TOOLS: ("embed", "skills", "retrieve", "rank", "enrich"),
    DOCUMENTS: ("embed", "statistics", "retrieve", "fuse", "rerank", "enrich"),
    KNOWLEDGE: ("embed", "statistics", "retrieve", "enrich"),
}
PARTS = {
    TOOLS: (Part.EMBEDDING, Part.SKILLS, Part.INDEX, Part.SCHEMAS),
    DOCUMENTS: (Part.EMBEDDING, Part.INDEX, Part.RERANK),
    KNOWLEDGE: (Part.EMBEDDING, Part.INDEX),
}
SEARCHED_BY = {
    TOOLS: tuple((kind.value, NONE) for kind in SearchType),
    KNOWLEDGE: tuple((kind.value, NONE) for kind in SearchType),
    DOCUMENTS: (
        *((kind.value, NONE) for kind in SearchType if kind is not SearchType.HYBRID),
        *((SearchType.HYBRID.value, fusion.value) for fusion in Fusion),
    ),
}
EMBEDDED = ("query", "passages")
ENGINE = {
    TOOLS: ("search", "rarities", "fields"),
    DOCUMENTS: ("search", "statistics", "headers", "passages", "shown", "page", "count", "put", "remove", "erase"),
    KNOWLEDGE: ("search", "rarities", "fields"),
}
LIBRARY = ("sources", "chunks", "extractions", "source_page", "passage", "ready")
REASONS_TO_DROP = ("full", "failed")

# Whom a refused request was for, by the beginning of its route; the first that fits.
ROUTES = (
    ("/api/v1/search", TOOLS),
    ("/search_knowledge", KNOWLEDGE),
    ("/sources", KNOWLEDGE),
    ("/passages", KNOWLEDGE),
    ("/search", DOCUMENTS),
    ("/documents", DOCUMENTS),
    ("/mcp", "mcp"),
)
REFUSED_PRODUCTS = (*PRODUCTS, "mcp", OTHER)
RATE_LIMIT, OVERLOAD = REFUSAL_REASONS = ("rate_limit", "overload")

MCP_CALL = "tools/call"
MCP_METHODS = (
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "server/discover",
    "tools/list",
)
MCP_OUTCOMES = (OK, REFUSED, ERROR)

_FAILURES: tuple[type[BaseException], ...] = (
    errors.EmbedderUnavailable,
    errors.IndexUnavailable,
    errors.CatalogUnavailable,
    errors.LibraryUnavailable,
    errors.EmbedderRejected,
    errors.IndexRejected,
    errors.CatalogRejected,
    errors.LibraryRejected,
    errors.SetupError,
    errors.InvalidRequest,
    TimeoutError,
    asyncio.CancelledError,
)
FAILURES = (*(one.__name__ for one in _FAILURES), OTHER)


def failure_of(error: type[BaseException]) -> str:
    return next((one.__name__ for one in _FAILURES if issubclass(error, one)), OTHER)


def product_of(route: str) -> str:
    return next((product for start, product in ROUTES if route.startswith(start)), OTHER)
