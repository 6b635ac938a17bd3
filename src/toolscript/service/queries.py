"""Queries to measure with: a person's own, or names from the catalog."""

import json
from pathlib import Path

from toolscript.errors import InvalidRequest, NotFound, SetupError
from toolscript.model.queries import MAX_QUERY
from toolscript.model.words import split_identifier
from toolscript.ports import Catalog

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


async def names_from_catalog(catalog: Catalog, count: int) -> list[str]:
    ids = [seen.id for seen in await catalog.scan(after=0, limit=count * 2)]
    items = [stored.item for stored in await catalog.items(ids)]
    names = dict.fromkeys(f"{split_identifier(item.name)} {item.server}" for item in items)
    if len(names) < FEWEST:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript import FILE` first")
    return list(names)[:count]
