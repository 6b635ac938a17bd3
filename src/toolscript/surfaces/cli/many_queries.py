"""Many queries at once: a line of text each, or a line of JSON each."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from toolscript.errors import InvalidRequest
from toolscript.model.gateway import LocalQuery


def queries_of(lines: Iterable[str], usual: LocalQuery) -> Iterator[LocalQuery]:
    """Blank lines are skipped. A line like `{"query": ..., "limit": ..., "threshold": ...}` may say more."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text:
            yield _from_json(text, number, usual) if text.startswith("{") else replace(usual, text=text)


def _from_json(text: str, number: int, usual: LocalQuery) -> LocalQuery:
    try:
        data = json.loads(text)
        return replace(
            usual,
            text=str(data["query"]),
            limit=int(data.get("limit", usual.limit)),
            threshold=float(data.get("threshold", usual.threshold)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(
            f"line {number} is no query: {error}", hint='write a line of text, or {"query": "read a file"}'
        ) from None
