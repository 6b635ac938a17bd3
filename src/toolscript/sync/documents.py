"""Puts, removes and hands back documents of one tenant."""

import time
from collections.abc import Mapping, Sequence

from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.document_points import IndexedDocument, IndexedPassage, PassageId
from toolscript.model.documents import (
    Document,
    DocumentHeader,
    DocumentKey,
    Passage,
    PutOutcome,
    PutResult,
    StoredDocument,
    document_key,
    whole_text,
)
from toolscript.model.filters import NO_FILTERS, filterable
from toolscript.model.passages import passage_terms, passage_text, split_passages
from toolscript.model.tenancy import Caller
from toolscript.ports import DocumentIndex, Embedder, TenantDocuments, Tenants

MOST_AT_ONCE = 256
# So many passages are embedded and stored at once, however many a batch has.
PASSAGES_AT_ONCE = 128

Waiting = tuple[DocumentKey, Document, list[Passage]]


class DocumentDesk:
    def __init__(self, embedder: Embedder, index: DocumentIndex, tenants: Tenants) -> None:
        self._embedder = embedder
        self._index = index
        self._tenants = tenants

    async def put(self, caller: Caller, documents: Sequence[Document]) -> list[PutResult]:
        """What became of each, in their order. What has not changed costs nothing; of one id the last counts."""
        _require_few(documents)
        shelf = self._index.of(caller.tenant)
        wanted = {document_key(caller.tenant, one.id): one for one in documents}
        known = await shelf.headers(list(wanted))
        changed = {key: one for key, one in wanted.items() if not _is_same(known.get(key), one)}
        refused = await self._beyond_plan(caller, shelf, [key for key in changed if key not in known])
        pieces = {key: split_passages(one.text) for key, one in changed.items() if key not in refused}
        if pieces:
            await self._tenants.seen(caller.tenant)
        await self._store(shelf, changed, known, pieces)
        results = {key: _result(key, one, known, pieces, refused) for key, one in wanted.items()}
        return [results[document_key(caller.tenant, one.id)] for one in documents]

    async def remove(self, caller: Caller, ids: Sequence[str]) -> list[str]:
        """Answers which of them were there."""
        keys = {document_key(caller.tenant, id_): id_ for id_ in ids}
        return [keys[key] for key in await self._index.of(caller.tenant).remove(list(keys))]

    async def document(self, caller: Caller, id_: str) -> StoredDocument:
        shelf = self._index.of(caller.tenant)
        key = document_key(caller.tenant, id_)
        header = (await shelf.headers([key])).get(key)
        if header is None:
            raise NotFound("there is no such document", hint="`toolscript documents search` finds those there are")
        return await stored_document(shelf, header)

    async def _beyond_plan(
        self, caller: Caller, shelf: TenantDocuments, new: Sequence[DocumentKey]
    ) -> frozenset[DocumentKey]:
        """New documents for which the plan has no room."""
        most = caller.plan.max_documents
        if most is None or not new:
            return frozenset()
        room = max(0, most - (await shelf.count(NO_FILTERS)).value)
        return frozenset(new[room:])

    async def _store(
        self,
        shelf: TenantDocuments,
        changed: Mapping[DocumentKey, Document],
        known: Mapping[DocumentKey, DocumentHeader],
        pieces: Mapping[DocumentKey, list[Passage]],
    ) -> None:
        batch: list[DocumentKey] = []
        for key in pieces:
            if batch and sum(len(pieces[one]) for one in [*batch, key]) > PASSAGES_AT_ONCE:
                await self._store_batch(shelf, [(one, changed[one], pieces[one]) for one in batch], known)
                batch = []
            batch.append(key)
        if batch:
            await self._store_batch(shelf, [(one, changed[one], pieces[one]) for one in batch], known)

    async def _store_batch(
        self, shelf: TenantDocuments, batch: Sequence[Waiting], known: Mapping[DocumentKey, DocumentHeader]
    ) -> None:
        version = _version_after([known[key].version for key, *_ in batch if key in known])
        texts = [passage_text(document.title, one) for _, document, pieces in batch for one in pieces]
        vectors = iter(
            [
                vector
                for at in range(0, len(texts), PASSAGES_AT_ONCE)
                for vector in await self._embedder.embed_passages(texts[at : at + PASSAGES_AT_ONCE])
            ]
        )
        await shelf.put(
            [
                IndexedDocument(
                    _header(key, document, pieces, version),
                    filterable(document.metadata),
                    [
                        IndexedPassage(one, next(vectors), passage_terms(document.title, one.text))
                        for one in pieces
                    ],
                    replaces=known[key].passages if key in known else 0,
                )
                for key, document, pieces in batch
            ]
        )


def _version_after(versions: Sequence[int]) -> int:
    """Newer than what it replaces, however far the clocks of two machines are apart; else by the clock."""
    return max([time.time_ns() // 1_000, *(version + 1 for version in versions)])


async def stored_document(shelf: TenantDocuments, header: DocumentHeader) -> StoredDocument:
    """The whole of it. Nothing, where it is removed while it is read."""
    found = await shelf.passages([PassageId(header.key, number) for number in range(header.passages)])
    passages = tuple(found[id_] for id_ in sorted(found))
    return StoredDocument(header.id, whole_text(passages), header.metadata, passages)


def _header(key: DocumentKey, document: Document, pieces: Sequence[Passage], version: int) -> DocumentHeader:
    return DocumentHeader(key, document.id, document.metadata, document.content_hash, len(pieces), version)


def _is_same(known: DocumentHeader | None, document: Document) -> bool:
    return known is not None and known.complete and known.content_hash == document.content_hash


def _result(
    key: DocumentKey,
    document: Document,
    known: Mapping[DocumentKey, DocumentHeader],
    pieces: Mapping[DocumentKey, list[Passage]],
    refused: frozenset[DocumentKey],
) -> PutResult:
    if key in refused:
        return PutResult(document.id, PutOutcome.REFUSED, problem="the plan has no room for more documents")
    if key not in pieces:
        return PutResult(document.id, PutOutcome.UNCHANGED, known[key].passages)
    outcome = PutOutcome.UPDATED if key in known else PutOutcome.CREATED
    return PutResult(document.id, outcome, len(pieces[key]))


def _require_few(documents: Sequence[Document]) -> None:
    if len(documents) > MOST_AT_ONCE:
        raise InvalidRequest(f"at most {MOST_AT_ONCE} documents at once")
