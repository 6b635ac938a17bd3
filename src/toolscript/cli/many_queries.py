"""Many queries at once: a line of text each, or a line of JSON each."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from toolscript.errors import InvalidRequest
from toolscript.model.gateway import LocalQuery
from toolscript.model.queries import SearchType


def queries_of(lines: Iterable[str], usual: LocalQuery) -> Iterator[LocalQuery]:
    """Blank lines are skipped. A line of JSON may also have `limit`, `threshold` and `search_type`."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text:
            yield _query(text, number, usual)


def _query(text: str, number: int, usual: LocalQuery) -> LocalQuery:
    try:
        return _from_json(json.loads(text), usual) if text.startswith("{") else replace(usual, text=text)
    except (ValueError, TypeError, OverflowError, RecursionError, InvalidRequest) as error:
        raise InvalidRequest(
            f"line {number} is no query: {error}", hint='write a line of text, or {"query": "read a file"}'
        ) from None


def _from_json(data: dict[str, Any], usual: LocalQuery) -> LocalQuery:
    if not isinstance(data.get("query"), str):
        raise TypeError("it has no text under `query`")
    return replace(
        usual,
        text=data["query"],
        limit=int(data.get("limit", usual.limit)),
        threshold=float(data.get("threshold", usual.threshold)),
        search_type=SearchType(data["search_type"]) if "search_type" in data else usual.search_type,
    )
