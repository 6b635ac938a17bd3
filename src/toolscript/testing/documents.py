"""Documents of many tenants in memory: both arms look at every passage of the tenant, and at no other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from toolscript.model.document_cards import DocumentCard
from toolscript.model.document_points import (
    FoundPassage,
    FoundPassages,
    IndexedDocument,
    IndexedPassage,
    PassageAsk,
    PassageId,
    ShownPassages,
    WordStatistics,
)
from toolscript.model.document_results import Total
from toolscript.model.documents import DocumentHeader, DocumentKey, Passage
from toolscript.model.filter_evaluation import passes
from toolscript.model.filters import Filters
from toolscript.model.index import Terms
from toolscript.model.models import Vector
from toolscript.model.tenancy import Tenant

SAMPLE = 2_000

Shelf = dict[DocumentKey, IndexedDocument]
Candidate = tuple[PassageId, IndexedPassage]


class MemoryTenantDocuments:
    def __init__(self, tenant: Tenant, documents: Shelf) -> None:
        self._tenant = tenant
        self._documents = documents

    @property
    def tenant(self) -> Tenant:
        return self._tenant

    async def search(self, ask: PassageAsk) -> FoundPassages:
        among = list(_passages_of(self._passing(ask.filters)))
        dense = None if ask.vector is None else _cosines(among, ask.vector)
        words = None if ask.terms is None else _shared_words(among, ask.terms)
        return FoundPassages(_best(dense, ask.limit), _best(words, ask.limit))

    async def statistics(self) -> WordStatistics:
        listed = list(_passages_of(self._in_order()))[:SAMPLE]
        return WordStatistics.of_passages([list(indexed.terms) for _, indexed in listed])

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        return {key: self._documents[key].header for key in keys if key in self._documents}

    async def passages(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Passage]:
        there = {id_: indexed.passage for id_, indexed in _passages_of(self._in_order())}
        return {id_: there[id_] for id_ in ids if id_ in there}

    async def vectors(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Vector]:
        there = {id_: indexed.vector for id_, indexed in _passages_of(self._in_order())}
        return {id_: there[id_] for id_ in ids if id_ in there}

    async def shown(self, ids: Sequence[PassageId]) -> ShownPassages:
        return ShownPassages(await self.headers([id_.key for id_ in ids]), await self.passages(ids))

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        return [one.header for one in self._passing(filters) if one.header.key > after][:limit]

    async def count(self, filters: Filters) -> Total:
        return Total(len(self._passing(filters)))

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        for one in documents:
            stored = self._documents.get(one.header.key)
            if stored is None or stored.header.version <= one.header.version:
                header = replace(one.header, passages=len(one.passages), complete=True)
                self._documents[header.key] = replace(one, header=header)

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await self.put(documents)

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        there = [key for key in keys if key in self._documents]
        for key in there:
            if up_to is None or self._documents[key].header.version <= up_to[key]:
                del self._documents[key]
        return there

    async def erase(self) -> None:
        self._documents.clear()

    def _in_order(self) -> list[IndexedDocument]:
        return sorted(self._documents.values(), key=attrgetter("header.key"))

    def _passing(self, filters: Filters) -> list[IndexedDocument]:
        return [one for one in self._in_order() if passes(filters, one.metadata)]


class MemoryDocuments:
    def __init__(self, card: DocumentCard, name: str = "documents") -> None:
        self._card = card
        self._name = name
        self._shelves: defaultdict[Tenant, Shelf] = defaultdict(dict)

    @property
    def name(self) -> str:
        return self._name

    @property
    def card(self) -> DocumentCard:
        return self._card

    async def passages(self) -> int:
        return sum(len(one.passages) for shelf in self._shelves.values() for one in shelf.values())

    def of(self, tenant: Tenant) -> MemoryTenantDocuments:
        return MemoryTenantDocuments(tenant, self._shelves[tenant])

    async def ready(self) -> None:
        """Always."""


def _passages_of(documents: Iterable[IndexedDocument]) -> Iterator[Candidate]:
    for document in documents:
        for indexed in document.passages:
            yield PassageId(document.header.key, indexed.passage.number), indexed


def _cosines(among: Sequence[Candidate], vector: Vector) -> list[FoundPassage]:
    length = np.linalg.norm(vector)
    return [
        FoundPassage(id_, float(one.vector @ vector / (np.linalg.norm(one.vector) * length))) for id_, one in among
    ]


def _shared_words(among: Sequence[Candidate], terms: Terms) -> list[FoundPassage]:
    """A passage that shares no word is not found."""
    shared = ((id_, one.terms, terms.keys() & one.terms.keys()) for id_, one in among)
    return [FoundPassage(id_, sum(terms[it] * own[it] for it in both)) for id_, own, both in shared if both]


def _best(found: list[FoundPassage] | None, limit: int) -> list[FoundPassage] | None:
    return None if found is None else sorted(found, key=lambda one: (-one.score, one.id))[:limit]
