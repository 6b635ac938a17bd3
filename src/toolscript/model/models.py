"""Which embedding model made a vector, and which layout an index has: vectors of two never meet."""

import hashlib
import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.errors import EmbedderRejected
from toolscript.model.item_text import ITEM_TEXT_VERSION
from toolscript.model.words import WORDS_VERSION

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class ModelCard:
    """All that decides what vector a text gets."""

    name: str
    revision: str
    dimensions: int
    pooling: str = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True)
class IndexCard:
    """What an index was built with. Equal cards, interchangeable vectors and words."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    text_version: int = ITEM_TEXT_VERSION

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class IndexOrigin:
    """Which model made a collection. `source` says how it is loaded; empty: nobody recorded it."""

    collection: str
    model: ModelCard
    source: str = ""


def checked_vectors(vectors: Matrix, count: int, card: ModelCard) -> Matrix:
    """The vectors, unit length; refused when missing, of the wrong size, not finite or zero."""
    if vectors.shape != (count, card.dimensions):
        raise EmbedderRejected(
            f"{card.name} gave vectors of shape {vectors.shape}, expected {(count, card.dimensions)}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths < 1e-9).any():
        raise EmbedderRejected(f"{card.name} gave a vector that is zero or not finite")
    return np.asarray(vectors / lengths, dtype=np.float32)
