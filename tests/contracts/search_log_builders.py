"""Entries of the log of tool searches."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from toolscript.core.retrieval.query import SearchType
from toolscript.tools.model.query import Strategy
from toolscript.tools.model.search_log import Channel, LoggedSearch

# Current, because old entries expire.
NOW = datetime.now(UTC).replace(microsecond=123456)
LONG_AGO = NOW - timedelta(days=300)


def logged(number: int = 0, **more: object) -> LoggedSearch:
    """Return an entry; a higher number is later."""
    values: dict[str, object] = {
        "at": NOW + timedelta(seconds=number),
        "query_id": str(UUID(int=number)),
        "namespaces": ("default",),
        "channel": Channel.HTTP,
        "search_type": SearchType.HYBRID,
        "strategy": Strategy.HIERARCHICAL,
        "hits": 3,
        "good_match": True,
        "took_ms": 12.5,
    }
    return LoggedSearch(**{**values, **more})  # type: ignore[arg-type]


def missed(number: int, text: str, **more: object) -> LoggedSearch:
    return logged(number, **{"text": text, "good_match": False, "hits": 0, **more})
