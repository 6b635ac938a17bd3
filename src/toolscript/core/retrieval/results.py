"""Chunks that retrievers found, and how many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

# What a document is known by among all of its engine: 12 bytes of tenant and id together, as 24 letters.
DocumentKey = str


class ChunkId(NamedTuple):
    key: DocumentKey
    number: int


class FoundChunk(NamedTuple):
    id: ChunkId
    score: float


@dataclass(frozen=True)
class FoundChunks:
    """The best of each arm, best first, equal ones in the order of their ids; None: that arm was not asked.

    Which of several equal ones are within the limit is left open.
    """

    dense: Sequence[FoundChunk] | None = None
    words: Sequence[FoundChunk] | None = None


class Exactness(StrEnum):
    EXACT = "exact"
    AT_LEAST = "at_least"
    ABOUT = "about"


@dataclass(frozen=True)
class Total:
    """How many documents a search would give if it were asked for all."""

    value: int
    exactness: Exactness = Exactness.EXACT
