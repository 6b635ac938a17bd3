"""In-memory retrieval: an index, an embedder, a reranker and spans."""

import hashlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache

import numpy as np

from toolscript.core.errors import SetupError
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import (
    Candidate,
    Candidates,
    Condition,
    Fields,
    IndexCard,
    IndexOrigin,
    IndexQuery,
    Matrix,
    ModelCard,
    Point,
    PointVersion,
    StoredPoint,
    Terms,
    Vector,
    idf_of,
)
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.spelling import WORD_FIELDS, Vocabulary
from toolscript.core.retrieval.terms import terms_of_word, words_of

Fact = str | int | float | bool


class MemoryIndex:
    def __init__(self, card: IndexCard, *, engine_idf: bool = True) -> None:
        self._card = card
        self._engine_idf = engine_idf
        self._points: dict[int, Point] = {}
        self._revisions: dict[int, int] = {}
        self._written = 0
        self._vocabulary: tuple[tuple[int, int], Vocabulary] | None = None

    @property
    def card(self) -> IndexCard:
        return self._card

    async def search(self, ask: IndexQuery) -> Candidates:
        allowed = [point for point in self._points.values() if _matches(point, ask)]
        dense = None if ask.vector is None else {p.id: float(p.vector @ ask.vector) for p in allowed}
        sparse = None if ask.terms is None else self._sparse_scores(allowed, ask.terms)
        shares = {term: self._having(term) / len(self._points) for term in ask.terms or () if self._points}
        unskilled = sum(not point.fields.get("skill_ids") for point in self._points.values())
        return Candidates(self._best(dense, ask), self._best(sparse, ask), len(self._points), shares, unskilled)

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        return [await self.search(ask) for ask in asks]

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        points = len(self._points)
        return {term: idf_of(self._having(term) / points if points else 0.0, points) for term in terms}

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        existing = [id_ for id_ in ids if id_ in self._points]
        return {id_: self._some_fields(id_, only or tuple(self._points[id_].fields)) for id_ in existing}

    async def vocabulary(self) -> Vocabulary:
        state = self._written, len(self._points)
        if self._vocabulary is None or self._vocabulary[0] != state:
            points = self._points.values()
            texts = [str(point.fields.get(field, "")) for point in points for field in WORD_FIELDS]
            terms = {term for point in points for term in point.terms}
            self._vocabulary = state, Vocabulary.of_texts(texts, terms)
        return self._vocabulary[1]

    async def put(self, points: Sequence[Point]) -> None:
        for point in points:
            if not self._has_newer(point.id, point.version):
                self._points[point.id] = replace(point, fields=dict(point.fields))
                self._written += 1
                self._revisions[point.id] = self._written

    async def remove(self, points: Sequence[PointVersion]) -> None:
        for point in points:
            if not self._has_newer(point.id, point.version):
                self._points.pop(point.id, None)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        ids = sorted(id_ for id_ in self._points if id_ > after)[:limit]
        return [PointVersion(id_, self._points[id_].version) for id_ in ids]

    async def count(self) -> int:
        return len(self._points)

    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        kept = [StoredPoint(point.id, point.vector, point.fields) for point in self._points.values()]
        return kept if len(kept) <= maximum else None

    def _has_newer(self, id_: int, version: int) -> bool:
        stored = self._points.get(id_)
        return stored is not None and stored.version > version

    def _sparse_scores(self, allowed: Sequence[Point], terms: Terms) -> dict[int, float]:
        idf = {term: self._idf(term) if self._engine_idf else 1.0 for term in terms}
        scores = {
            point.id: sum(
                weight * idf[term] * point.terms[term] for term, weight in terms.items() if term in point.terms
            )
            for point in allowed
        }
        return {id_: score for id_, score in scores.items() if score > 0}

    def _idf(self, term: int) -> float:
        total = len(self._points)
        having = self._having(term)
        return math.log(1 + (total - having + 0.5) / (having + 0.5))

    def _having(self, term: int) -> int:
        return sum(term in point.terms for point in self._points.values())

    def _best(self, scores: Mapping[int, float] | None, ask: IndexQuery) -> list[Candidate] | None:
        if scores is None:
            return None
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[: ask.limit]
        return [
            Candidate(id_, score, self._some_fields(id_, ask.fields), self._revisions[id_]) for id_, score in best
        ]

    def _some_fields(self, id_: int, names: Sequence[str]) -> Fields:
        fields = self._points[id_].fields
        return {name: fields[name] for name in names if name in fields}


