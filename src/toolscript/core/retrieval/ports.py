"""Ports of retrieval: embedder, index, reranker, spans."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, runtime_checkable

from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import (
    Candidates,
    Fields,
    IndexCard,
    IndexOrigin,
    IndexQuery,
    Matrix,
    ModelCard,
    Point,
    PointVersion,
    StoredPoint,
    Vector,
)
from toolscript.core.retrieval.spelling import Vocabulary


class Reranker(Protocol):
    """Scores a few candidates, each together with the query."""

    @property
    def name(self) -> str: ...
    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each passage; higher is better."""


class Spans(Protocol):
    """Opens spans for tracing."""

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]: ...


class Embedder(Protocol):
    """Embeds text as unit vectors. Never blocks the event loop."""

    @property
    def model(self) -> ModelCard: ...
    async def embed_query(self, text: str) -> Vector: ...
    async def embed_texts(self, texts: Sequence[str]) -> Matrix: ...


@runtime_checkable
class GroupedEmbedder(Embedder, Protocol):
    """Keeps the vectors of queries, apart for each group of clients: none can tell what another one has sent."""

    def within(self, group: Hashable) -> Embedder: ...


class IndexReader(Protocol):
    """What a search asks of an index."""

    @property
    def card(self) -> IndexCard: ...
    async def search(self, ask: IndexQuery) -> Candidates: ...
    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Run several queries in one request and return their results in order: all of them or none."""

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        """Return the payloads of the points that still exist, whole or only these fields."""

    async def vocabulary(self) -> Vocabulary:
        """Return the words of names, servers and descriptions, of a sample of the points."""


class Index(IndexReader, Protocol):
    """A collection of points, built by one model in one layout."""

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        """Return the IDF of each term over all points, estimated from a sample."""

    async def put(self, points: Sequence[Point]) -> None:
        """Store the points, except where a newer version exists."""

    async def remove(self, points: Sequence[PointVersion]) -> None:
        """Remove the points, except where a newer version exists."""

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """Return the next points in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...
    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        """Return all points; None if there are more than `maximum`."""


class IndexViews(Protocol):
    """An index version, of which a search sees some namespaces."""

    @property
    def card(self) -> IndexCard: ...
    def within(self, namespaces: tuple[str, ...]) -> IndexReader:
        """Return the index of these namespaces only. One without points is empty, not an error."""


class Indexes(Protocol):
    """The index versions of an engine, by fingerprint; one of them is live.

    An index version has a collection for each namespace, so that no search reads points, statistics or a graph of
    another one. `size`, `loading`, `make_live` and `drop` treat all of them together.
    """

    async def namespaces(self, card: IndexCard) -> Sequence[str]:
        """Return the namespaces that have a collection, in order of name."""

    async def live(self) -> str | None: ...
    async def origin(self) -> IndexOrigin | None:
        """Return the model of the live index version; None if none is live."""

    async def size(self, card: IndexCard) -> int | None:
        """Return the number of points of this index version; None if it does not exist."""

    async def create(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> None:
        """Create the collection unless it exists."""

    async def open(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> Index:
        """Open the collection; raise if it is absent or records another identity."""

    def loading(self, card: IndexCard) -> AbstractAsyncContextManager[None]:
        """Bulk-load points: the engine builds its index once, at the end, and is then ready."""

    async def make_live(self, fingerprint: str) -> None: ...
    async def drop(self, fingerprint: str) -> None:
        """Remove the collection if it exists."""


class VectorCache(Protocol):
    """A persistent cache of vectors, by the hash of their source. Failing to store is no error."""

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]: ...
    def remember(self, tools: Mapping[str, tuple[str, Vector]], absent: Collection[str] = ()) -> None:
        """Store the hash and vector of each tool, by name; of other tools keep only those of absent servers."""
