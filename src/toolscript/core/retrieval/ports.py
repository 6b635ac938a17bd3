"""Ports of retrieval: embedder, index, reranker, spans."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from toolscript.core.retrieval.model import (
    Ask,
    Candidates,
    Fields,
    IndexCard,
    IndexOrigin,
    KeptPoint,
    Matrix,
    ModelCard,
    Point,
    PointVersion,
    Vector,
)


class Reranker(Protocol):
    """Looks at a few candidates once more, each with the query."""

    @property
    def name(self) -> str: ...
    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """One score a passage, higher is better, 0 to 1."""


class Spans(Protocol):
    """Says what is being done, to whoever traces it."""

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]: ...


class Embedder(Protocol):
    """Text to unit vectors. Never blocks the event loop."""

    @property
    def model(self) -> ModelCard: ...
    async def embed_query(self, text: str) -> Vector: ...
    async def embed_passages(self, texts: Sequence[str]) -> Matrix: ...


class Index(Protocol):
    """One collection of points, made by one model in one layout."""

    @property
    def card(self) -> IndexCard: ...
    async def search(self, ask: Ask) -> Candidates: ...
    async def search_all(self, asks: Sequence[Ask]) -> Sequence[Candidates]:
        """Several questions in one go, answered in order: all of them or none."""

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        """How much each of these terms says among all points, as far as a sample of them can tell."""

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        """What the points carry, all of it or only some fields, for those that are still there."""

    async def put(self, points: Sequence[Point]) -> None:
        """Stores the points, except where a newer version of one is already there."""

    async def remove(self, points: Sequence[PointVersion]) -> None:
        """Removes the points, except where a newer version of one is there."""

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """The next points in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...
    async def whole(self, maximum: int) -> Sequence[KeptPoint] | None:
        """Every point there is; None where they are more than so many."""


class Indexes(Protocol):
    """The collections an engine holds, by the fingerprint of their card; one of them is live."""

    async def live(self) -> str | None: ...
    async def origin(self) -> IndexOrigin | None:
        """Which model made the live one; None where none is live."""

    async def size(self, card: IndexCard) -> int | None:
        """How many points the collection of this card has; None where there is none."""

    async def create(self, card: IndexCard) -> None:
        """Makes the collection unless it is there."""

    async def open(self, card: IndexCard) -> Index:
        """The collection of this card; refused when it is absent or says it was made with another."""

    def loading(self, card: IndexCard) -> AbstractAsyncContextManager[None]:
        """While many points are put: the engine builds its structures once, at the end, and is then ready."""

    async def make_live(self, fingerprint: str) -> None: ...
    async def drop(self, fingerprint: str) -> None:
        """Removes the collection if it is there."""


class VectorCache(Protocol):
    """Vectors that were made once, by the hash of what they were made from. Failing to remember is no error."""

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]: ...
    def remember(self, tools: Mapping[str, tuple[str, Vector]], absent: Collection[str] = ()) -> None:
        """These tools, by name with hash and vector; of other tools, only those of absent servers stay."""
