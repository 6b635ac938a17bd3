"""Documents as they are indexed: cut into passages, their words counted, their texts embedded."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from toolscript.model.document_points import IndexedDocument, IndexedPassage, PassageId
from toolscript.model.documents import Document, DocumentHeader, DocumentKey, Passage
from toolscript.model.filters import filterable
from toolscript.model.index import Terms
from toolscript.model.models import Vector
from toolscript.model.passages import passage_terms, passage_text, split_passages
from toolscript.ports import Embedder

# Queries are embedded by the same model: none of them waits for more than so many passages.
EMBEDDED_AT_ONCE = 16
# Versions of two who write at the same moment differ, as a rule.
STEPS = 1_000


@dataclass(frozen=True)
class Prepared:
    """A document on its way into the index, without vectors yet."""

    key: DocumentKey
    document: Document
    passages: Sequence[Passage]
    terms: Sequence[Terms]


async def prepared(documents: Mapping[DocumentKey, Document]) -> list[Prepared]:
    """On a thread: a long text takes seconds, and everybody else would wait."""
    return await asyncio.to_thread(lambda: [_prepared(key, one) for key, one in documents.items()])


class Indexing:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._turn = asyncio.Semaphore(1)

    async def indexed(
        self, batch: Sequence[Prepared], known: Mapping[DocumentKey, DocumentHeader]
    ) -> list[IndexedDocument]:
        """`known` are those of them that were there before."""
        version = _version_after([known[one.key].version for one in batch if one.key in known])
        return await self.as_of({one.key: version for one in batch}, batch, known)

    async def as_of(
        self,
        versions: Mapping[DocumentKey, int],
        batch: Sequence[Prepared],
        known: Mapping[DocumentKey, DocumentHeader],
        vectors: Mapping[PassageId, Vector] = MappingProxyType({}),
    ) -> list[IndexedDocument]:
        """With versions that they have already, and passages with vectors that are known."""
        vectors = {**vectors, **await self._missing(batch, vectors)}
        return [
            IndexedDocument(
                _header(one, versions[one.key]),
                filterable(one.document.metadata),
                [
                    IndexedPassage(passage, vectors[PassageId(one.key, passage.number)], terms)
                    for passage, terms in zip(one.passages, one.terms, strict=True)
                ],
                replaces=known[one.key].passages if one.key in known else 0,
            )
            for one in batch
        ]

    async def _missing(
        self, batch: Sequence[Prepared], known: Mapping[PassageId, Vector]
    ) -> dict[PassageId, Vector]:
        texts = {id_: text for one in batch for id_, text in _texts(one).items() if id_ not in known}
        return dict(zip(texts, await self._vectors(list(texts.values())), strict=True))

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """One tenant's at a time, and a few: nobody's many documents keep others from being embedded."""
        found: list[Vector] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            async with self._turn:
                found += list(await self._embedder.embed_passages(texts[start : start + EMBEDDED_AT_ONCE]))
        return found


def _prepared(key: DocumentKey, document: Document) -> Prepared:
    passages = split_passages(document.text)
    return Prepared(key, document, passages, [passage_terms(document.title, one.text) for one in passages])


def _texts(one: Prepared) -> dict[PassageId, str]:
    title = one.document.title
    return {PassageId(one.key, passage.number): passage_text(title, passage) for passage in one.passages}


def _version_after(versions: Sequence[int]) -> int:
    """Newer than what it replaces, however far the clocks of two machines are apart; else by the clock."""
    latest = max([time.time_ns() // 1_000, *versions])
    return latest + random.randint(1, STEPS)  # noqa: S311 - no secret


def _header(one: Prepared, version: int) -> DocumentHeader:
    document = one.document
    return DocumentHeader(
        one.key, document.id, document.metadata, document.content_hash, len(one.passages), version
    )
