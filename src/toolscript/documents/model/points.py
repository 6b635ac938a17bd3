"""Points of a document index, its model and its versions, independent of the engine."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.auth.model import Tenant
from toolscript.core.chunking import CHUNKING_VERSION
from toolscript.core.retrieval.model import ModelCard, Terms, Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, FoundChunks
from toolscript.core.retrieval.terms import WORDS_VERSION
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS, Filters, Metadata


@dataclass(frozen=True)
class IndexedChunk:
    passage: TextChunk
    vector: Vector
    terms: Terms


@dataclass(frozen=True)
class IndexedDocument:
    """A document as it is indexed. `header.version` orders its states: an older one never replaces a newer one.

    `replaces` is the number of chunks it had before.
    """

    header: DocumentHeader
    metadata: Metadata
    passages: Sequence[IndexedChunk]
    replaces: int = 0


@dataclass(frozen=True)
class ChunkQuery:
    """One query to the retrievers. Without `vector` there is no dense retrieval, without `terms` no sparse one.

    `exact` scans every chunk of the tenant: the ground truth for the recall of the faster search. `with_content`
    lets the dense chunks bring along what is shown of them: for a small tenant that saves a request.
    """

    vector: Vector | None = None
    terms: Terms | None = None
    filters: Filters = NO_FILTERS
    limit: int = 100
    exact: bool = False
    with_content: bool = False


class HitContent(NamedTuple):
    """The content of hits: the headers of their documents, and the chunks that matched."""

    headers: Mapping[DocumentKey, DocumentHeader]
    passages: Mapping[ChunkId, TextChunk]


# Returns what is shown of these chunks, if a search has brought all of it along.
ReadContent = Callable[[Sequence[ChunkId]], HitContent | None]


def no_content(_ids: Sequence[ChunkId]) -> None:
    return None


@dataclass(frozen=True)
class FoundWithContent(FoundChunks):
    content: ReadContent = no_content


@dataclass(frozen=True)
class TermStatistics:
    """Document frequencies of terms among the chunks of one tenant, never of others.

    Counted in `sample` of its chunks, or in all if there are few. `terms` holds the terms of at least two chunks,
    sorted; `counts` holds how many chunks have each.
    """

    sample: int
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def of_chunks(cls, chunks: Sequence[Sequence[int]]) -> "TermStatistics":
        """Count the distinct terms of each chunk."""
        listed = [np.asarray(terms, dtype=np.uint32) for terms in chunks]
        terms, counts = np.unique(np.concatenate([np.empty(0, np.uint32), *listed]), return_counts=True)
        common = counts > 1
        return cls(len(chunks), terms[common], counts[common].astype(np.uint32))

    def count(self, term: int) -> int:
        """Return how many chunks have the term. A term missing from the sample counts as 1."""
        position = int(np.searchsorted(self.terms, term))
        return int(self.counts[position]) if position < len(self.terms) and self.terms[position] == term else 1

    def idf(self, term: int) -> float:
        """Return the IDF as in BM25. It is above zero even without statistics."""
        count = self.count(term)
        return math.log(1 + (max(self.sample, count) - count + 0.5) / (count + 0.5))


@dataclass(frozen=True)
class DocumentCard:
    """The origin of vectors and terms: with equal cards they are interchangeable."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    passages_version: int = CHUNKING_VERSION

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
    """How far a version is filled: up to this document of this tenant, ordered by tenant name and key."""

    tenant: str = ""
    key: DocumentKey = ""
    done: bool = False


@dataclass(frozen=True)
class DocumentVersion:
    """`name` is the name of its collection."""

    name: str
    state: VersionState
    position: FillPosition = FillPosition()


@dataclass(frozen=True)
class DocumentChange:
    """A document that was written in `source` and may differ in `target`. Revisions follow the order of writes."""

    target: str
    source: str
    tenant: Tenant
    key: DocumentKey
    revision: int
