"""Vectors of texts, remembered from run to run: a large catalog takes minutes to embed, and no time to recall.

Two files per model, which only grow. In one the SHA-256 of each text and a digest of its vector, in the other the
vectors, in the same order. A vector that does not fit its digest is not there: whoever died while writing or wrote
at the same time as another, costs an embedding and never gives a wrong one.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from toolscript.model.models import Matrix, ModelCard, Vector
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import Embedder

TEXT_BYTES, CHECK_BYTES = 32, 8
KEY_BYTES = TEXT_BYTES + CHECK_BYTES
BATCH = 512

logger = logging.getLogger(__name__)


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
        for at in range(self._records(len(keys), len(rows))):
            key, row = _part(keys, at, KEY_BYTES), _part(rows, at, self._row_bytes)
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


def _part(data: bytes, at: int, size: int) -> bytes:
    return data[at * size : (at + 1) * size]


def _check(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=CHECK_BYTES).digest()


class RememberingEmbedder:
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
