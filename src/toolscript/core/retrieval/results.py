"""Chunks that retrievers found, and the total number of matches."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

# The key of a document, unique in its engine: 12 bytes of a hash of tenant and id, as 24 letters.
DocumentKey = str


class ChunkId(NamedTuple):
    key: DocumentKey
    number: int


class FoundChunk(NamedTuple):
    id: ChunkId
    score: float


@dataclass(frozen=True)
class FoundChunks:
    """The best chunks of each retriever, best first, ties by id; None if it was not used.

    Which of several tied chunks fall within the limit is unspecified.
    """

    dense: Sequence[FoundChunk] | None = None
    words: Sequence[FoundChunk] | None = None


class Exactness(StrEnum):
    """Whether a count is exact, a lower bound or an estimate."""

    EXACT = "exact"
    AT_LEAST = "at_least"
    ABOUT = "about"


@dataclass(frozen=True)
class Total:
    """How many documents match a search in total."""

    value: int
    exactness: Exactness = Exactness.EXACT
