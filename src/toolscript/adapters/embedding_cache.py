"""An embedder that remembers the queries it has seen, to the letter."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from toolscript.model.models import Matrix, ModelCard, Vector
from toolscript.ports import Embedder


class CachedEmbedder:
    """Keeps the last `size` queries. The same query asked twice at once is embedded once."""

    def __init__(self, embedder: Embedder, size: int) -> None:
        self._embedder = embedder
        self._size = size
        self._known: OrderedDict[str, asyncio.Future[Vector]] = OrderedDict()

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        known = self._known.get(text) or self._begin(text)
        self._known.move_to_end(text)
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        # One caller giving up must not take the vector away from the others.
        return await asyncio.shield(known)

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_passages(texts)

    def _begin(self, text: str) -> asyncio.Future[Vector]:
        begun = asyncio.ensure_future(self._embedder.embed_query(text))
        self._known[text] = begun
        begun.add_done_callback(lambda done: self._forget_failure(text, done))
        return begun

    def _forget_failure(self, text: str, done: asyncio.Future[Vector]) -> None:
        if (done.cancelled() or done.exception()) and self._known.get(text) is done:
            del self._known[text]
