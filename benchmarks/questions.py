"""Queries of benchmarks: from files, from the catalog, and for tenants of every size."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.synthetic import FIRST_YEAR, YEARS, Originals, TenantSize, subjects_of
from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.retrieval.query import MAX_QUERY, SearchType
from toolscript.core.retrieval.terms import split_identifier
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.server.settings import load_settings
from toolscript.server.stores import open_stores
from toolscript.tools.ports import Catalog

UNIFORMLY, BY_SIZE = "any tenant", "any passage's tenant"
MAX_TINY, MAX_SMALL, MAX_MEDIUM = 20, 200, 5_000
MIN_WORDS, MAX_WORDS = 6, 12

# `year` and `lang` have an index, `source` has none.
FILTERS: Mapping[str, Filters] = {
    "": NO_FILTERS,
    "1 of 2": Filters(must=(FieldCondition.of("year", "gte", FIRST_YEAR + YEARS // 2),)),
    "1 of 20": Filters(must=(FieldCondition.of("lang", "eq", "fi"),)),
    "1 of 10, no index": Filters(
        must=(FieldCondition.of("source", "in", [f"source-{number}" for number in range(5)]),)
    ),
}

MIN_QUERIES = 20


@dataclass(frozen=True)
class Shape:
    """A kind of query. `filtered` is a key of FILTERS."""

    search_type: SearchType
    filtered: str = ""

    def __str__(self) -> str:
        return f"{self.search_type}, {self.filtered}" if self.filtered else str(self.search_type)

    @property
    def filters(self) -> Filters:
        return FILTERS[self.filtered]


PLAIN = Shape(SearchType.HYBRID)
SHAPES = (
    PLAIN,
    Shape(SearchType.SEMANTIC),
    Shape(SearchType.KEYWORD),
    *(Shape(SearchType.HYBRID, filtered) for filtered in list(FILTERS)[1:]),
    Shape(SearchType.SEMANTIC, "1 of 2"),
    Shape(SearchType.KEYWORD, "1 of 2"),
)


@dataclass(frozen=True)
class Question:
    size: TenantSize
    text: str


def classes_of(sizes: Sequence[TenantSize]) -> dict[str, list[TenantSize]]:
    """Return the tenants by class of size, without empty classes."""
    largest = max(sizes, key=lambda size: size.passages)
    classes: dict[str, list[TenantSize]] = {"tiny": [], "small": [], "medium": [], "big": [], "biggest": [largest]}
    for size in sizes:
        if size is not largest:
            classes[_class_of(size)].append(size)
    return {name: listed for name, listed in classes.items() if listed}


def _class_of(size: TenantSize) -> str:
    bounds = (("tiny", MAX_TINY), ("small", MAX_SMALL), ("medium", MAX_MEDIUM))
    return next((name for name, maximum in bounds if size.passages <= maximum), "big")


def draws(sizes: Sequence[TenantSize], count: int, rng: np.random.Generator) -> dict[str, list[TenantSize]]:
    """Draw `count` tenants of each class, of all uniformly, and of all in proportion to their size."""
    shares = np.array([size.passages for size in sizes], dtype=np.float64)
    drawn = {
        UNIFORMLY: [sizes[position] for position in rng.integers(len(sizes), size=count)],
        BY_SIZE: [sizes[position] for position in rng.choice(len(sizes), count, p=shares / shares.sum())],
    }
    for name, listed in classes_of(sizes).items():
        drawn[name] = [listed[position] for position in rng.integers(len(listed), size=count)]
    return drawn


def question_for(originals: Originals, size: TenantSize, seed: int, rng: np.random.Generator) -> Question:
    """Return a query: consecutive words of a text that the tenant has documents about."""
    words = originals.texts[int(rng.choice(subjects_of(originals, size, seed)))].split()
    length = int(rng.integers(MIN_WORDS, MAX_WORDS + 1))
    start = int(rng.integers(max(1, len(words) - length)))
    return Question(size, " ".join(words[start : start + length]))


def read_queries(path: Path, count: int) -> list[str]:
    """Return the first distinct `text`s of a file of JSON lines."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not a file of JSON lines: {error}") from None
    texts = dict.fromkeys(str(line.get("text", "")).strip()[:MAX_QUERY] for line in lines)
    queries = [text for text in texts if text][:count]
    if len(queries) < MIN_QUERIES:
        raise InvalidRequest(f"{path} holds {len(queries)} different queries", hint=f"give at least {MIN_QUERIES}")
    return queries


async def queries_or_names(queries: Path | None, count: int) -> list[str]:
    if queries is not None:
        return read_queries(queries, count)
    async with open_stores(load_settings()) as stores:
        return await names_from_catalog(stores.catalog, count)


async def names_from_catalog(catalog: Catalog, count: int) -> list[str]:
    ids = [seen.id for seen in await catalog.scan(after=0, limit=count * 2)]
    items = [stored.item for stored in await catalog.items(ids)]
    names = dict.fromkeys(f"{split_identifier(item.name)} {item.server}" for item in items)
    if len(names) < MIN_QUERIES:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript sync` first")
    return list(names)[:count]
