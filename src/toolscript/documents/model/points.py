"""Points of an index of documents, its model and its versions, in no engine's words."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.auth.model import Tenant
from toolscript.core.chunking import PASSAGES_VERSION
from toolscript.core.retrieval.model import ModelCard, Terms, Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.retrieval.terms import WORDS_VERSION
from toolscript.core.text import Passage
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS, Filters, Metadata


@dataclass(frozen=True)
class IndexedChunk:
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
    passages: Sequence[IndexedChunk]
    replaces: int = 0


@dataclass(frozen=True)
class ChunkQuery:
    """One question to the arms. An arm that is not given is not asked.

    `exact` looks at every passage of the tenant: the truth that a faster way is measured against.
    """

    vector: Vector | None = None
    terms: Terms | None = None
    filters: Filters = NO_FILTERS
    limit: int = 100
    exact: bool = False


class ShownChunks(NamedTuple):
    """What is shown of a hit: its document's header, and of the document the passage that was found."""

    headers: Mapping[DocumentKey, DocumentHeader]
    passages: Mapping[ChunkId, Passage]


@dataclass(frozen=True)
class TermStatistics:
    """How common words are among one tenant's passages, and nobody else's.

    Taken from `sample` passages of them, all of them if they are few. `terms` are those that at least two of them
    have, in order, `counts` how many have each.
    """

    sample: int
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def of_passages(cls, passages: Sequence[Sequence[int]]) -> "TermStatistics":
        """Of the terms that each passage has, each once."""
        listed = [np.asarray(terms, dtype=np.uint32) for terms in passages]
        terms, counts = np.unique(np.concatenate([np.empty(0, np.uint32), *listed]), return_counts=True)
        common = counts > 1
        return cls(len(passages), terms[common], counts[common].astype(np.uint32))

    def count(self, term: int) -> int:
        """A term that the sample lacks counts as one that a single passage has: there, it is as rare."""
        at = int(np.searchsorted(self.terms, term))
        return int(self.counts[at]) if at < len(self.terms) and self.terms[at] == term else 1

    def idf(self, term: int) -> float:
        """As in BM25. Above zero, also while nothing is known yet."""
        having = self.count(term)
        return math.log(1 + (max(self.sample, having) - having + 0.5) / (having + 0.5))


@dataclass(frozen=True)
class DocumentCard:
    """Equal cards, interchangeable vectors and words."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    passages_version: int = PASSAGES_VERSION

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


class VersionState(StrEnum):
    BUILDING = "building"
    LIVE = "live"
    PREVIOUS = "previous"


@dataclass(frozen=True)
class FillPosition:
    """How far a version is filled: up to this document of this tenant, in the order of names and keys."""

    tenant: str = ""
    key: DocumentKey = ""
    done: bool = False


@dataclass(frozen=True)
class DocumentVersion:
    """`name` is that of its collection."""

    name: str
    state: VersionState
    position: FillPosition = FillPosition()


@dataclass(frozen=True)
class DocumentChange:
    """A document that was written in `source` and may differ in `target`. Revisions are in the order of writes."""

    target: str
    source: str
    tenant: Tenant
    key: DocumentKey
    revision: int