class MemoryIndexes:
    def __init__(self, *, engine_idf: bool = True) -> None:
        self._engine_idf = engine_idf
        self._indexes: dict[str, dict[str, MemoryIndex]] = {}
        self._live: str | None = None

    async def namespaces(self, card: IndexCard) -> Sequence[str]:
        return sorted(self._indexes.get(card.fingerprint, ()))

    async def live(self) -> str | None:
        return self._live

    async def origin(self) -> IndexOrigin | None:
        return None if self._live is None else IndexOrigin(self._live, self._named(self._live).card.model)

    async def size(self, card: IndexCard) -> int | None:
        indexes = self._indexes.get(card.fingerprint, {})
        if DEFAULT_NAMESPACE not in indexes:
            return None
        return sum([await index.count() for index in indexes.values()])

    async def create(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> None:
        indexes = self._indexes.setdefault(card.fingerprint, {})
        indexes.setdefault(namespace, MemoryIndex(card, engine_idf=self._engine_idf))

    async def open(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> Index:
        return self._named(card.fingerprint, namespace)

    @asynccontextmanager
    async def loading(self, card: IndexCard) -> AsyncIterator[None]:
        self._named(card.fingerprint)
        yield

    async def make_live(self, fingerprint: str) -> None:
        self._named(fingerprint)
        self._live = fingerprint

    async def drop(self, fingerprint: str) -> None:
        self._indexes.pop(fingerprint, None)
        self._live = None if self._live == fingerprint else self._live

    def _named(self, fingerprint: str, namespace: str = DEFAULT_NAMESPACE) -> MemoryIndex:
        index = self._indexes.get(fingerprint, {}).get(namespace)
        if index is None:
            raise SetupError(f"there is no index {fingerprint}", hint="run `toolscript worker` to build it")
        return index


def _matches(point: Point, ask: IndexQuery) -> bool:
    if ask.only and point.id not in ask.only:
        return False
    return all(_holds(point, condition) for condition in ask.where)


def _holds(point: Point, condition: Condition) -> bool:
    value = point.fields.get(condition.field)
    values = value if isinstance(value, list | tuple) else [value]
    return any(value in condition.any_of for value in values)


CACHED_TEXTS = 4_096


class HashEmbedder:
    """Each stem is a fixed direction; a text is the sum of its stems. Counts the embedded texts."""

    def __init__(self, name: str = "hash", dimensions: int = 64) -> None:
        self._card = ModelCard(name=name, revision="1", dimensions=dimensions)
        self._directions: dict[int, Vector] = {}
        self._cached = lru_cache(maxsize=CACHED_TEXTS)(self._sum)
        self.queries_embedded = 0
        self.texts_embedded = 0

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, text: str) -> Vector:
        self.queries_embedded += 1
        return self._embed(text)

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        self.texts_embedded += len(texts)
        vectors = [self._embed(text) for text in texts]
        return np.stack(vectors) if vectors else np.empty((0, self._card.dimensions), np.float32)

    def _embed(self, text: str) -> Vector:
        return self._cached(text)

    def _sum(self, text: str) -> Vector:
        counts = Counter(terms_of_word(word)[0] for word in words_of(text))
        total = self._direction(0) * 0.01
        for term, count in counts.items():
            total = total + count * self._direction(term)
        vector = np.asarray(total / np.linalg.norm(total), dtype=np.float32)
        vector.flags.writeable = False
        return vector

    def _direction(self, term: int) -> Vector:
        if term not in self._directions:
            seed = hashlib.sha256(f"{self._card.name}:{term}".encode()).digest()[:8]
            generator = np.random.default_rng(int.from_bytes(seed, "little"))
            self._directions[term] = generator.standard_normal(self._card.dimensions).astype(np.float32)
        return self._directions[term]
