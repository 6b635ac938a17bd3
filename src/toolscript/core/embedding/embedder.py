"""A local embedding model behind the port: it runs on its own threads, with a limit on waiting work.

A request embeds several short texts at once. They go to one thread together, one after the other: crossing to a
thread and back costs a fifth of embedding a text, and a padded batch costs more than its texts one by one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from toolscript.core.embedding.download_failures import model_folder
from toolscript.core.embedding.engine import CPU_PROVIDER, Device, EncodedText, Loaded, TokenCounter, providers_for
from toolscript.core.embedding.model_runtime import require_runtime
from toolscript.core.errors import EmbedderRejected, EmbedderUnavailable, ModelNotFound, SetupError
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector, checked_vectors
from toolscript.core.values import OnProgress, silent

BATCH = 32
# Texts of requests, or batches of texts, that go to the model's thread together.
TOGETHER = 4
# Tokens of a batch, padding included. On a CPU a large batch costs more than its texts one by one, and a batch of
# a few short texts less; a GPU wants large ones.
CPU_TOKENS, GPU_TOKENS = 192, 16_384
# Texts that are encoded and ordered by length together: requests wait meanwhile.
WINDOW = 256

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class _PendingText:
    text: str
    vector: "asyncio.Future[Vector]"


class LocalEmbedder:
    """Embeds `parallel` texts or batches at once on `threads` cores each. Models are stored in `downloads`."""

    def __init__(
        self,
        model: str,
        *,
        threads: int | None = None,
        parallel: int = 1,
        max_waiting: int = 256,
        device: Device = Device.AUTO,
        downloads: Path | None = None,
        on_progress: OnProgress = silent,
    ) -> None:
        loaded = load_model(model, threads, device, downloads, on_progress)
        self._engine = loaded.engine
        self._card = loaded.card
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="embed")
        self._places = asyncio.Semaphore(max_waiting)
        self._pending: list[_PendingText] = []
        self._counter: TokenCounter | None = None
        max_tokens = CPU_TOKENS if providers_for(device) == [CPU_PROVIDER] else GPU_TOKENS
        # A text has one vector, whatever is embedded with it.
        self._max_tokens = 0 if loaded.mixes_batches else max_tokens

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        async with self._place():
            vector = await self._embed_soon(self._card.query_prefix + text)
        return np.asarray(checked_vectors(vector[np.newaxis], 1, self._card)[0])

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        """Embed texts with about as many tokens together: each costs as much as the longest of its batch."""
        vectors = np.empty((len(texts), self._card.dimensions), dtype=np.float32)
        for start in range(0, len(texts), WINDOW):
            window = await self._run(
                self._encode, [self._card.passage_prefix + text for text in texts[start : start + WINDOW]]
            )
            filled = list(batches([text.tokens for text in window], self._max_tokens))
            for first in range(0, len(filled), TOGETHER):
                places = filled[first : first + TOGETHER]
                embedded = await self._run(
                    self._embed_all, [[window[place] for place in batch] for batch in places]
                )
                rows = np.concatenate(places) + start
                vectors[rows] = checked_vectors(embedded, len(rows), self._card)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Count on the caller's own thread: the tokenizer is fast and does not run the model."""
        self._counter = self._counter or self._engine.token_counter()
        return self._counter(text)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[A], T], given: A) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with self._place():
                return await loop.run_in_executor(self._pool, work, given)
        except RuntimeError as error:
            raise self._shut_down() from error

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._places.locked():
            raise EmbedderUnavailable(f"{self._card.name} is overloaded", hint="try again in a moment")
        async with self._places:
            yield

    def _shut_down(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"{self._card.name} has been shut down")

    def _embed_soon(self, text: str) -> "asyncio.Future[Vector]":
        loop = asyncio.get_running_loop()
        pending_text = _PendingText(text, loop.create_future())
        if not self._pending:
            loop.call_soon(self._send_all)
        self._pending.append(pending_text)
        return pending_text.vector

    def _send_all(self) -> None:
        waiting, self._pending = self._pending, []
        for start in range(0, len(waiting), TOGETHER):
            self._send(waiting[start : start + TOGETHER])

    def _send(self, together: list[_PendingText]) -> None:
        loop = asyncio.get_running_loop()
        try:
            work = self._pool.submit(self._embed_each, together)
        except RuntimeError:
            _settle(together, [self._shut_down()] * len(together))
            return
        work.add_done_callback(lambda done: _deliver(loop, together, done))

    def _embed_each(self, together: list[_PendingText]) -> list[Vector | Exception]:
        """Embed each text, except those whose request was cancelled."""
        return [
            EmbedderUnavailable("cancelled") if text.vector.cancelled() else self._embed_or_error(text.text)
            for text in together
        ]

    def _embed_or_error(self, text: str) -> Vector | Exception:
        try:
            return np.asarray(self._embed_all([self._encode([text])])[0])
        except EmbedderRejected as error:
            return error

    def _encode(self, texts: Sequence[str]) -> list[EncodedText]:
        # A lone surrogate is legal in a JSON request, but the tokenizer rejects it.
        encodable = [text.encode("utf-8", "replace").decode() for text in texts]
        with self._failures():
            return self._engine.encode(encodable)

    def _embed_all(self, together: Sequence[Sequence[EncodedText]]) -> Matrix:
        with self._failures():
            return np.concatenate([self._engine.embed_encoded(batch) for batch in together])

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise EmbedderRejected(f"{self._card.name} failed: {error}") from error


def batches(tokens: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield the places of texts in batches, the shortest first; a text with more tokens is a batch of its own."""
    batch: list[int] = []
    for place in sorted(range(len(tokens)), key=tokens.__getitem__):
        if len(batch) == BATCH or (batch and (len(batch) + 1) * tokens[place] > max_tokens):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _deliver(
    loop: asyncio.AbstractEventLoop, together: list[_PendingText], done: "Future[list[Vector | Exception]]"
) -> None:
    results: list[Vector | Exception]
    results = [EmbedderUnavailable("shut down")] * len(together) if done.cancelled() else done.result()
    # Once the loop is closed, the result has no receiver.
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, together, results)


def _settle(together: list[_PendingText], results: Sequence[Vector | Exception]) -> None:
    for text, result in zip(together, results, strict=True):
        if text.vector.done():
            continue
        if isinstance(result, Exception):
            text.vector.set_exception(result)
        else:
            text.vector.set_result(result)


def load_model(
    model: str, threads: int | None, device: Device, downloads: Path | None, on_progress: OnProgress
) -> Loaded:
    require_runtime(model)
    # Imported only when needed: fastembed takes two seconds to import.
    folder = model_folder(model)
    try:
        if folder is not None:
            from toolscript.core.embedding.local_folder import load_folder

            return load_folder(folder, threads, device)
        from toolscript.core.embedding.fastembed_models import load_named

        return load_named(model, threads, device, downloads, on_progress)
    except SetupError:
        raise
    except Exception as error:
        raise ModelNotFound(
            f"the embedding model {model} cannot be loaded: {error}",
            hint="give the folder of an ONNX model, or a name this machine has or can download",
        ) from error
