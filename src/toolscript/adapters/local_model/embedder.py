"""A local model behind the port: on threads of its own, never more work than it can take."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from toolscript.adapters.local_model.engine import Device, Loaded
from toolscript.errors import EmbedderRejected, EmbedderUnavailable, ModelNotFound, SetupError
from toolscript.model.models import Matrix, ModelCard, Vector, checked_vectors

BATCH = 32


class LocalEmbedder:
    """`parallel` texts or batches at once, `threads` cores for each. `downloads`: where named models are kept."""

    def __init__(
        self,
        model: str,
        *,
        threads: int | None = None,
        parallel: int = 1,
        most_waiting: int = 256,
        device: Device = Device.AUTO,
        downloads: Path | None = None,
    ) -> None:
        loaded = _load(model, threads, device, downloads)
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
            return self._engine.embed(encodable)
        except Exception as error:
            raise EmbedderRejected(f"{self._card.name} failed: {error}") from error


def _load(model: str, threads: int | None, device: Device, downloads: Path | None) -> Loaded:
    # Imported when it is known which one is needed: fastembed takes two seconds to import.
    folder = Path(model).expanduser()
    try:
        if folder.is_dir():
            from toolscript.adapters.local_model.folder import load_folder

            return load_folder(folder, threads, device)
        from toolscript.adapters.local_model.named import load_named

        return load_named(model, threads, device, downloads)
    except SetupError:
        raise
    except Exception as error:
        raise ModelNotFound(
            f"the embedding model {model} cannot be loaded: {error}",
            hint="give the folder of an ONNX model, or a name this machine has or can download",
        ) from error
