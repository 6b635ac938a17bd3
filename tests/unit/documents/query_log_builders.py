"""Query log entries."""

from datetime import UTC, datetime

from toolscript.documents.model.query import LoggedQuery

# Current, because old entries expire.
NOW = datetime.now(UTC).replace(microsecond=123456).isoformat()


def search(number: int = 0, **more: object) -> LoggedQuery:
    values: dict[str, object] = {
        "at": NOW,
        "query_id": f"query-{number}",
        "tenant": "ann",
        "plan": "default",
        "search_type": "hybrid",
        "fusion": "rrf",
        "filters": 2,
        "top_k": 10,
        "hits": 3,
        "total": 41,
        "took_ms": 12.5,
    }
    return LoggedQuery(**{**values, **more})  # type: ignore[arg-type]
