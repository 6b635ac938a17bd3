"""What goes into an index of documents and what comes out of it, in no engine's words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """A document as it is indexed. `header.version` is that of this state: an older never replaces a newer.

    `replaces` is how many passages it had before.
    """

    header: DocumentHeader
    metadata: Metadata
    passages: Sequence[IndexedPassage]
    replaces: int = 0


class PassageId(NamedTuple):
    key: DocumentKey
    number: int


class FoundPassage(NamedTuple):
    id: PassageId
    score: float


@dataclass(frozen=True)
class PassageAsk:
    """One question to the arms. An arm that is not given is not asked.

    `exact` looks at every passage of the tenant: the truth that a faster way is measured against.
    """

    vector: Vector | None = None
    terms: Terms | None = None
    filters: Filters = NO_FILTERS
    limit: int = 100
    exact: bool = False


@dataclass(frozen=True)
class FoundPassages:
    """The best of each arm, best first, equal ones in the order of their ids; None: that arm was not asked.

    Which of several equal ones are within the limit is left open.
    """

    dense: Sequence[FoundPassage] | None = None
    words: Sequence[FoundPassage] | None = None


class ShownPassages(NamedTuple):
    """What is shown of a hit: its document's header, and of the document the passage that was found."""

    headers: Mapping[DocumentKey, DocumentHeader]
    passages: Mapping[PassageId, Passage]


@dataclass(frozen=True)
class WordStatistics:
    """How common words are among one tenant's passages, and nobody else's.

    Taken from `sample` passages of them, all of them if they are few. `terms` are those that at least two of them
    have, in order, `counts` how many have each.
    """

    sample: int
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def of_passages(cls, passages: Sequence[Sequence[int]]) -> "WordStatistics":
        """Of the terms that each passage has, each once."""
        listed = [np.asarray(terms, dtype=np.uint32) for terms in passages]
        terms, counts = np.unique(np.concatenate([np.empty(0, np.uint32), *listed]), return_counts=True)
        common = counts > 1
        return cls(len(passages), terms[common], counts[common].astype(np.uint32))

    def count(self, term: int) -> int:
        """A term that the sample lacks counts as one that a single passage has: there, it is as rare."""
        at = int(np.searchsorted(self.terms, term))
        return int(self.counts[at]) if at < len(self.terms) and self.terms[at] == term else 1

    def rarity(self, term: int) -> float:
        """As in BM25. Above zero, also while nothing is known yet."""
        having = self.count(term)
        return math.log(1 + (max(self.sample, having) - having + 0.5) / (having + 0.5))
