"""What goes into an index of documents and what comes out of it, in no engine's words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolscript.model.documents import DocumentHeader, DocumentKey, Passage
from toolscript.model.filters import NO_FILTERS, Filters, Metadata
from toolscript.model.index import Terms
from toolscript.model.models import Vector


@dataclass(frozen=True)
class IndexedPassage:
    passage: Passage
    vector: Vector
    terms: Terms


@dataclass(frozen=True)
class IndexedDocument:
    """A document as it is indexed. `header.version` is that of this state: an older never replaces a newer."""

    header: DocumentHeader
    metadata: Metadata
    passages: Sequence[IndexedPassage]


class PassageId(NamedTuple):
    key: DocumentKey
    number: int


class FoundPassage(NamedTuple):
    id: PassageId
    score: float


@dataclass(frozen=True)
class PassageAsk:
    """One question to the arms. An arm that is not given is not asked. `only`: among these documents."""

    vector: Vector | None = None
    terms: Terms | None = None
    filters: Filters = NO_FILTERS
    limit: int = 100
    only: tuple[DocumentKey, ...] = ()
    exact: bool = False


@dataclass(frozen=True)
class FoundPassages:
    """The best of each arm, best first; None: that arm was not asked."""

    dense: Sequence[FoundPassage] | None = None
    words: Sequence[FoundPassage] | None = None


@dataclass(frozen=True)
class WordStatistics:
    """How common words are among one tenant's passages, and nobody else's.

    Taken from `sample` passages of them, all of them if they are few: `counts` of a term are how many have it.
    """

    sample: int = 0
    counts: Mapping[int, int] = field(default_factory=dict)

    def rarity(self, term: int) -> float:
        """As in BM25. A term that the sample lacks is as rare as one that half a passage of it has."""
        having = max(self.counts.get(term, 0), 0.5)
        return math.log(1 + (self.sample - having + 0.5) / (having + 0.5)) if self.sample else 0.0
