"""What is noted of a search for documents."""

from dataclasses import dataclass
from enum import StrEnum


class Noted(StrEnum):
    """How much of a search is kept: figures alone, the query's text too, or the ids that were found as well."""

    FIGURES = "figures"
    TEXT = "text"
    RESULTS = "results"


@dataclass(frozen=True)
class LoggedQuery:
    """`text` and `found` are empty unless the installation wants them kept. `at` is ISO 8601."""

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
