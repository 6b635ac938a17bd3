"""An embedder that remembers the queries it has seen, to the letter."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.models import Matrix, ModelCard, Vector
from toolscript.ports import Embedder


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
