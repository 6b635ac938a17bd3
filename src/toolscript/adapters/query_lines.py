"""Queries to measure with, from a file of JSON lines."""

import json
from pathlib import Path

from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.queries import MAX_QUERY

FEWEST = 20


def read_queries(path: Path, count: int) -> list[str]:
    """The first different `text`s of a file of JSON lines."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not a file of JSON lines: {error}") from None
    texts = dict.fromkeys(str(line.get("text", "")).strip()[:MAX_QUERY] for line in lines)
    found = [text for text in texts if text][:count]
    if len(found) < FEWEST:
        raise InvalidRequest(f"{path} holds {len(found)} different queries", hint=f"give at least {FEWEST}")
    return found
