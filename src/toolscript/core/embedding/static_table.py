"""The built-in embedder: a table with a vector for each token, which comes with the package.

It needs NumPy alone. A text is the sum of its tokens' vectors, the first ones counting more, so
word order is lost, but a query takes a fraction of a millisecond, and there is nothing to download.
`scripts/build-table` makes the table.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolscript.core.embedding.wordpiece import WordPiece
from toolscript.core.errors import ModelNotFound
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector, checked_vectors

# The name of this model in settings and answers.
BUILTIN = "builtin"
FOLDER = Path(__file__).with_name(BUILTIN)
TABLE_FILE, SCALES_FILE, TOKENIZER_FILE, CARD_FILE = "table.npy", "scales.npy", "tokenizer.json", "card.json"

MAX_TOKENS = 256
# A long description begins with what the tool does: the 33rd token counts .6 of the first, the 256th .2.
POSITION_WEIGHTS = ((1 + np.arange(MAX_TOKENS) / 32) ** -0.75).astype(np.float32)
# More letters than that many tokens have, except in texts without words.
MAX_LETTERS = 4_000
# A longer text is embedded on a thread: the event loop is not to wait for it.
SHORT_TEXT = 1_000
BATCH = 64


class StaticEmbedder:
    """Embeds with the table in `folder`, which is mapped into memory and shared by all processes."""

    def __init__(self, folder: Path = FOLDER) -> None:
        try:
            self._tokenizer = WordPiece(folder / TOKENIZER_FILE)
            self._table: NDArray[np.uint8] = np.load(folder / TABLE_FILE, mmap_mode="r")
            self._scales: NDArray[np.float16] = np.load(folder / SCALES_FILE)
            described = json.loads((folder / CARD_FILE).read_text("utf-8"))
            self._card = ModelCard(
                BUILTIN, str(described["sha256"])[:16], int(described["dimensions"]), "weighted sum"
            )
        except Exception as error:
            raise ModelNotFound(
                f"the built-in model cannot be loaded: {error}", hint="install the package again"
            ) from error

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        embed = self._embed([text]) if len(text) <= SHORT_TEXT else await asyncio.to_thread(self._embed, [text])
        return np.asarray(embed[0])

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = [await asyncio.to_thread(self._embed, batch) for batch in batches]
        return np.concatenate(vectors) if vectors else np.empty((0, self._card.dimensions), np.float32)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        sums = np.array([self._sum(self._tokens(text)) for text in texts])
        return checked_vectors(sums, len(texts), self._card)

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer.tokens(text[:MAX_LETTERS], MAX_TOKENS) or [self._tokenizer.unknown]

    def _sum(self, tokens: list[int]) -> Vector:
        return np.asarray(POSITION_WEIGHTS[: len(tokens)] @ self._rows(tokens))

    def _rows(self, tokens: list[int]) -> Matrix:
        """Return the vectors of these tokens. A byte holds two numbers from -7 to 7, each plus 8."""
        packed = self._table[tokens]
        numbers = np.empty((len(tokens), 2 * packed.shape[1]), np.float32)
        numbers[:, 0::2], numbers[:, 1::2] = packed >> 4, packed & 15
        return (numbers - 8) * self._scales[tokens, np.newaxis].astype(np.float32)
