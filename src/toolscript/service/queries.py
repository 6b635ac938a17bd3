"""Queries to measure with: a person's, or names from the catalog."""

from pathlib import Path

from toolscript.adapters.query_lines import FEWEST, read_queries
from toolscript.errors import SetupError
from toolscript.model.words import split_identifier
from toolscript.ports import Catalog
from toolscript.service.parts import open_stores
from toolscript.settings.service import load_settings


async def queries_or_names(queries: Path | None, count: int) -> list[str]:
    if queries is not None:
        return read_queries(queries, count)
    async with open_stores(load_settings()) as stores:
        return await names_from_catalog(stores.catalog, count)


async def names_from_catalog(catalog: Catalog, count: int) -> list[str]:
    ids = [seen.id for seen in await catalog.scan(after=0, limit=count * 2)]
    items = [stored.item for stored in await catalog.items(ids)]
    names = dict.fromkeys(f"{split_identifier(item.name)} {item.server}" for item in items)
    if len(names) < FEWEST:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript sync` first")
    return list(names)[:count]
