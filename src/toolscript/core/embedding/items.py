"""Vectors of items; each text is embedded once and cached."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from toolscript.core.item_text import ITEM_TEXT_VERSION, embedded_views
from toolscript.core.items import Item, ItemKind, tool_id
from toolscript.core.retrieval.model import Matrix, Vector, checked_vectors
from toolscript.core.retrieval.ports import Embedder, VectorCache


def vector_hash(item: Item) -> str:
    """Return a hash that changes with the embedded text of an item, or with how it is embedded."""
    parts = (ITEM_TEXT_VERSION, item.server, item.name, item.description, item.input_schema, item.output_schema)
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


async def embed_items(embedder: Embedder, items: Sequence[Item]) -> Matrix:
    """Return a unit vector for each item, the weighted sum of its views; a shared text is embedded once."""
    views = [embedded_views(item) for item in items]
    texts = list(dict.fromkeys(text for item_views in views for _, text in item_views))
    if not texts:
        return np.zeros((0, embedder.model.dimensions), dtype=np.float32)
    embedded = dict(zip(texts, await embedder.embed_texts(texts), strict=True))
    mixed = np.array([np.sum([share * embedded[text] for share, text in view], axis=0) for view in views])
    return checked_vectors(mixed, len(items), embedder.model)


class ItemVectors:
    """The vectors of the items in use. `cache` keeps them for the next start; None means no cache.

    `known` are vectors that another instance has already.
    """

    def __init__(
        self, embedder: Embedder, cache: VectorCache | None, known: Mapping[str, Vector] | None = None
    ) -> None:
        self._embedder = embedder
        self._cache = cache
        self._known: dict[str, Vector] = dict(known or {})

    @property
    def known(self) -> Mapping[str, Vector]:
        return self._known

    def recall(self, hashes: Sequence[str]) -> None:
        missing = [key for key in hashes if key not in self._known]
        if missing and self._cache is not None:
            self._known |= self._cache.recall(missing)

    def matrix(self, hashes: Sequence[str]) -> Matrix:
        """Return a row for each hash; zeros where nothing has been embedded yet."""
        rows = np.zeros((len(hashes), self._embedder.model.dimensions), dtype=np.float32)
        for row, key in enumerate(hashes):
            if key in self._known:
                rows[row] = self._known[key]
        return rows

    def missing(self, items: Sequence[Item], hashes: Sequence[str]) -> dict[str, Item]:
        return {key: item for key, item in zip(hashes, items, strict=True) if key not in self._known}

    async def embed(self, missing: Mapping[str, Item]) -> None:
        vectors = await embed_items(self._embedder, list(missing.values()))
        self._known |= dict(zip(missing, vectors, strict=True))

    def keep(self, items: Sequence[Item], hashes: Sequence[str], absent: Collection[str] = ()) -> None:
        """Drop vectors that belong to no item any more; the cache keeps those of absent servers."""
        kept = set(hashes)
        self._known = {key: vector for key, vector in self._known.items() if key in kept}
        if self._cache is not None:
            pairs = zip(items, hashes, strict=True)
            vectors = {_name(item): (key, self._known[key]) for item, key in pairs if key in self._known}
            self._cache.remember(vectors, absent)


def _name(item: Item) -> str:
    name = tool_id(item.server, item.name)
    return name if item.kind is ItemKind.TOOL else f"{item.kind}:{name}"
