"""Queries to measure with when a person has none: names from the catalog."""

from toolscript.adapters.query_lines import FEWEST
from toolscript.errors import SetupError
from toolscript.model.words import split_identifier
from toolscript.ports import Catalog


async def names_from_catalog(catalog: Catalog, count: int) -> list[str]:
    ids = [seen.id for seen in await catalog.scan(after=0, limit=count * 2)]
    items = [stored.item for stored in await catalog.items(ids)]
    names = dict.fromkeys(f"{split_identifier(item.name)} {item.server}" for item in items)
    if len(names) < FEWEST:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript sync` first")
    return list(names)[:count]
