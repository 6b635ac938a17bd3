"""What every query has in common: its text, and which retrievers answer."""

from enum import StrEnum

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.text import readable

MAX_QUERY = 1_000
MAX_LIMIT = 100


class SearchType(StrEnum):
    """Which retrievers answer. `semantic` is literal mode: what the source documents say and nothing else."""

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
    """How a hybrid search joins its arms: by ranks, by scores, or as we think best."""

    RRF = "rrf"
    ZSCORE = "zscore"
    BEST = "best"


def resolve_search_type(
    requested: SearchType | None, default: SearchType, fusion: Fusion | None = None
) -> SearchType:
    """Without a search type of its own a request gets the installation's; a fusion needs both retrievers."""
    return requested or (default if fusion is None else SearchType.HYBRID)
