"""Caches of vectors: queries in memory, and texts in a file that processes share."""

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.values import OnProgress, Progress, silent

TEXT_BYTES, CHECK_BYTES = 32, 8
KEY_BYTES = TEXT_BYTES + CHECK_BYTES
BATCH = 512

logger = logging.getLogger(__name__)


@dataclass
class _Entry:
    """A vector that is cached or being computed, and how many callers wait for it."""

    vector: asyncio.Future[Vector]
    waiting: int = 0


class CachedEmbedder:
    """Caches the last `size` queries, apart for each group. Requests of a group at once are embedded once."""

    def __init__(self, embedder: Embedder, size: int) -> None:
        self._embedder = embedder
        self._size = size
        self._entries: OrderedDict[_Query, _Entry] = OrderedDict()

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    def within(self, group: Hashable) -> Embedder:
        return _Group(self, group)

    async def embed_query(self, text: str) -> Vector:
        return await self.embed_of(_Query(text))

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_texts(texts)

    async def embed_of(self, query: "_Query") -> Vector:
        entry = self._entries.get(query) or self._start(query)
        self._entries.move_to_end(query)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
        return await self._vector(query, entry)

    def _start(self, query: "_Query") -> _Entry:
        entry = _Entry(asyncio.ensure_future(self._embedder.embed_query(query.text)))
        self._entries[query] = entry
        entry.vector.add_done_callback(lambda _: self._evict_failure(query, entry))
        return entry

    async def _vector(self, query: "_Query", entry: _Entry) -> Vector:
        """Wait for the vector. One cancelled caller does not affect the others; the last one cancels the work."""
        entry.waiting += 1
        try:
            return await asyncio.shield(entry.vector)
        finally:
            entry.waiting -= 1
            if not entry.waiting and not entry.vector.done():
                entry.vector.cancel()
                self._evict(query, entry)

    def _evict_failure(self, query: "_Query", entry: _Entry) -> None:
        if entry.vector.cancelled() or entry.vector.exception():
            self._evict(query, entry)

    def _evict(self, query: "_Query", entry: _Entry) -> None:
        if self._entries.get(query) is entry:
            del self._entries[query]


class _Query(NamedTuple):
    text: str
    group: Hashable = None


class _Group:
    """A group's part of the cache."""

    def __init__(self, cached: CachedEmbedder, group: Hashable) -> None:
        self._cached = cached
        self._group = group

    @property
    def model(self) -> ModelCard:
        return self._cached.model

    async def embed_query(self, text: str) -> Vector:
        return await self._cached.embed_of(_Query(text, self._group))

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        return await self._cached.embed_texts(texts)


def text_key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorStore:
    """A cache of vectors in two files. A failed read or write is no error: the texts are embedded again."""

    def __init__(self, folder: Path, card: ModelCard) -> None:
        fingerprint = hashlib.sha256(json.dumps(asdict(card), sort_keys=True).encode()).hexdigest()[:16]
        self._keys = folder / f"{fingerprint}.keys"
        self._rows = folder / f"{fingerprint}.vectors"
        self._row_bytes = 4 * card.dimensions
        self._vectors = self._read()

    def recall(self, key: bytes) -> Vector | None:
        return self._vectors.get(key)

    def remember(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        self._vectors |= dict(zip(keys, vectors, strict=True))
        rows = [np.asarray(vector, dtype="<f4").tobytes() for vector in vectors]
        checked_keys = b"".join(key + _check(row) for key, row in zip(keys, rows, strict=True))
        try:
            self._append(checked_keys, b"".join(rows))
        except OSError as error:
            logger.warning("vectors cannot be cached", extra={"file": str(self._rows), "reason": str(error)})

    def _read(self) -> dict[bytes, Vector]:
        try:
            keys, rows = self._keys.read_bytes(), self._rows.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            logger.warning("cached vectors cannot be read", extra={"file": str(self._rows), "reason": str(error)})
            return {}
        vectors = {}
        for index in range(self._records(len(keys), len(rows))):
            key, row = _record(keys, index, KEY_BYTES), _record(rows, index, self._row_bytes)
            if key[TEXT_BYTES:] == _check(row):
                vectors[key[:TEXT_BYTES]] = np.frombuffer(row, dtype="<f4").astype(np.float32)
        return vectors

    def _append(self, keys: bytes, rows: bytes) -> None:
        """Append after the last record that has both parts; cut off the rest of an incomplete one."""
        self._keys.parent.mkdir(parents=True, exist_ok=True)
        with self._rows.open("ab") as row_file, self._keys.open("ab") as key_file:
            count = self._records(key_file.tell(), row_file.tell())
            for file, size, content in ((row_file, self._row_bytes, rows), (key_file, KEY_BYTES, keys)):
                file.truncate(count * size)
                file.write(content)

    def _records(self, key_bytes: int, row_bytes: int) -> int:
        return min(key_bytes // KEY_BYTES, row_bytes // self._row_bytes)


def _record(data: bytes, position: int, size: int) -> bytes:
    return data[position * size : (position + 1) * size]


def _check(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=CHECK_BYTES).digest()


class DiskCachedEmbedder:
    """Embeds each passage once and caches it on disk; queries are embedded every time, to measure that time."""

    def __init__(self, embedder: Embedder, store: VectorStore, on_progress: OnProgress = silent) -> None:
        self._embedder = embedder
        self._store = store
        self._on_progress = on_progress

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        keys = [text_key(text) for text in texts]
        await self._embed({key: text for key, text in zip(keys, texts, strict=True) if self._is_new(key)})
        vectors = np.empty((len(texts), self.model.dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            vectors[row] = self._store.recall(key)
        return vectors

    def _is_new(self, key: bytes) -> bool:
        return self._store.recall(key) is None

    async def _embed(self, missing: dict[bytes, str]) -> None:
        """Embed texts of similar length together: a batch costs as much as its longest text."""
        order = sorted(missing, key=lambda key: len(missing[key]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            self._store.remember(batch, await self._embedder.embed_texts([missing[key] for key in batch]))
            self._on_progress(Progress("embed", start + len(batch), len(order)))
