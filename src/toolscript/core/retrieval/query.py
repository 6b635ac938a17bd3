"""The common part of every query: its text, and which retrievers answer."""

from enum import StrEnum

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.text import readable

MAX_QUERY = 1_000
MAX_LIMIT = 100


class SearchType(StrEnum):
    """Which retrievers answer. `semantic` is literal mode: exactly what the source documents specify."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


def readable_query(text: str, hint: str = "say in a few words what the tool should do") -> str:
    require(len(text) <= MAX_QUERY, "query", f"is longer than {MAX_QUERY} characters")
    text = readable(text)
    if not text.strip():
        raise BlankQuery("the query is blank", hint=hint)
    return text


def require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise InvalidRequest(f"{field} {problem}", details={"field": field})


class Fusion(StrEnum):
    """How a hybrid search fuses its retrievers: by ranks, by z-scores, or by z-scores with adaptive weights."""

    RRF = "rrf"
    ZSCORE = "zscore"
    BEST = "best"


def resolve_search_type(
    requested: SearchType | None, default: SearchType, fusion: Fusion | None = None
) -> SearchType:
    """Return the requested search type, else the default of the installation; a fusion needs both retrievers."""
    return requested or (default if fusion is None else SearchType.HYBRID)
