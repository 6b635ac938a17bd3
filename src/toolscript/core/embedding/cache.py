"""Caches of vectors: queries in memory, and texts in a file that processes share."""

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.values import OnProgress, Progress, silent

TEXT_BYTES, CHECK_BYTES = 32, 8
KEY_BYTES = TEXT_BYTES + CHECK_BYTES
BATCH = 512

logger = logging.getLogger(__name__)


@dataclass
class _Known:
    vector: asyncio.Future[Vector]
    waiting: int = 0


class CachedEmbedder:
    """Keeps the last `size` queries. The same query asked twice at once is embedded once."""

    def __init__(self, embedder: Embedder, size: int) -> None:
        self._embedder = embedder
        self._size = size
        self._known: OrderedDict[str, _Known] = OrderedDict()

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        known = self._known.get(text) or self._begin(text)
        self._known.move_to_end(text)
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return await self._vector(text, known)

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_passages(texts)

    def _begin(self, text: str) -> _Known:
        begun = _Known(asyncio.ensure_future(self._embedder.embed_query(text)))
        self._known[text] = begun
        begun.vector.add_done_callback(lambda _: self._forget_failure(text, begun))
        return begun

    async def _vector(self, text: str, known: _Known) -> Vector:
        """One caller giving up does not take the vector away from the others; the last one ends the work."""
        known.waiting += 1
        try:
            return await asyncio.shield(known.vector)
        finally:
            known.waiting -= 1
            if not known.waiting and not known.vector.done():
                known.vector.cancel()
                self._forget(text, known)

    def _forget_failure(self, text: str, done: _Known) -> None:
        if done.vector.cancelled() or done.vector.exception():
            self._forget(text, done)

    def _forget(self, text: str, known: _Known) -> None:
        if self._known.get(text) is known:
            del self._known[text]


def text_key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorStore:
    """Failing to write or to read is no error: the texts are embedded again."""

    def __init__(self, folder: Path, card: ModelCard) -> None:
        fingerprint = hashlib.sha256(json.dumps(asdict(card), sort_keys=True).encode()).hexdigest()[:16]
        self._keys = folder / f"{fingerprint}.keys"
        self._rows = folder / f"{fingerprint}.vectors"
        self._row_bytes = 4 * card.dimensions
        self._known = self._read()

    def recall(self, key: bytes) -> Vector | None:
        return self._known.get(key)

    def remember(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        self._known |= dict(zip(keys, vectors, strict=True))
        rows = [np.asarray(vector, dtype="<f4").tobytes() for vector in vectors]
        checked = b"".join(key + _check(row) for key, row in zip(keys, rows, strict=True))
        try:
            self._append(checked, b"".join(rows))
        except OSError as error:
            logger.warning("vectors cannot be kept", extra={"file": str(self._rows), "reason": str(error)})

    def _read(self) -> dict[bytes, Vector]:
        try:
            keys, rows = self._keys.read_bytes(), self._rows.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            logger.warning("vectors cannot be recalled", extra={"file": str(self._rows), "reason": str(error)})
            return {}
        known = {}
        for index in range(self._records(len(keys), len(rows))):
            key, row = _part(keys, index, KEY_BYTES), _part(rows, index, self._row_bytes)
            if key[TEXT_BYTES:] == _check(row):
                known[key[:TEXT_BYTES]] = np.frombuffer(row, dtype="<f4").astype(np.float32)
        return known

    def _append(self, keys: bytes, rows: bytes) -> None:
        """Behind the last record that has both parts; what is left of another is cut off."""
        self._keys.parent.mkdir(parents=True, exist_ok=True)
        with self._rows.open("ab") as row_file, self._keys.open("ab") as key_file:
            count = self._records(key_file.tell(), row_file.tell())
            for file, size, added in ((row_file, self._row_bytes, rows), (key_file, KEY_BYTES, keys)):
                file.truncate(count * size)
                file.write(added)

    def _records(self, key_bytes: int, row_bytes: int) -> int:
        return min(key_bytes // KEY_BYTES, row_bytes // self._row_bytes)


def _part(data: bytes, position: int, size: int) -> bytes:
    return data[position * size : (position + 1) * size]


def _check(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=CHECK_BYTES).digest()


class DiskCachedEmbedder:
    """Passages are embedded once and recalled ever after; queries are every time, for that time is measured."""

    def __init__(self, embedder: Embedder, store: VectorStore, on_progress: OnProgress = silent) -> None:
        self._embedder = embedder
        self._store = store
        self._on_progress = on_progress

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        keys = [text_key(text) for text in texts]
        await self._embed({key: text for key, text in zip(keys, texts, strict=True) if self._is_new(key)})
        vectors = np.empty((len(texts), self.model.dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            vectors[row] = self._store.recall(key)
        return vectors

    def _is_new(self, key: bytes) -> bool:
        return self._store.recall(key) is None

    async def _embed(self, missing: dict[bytes, str]) -> None:
        """Texts of like length go together, for a batch costs as much as its longest text."""
        order = sorted(missing, key=lambda key: len(missing[key]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            self._store.remember(batch, await self._embedder.embed_passages([missing[key] for key in batch]))
            self._on_progress(Progress("embed", start + len(batch), len(order)))
