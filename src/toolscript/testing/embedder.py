"""An embedder without a model: texts that share words get vectors that are alike."""

import hashlib
from collections.abc import Sequence

import numpy as np

from toolscript.model.models import Matrix, ModelCard, Vector
from toolscript.model.words import terms_of_word, words_of


class HashEmbedder:
    """Each word's stem is a fixed direction; a text is their sum. Counts what it was asked for."""

    def __init__(self, name: str = "hash", dimensions: int = 64) -> None:
        self._card = ModelCard(name=name, revision="1", dimensions=dimensions)
        self._directions: dict[int, Vector] = {}
        self.queries_embedded = 0
        self.passages_embedded = 0

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        self.queries_embedded += 1
        return self._embed(text)

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.passages_embedded += len(texts)
        vectors = [self._embed(text) for text in texts]
        return np.stack(vectors) if vectors else np.empty((0, self._card.dimensions), np.float32)

    def _embed(self, text: str) -> Vector:
        total = sum(
            (self._direction(terms_of_word(word)[0]) for word in words_of(text)), self._direction(0) * 0.01
        )
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)

    def _direction(self, term: int) -> Vector:
        if term not in self._directions:
            seed = hashlib.sha256(f"{self._card.name}:{term}".encode()).digest()[:8]
            generator = np.random.default_rng(int.from_bytes(seed, "little"))
            self._directions[term] = generator.standard_normal(self._card.dimensions).astype(np.float32)
        return self._directions[term]
