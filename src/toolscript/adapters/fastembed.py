"""Embeddings in this process with ONNX models, from a model name or a folder."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from toolscript.errors import EmbedderRejected, EmbedderUnavailable, ModelNotFound
from toolscript.model.models import Matrix, ModelCard, Vector, checked_vectors

MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx", "model_quantized.onnx")
BATCH = 32

# What a model family wants to see before a query and before a passage.
PREFIXES = {
    "bge-": ("Represent this sentence for searching relevant passages: ", ""),
    "e5-": ("query: ", "passage: "),
}


@dataclass(frozen=True)
class _Loaded:
    engine: TextEmbedding
    card: ModelCard


class FastEmbedder:
    """Runs the model on threads of its own; `parallel` texts or batches at once, `threads` cores for each."""

    def __init__(
        self, model: str, *, threads: int | None = None, parallel: int = 1, most_waiting: int = 256
    ) -> None:
        loaded = _load(model, threads)
        self._engine = loaded.engine
        self._card = loaded.card
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="embed")
        self._places = asyncio.Semaphore(most_waiting)

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        vectors = await self._run([self._card.query_prefix + text])
        return np.asarray(vectors[0])

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Texts of like length go together: a batch costs as much as its longest text."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        vectors = np.empty((len(texts), self._card.dimensions), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors[batch] = await self._run([self._card.passage_prefix + texts[at] for at in batch])
        return vectors

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, texts: list[str]) -> Matrix:
        if self._places.locked():
            raise EmbedderUnavailable(f"{self._card.name} has too much to do", hint="try again in a moment")
        loop = asyncio.get_running_loop()
        try:
            async with self._places:
                vectors = await loop.run_in_executor(self._pool, self._embed, texts)
        except RuntimeError as error:
            raise EmbedderUnavailable(f"{self._card.name} has been shut down") from error
        return checked_vectors(vectors, len(texts), self._card)

    def _embed(self, texts: list[str]) -> Matrix:
        # A lone surrogate is legal in a JSON request, and the tokenizer takes none.
        encodable = [text.encode("utf-8", "replace").decode() for text in texts]
        try:
            return np.stack(list(self._engine.embed(encodable, batch_size=BATCH))).astype(np.float32)
        except Exception as error:
            raise EmbedderRejected(f"{self._card.name} failed: {error}") from error


def _load(model: str, threads: int | None) -> _Loaded:
    folder = Path(model).expanduser()
    try:
        return _load_folder(folder, threads) if folder.is_dir() else _load_named(model, threads)
    except ModelNotFound:
        raise
    except Exception as error:
        known = sorted(described["model"] for described in TextEmbedding.list_supported_models())
        raise ModelNotFound(
            f"the embedding model {model} cannot be loaded: {error}",
            hint="give the folder of an ONNX model, or a name this machine has or can download; "
            "`sentence-transformers/all-MiniLM-L6-v2` is the default",
            details={"known_models": known},
        ) from error


def _load_named(model: str, threads: int | None) -> _Loaded:
    try:
        engine = TextEmbedding(model, threads=threads, local_files_only=True)
    except ValueError as error:
        if "not supported" in str(error):
            raise
        engine = TextEmbedding(model, threads=threads)
    inner = engine.model
    path = Path(inner._model_dir) / inner.model_description.model_file  # type: ignore[attr-defined]  # noqa: SLF001
    query, passage = _prefixes(model)
    card = ModelCard(model, _digest(path), engine.embedding_size, type(inner).__name__, query, passage)
    return _Loaded(engine, card)


def _load_folder(folder: Path, threads: int | None) -> _Loaded:
    """Any sentence-transformers model as ONNX. Its name is the folder's own: paths differ between machines."""
    file = next((name for name in MODEL_FILES if (folder / name).is_file()), None)
    if file is None:
        raise ModelNotFound(
            f"{folder} holds no ONNX model", hint=f"expected one of {', '.join(MODEL_FILES)} in it"
        )
    revision = _digest(folder / file)
    pooling = _pooling(folder)
    size = int(json.loads((folder / "config.json").read_text())["hidden_size"])
    name = f"toolscript-local/{folder.name}-{revision}"
    if name not in {str(known["model"]) for known in TextEmbedding.list_supported_models()}:
        TextEmbedding.add_custom_model(
            name, pooling, normalization=True, sources=ModelSource(hf=name), dim=size, model_file=file
        )
    engine = TextEmbedding(name, specific_model_path=str(folder), local_files_only=True, threads=threads)
    query, passage = _prefixes(folder.name)
    return _Loaded(engine, ModelCard(folder.name, revision, size, pooling.value.lower(), query, passage))


def _pooling(folder: Path) -> PoolingType:
    described = folder / "1_Pooling" / "config.json"
    if described.is_file():
        config = json.loads(described.read_text())
        return PoolingType.CLS if config.get("pooling_mode_cls_token") else PoolingType.MEAN
    return PoolingType.CLS if "bge-" in folder.name.lower() else PoolingType.MEAN


def _prefixes(name: str) -> tuple[str, str]:
    return next((pair for family, pair in PREFIXES.items() if family in name.lower()), ("", ""))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
