"""Erases a tenant, and exports what it has."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.errors import Conflict
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.text import Passage
from toolscript.core.values import OnProgress
from toolscript.documents.model.document import Document, DocumentHeader, as_put
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import TenantDocuments, Tenants, TenantShards

PAGE = 200
# So many passages are read at once, and so are those of one document, however many it has.
CHUNKS_AT_ONCE = 1_000
TRIES = 3


@dataclass(frozen=True)
class Erased:
    """`documents` is about where there were very many."""

    documents: int
    passages: int
    was_known: bool


async def erase_tenant(
    tenant_documents: TenantDocuments, places: TenantShards, tenants: Tenants, on_progress: OnProgress
) -> Erased:
    """As long as the tenant is listed it can be erased again, so its name goes last."""
    tenant = tenant_documents.tenant
    was_known = await _is_known(tenants, tenant.name)
    documents = (await tenant_documents.count(NO_FILTERS)).value
    passages = await places.erase(tenant, on_progress)
    await tenants.forget(tenant)
    left = await places.passages(tenant)
    if left or await _is_known(tenants, tenant.name):
        raise Conflict(
            f"tenant {tenant} is being written to: {left} passages have come since, {passages} were deleted",
            hint="take its tokens away, then run it again",
        )
    return Erased(documents, passages, was_known)


async def _is_known(tenants: Tenants, name: str) -> bool:
    """Asked of the list: nothing that a name could be lies between it and this."""
    just_before = f"{name[:-1]}{chr(ord(name[-1]) - 1)}\x7f"
    return any(tenant.tenant.name == name for tenant in await tenants.page(just_before, 1))


class TenantExport:
    """`left_out` are those that somebody is writing, or was killed while writing."""

    def __init__(self, tenant_documents: TenantDocuments) -> None:
        self._shelf = tenant_documents
        self.left_out: list[str] = []

    async def documents(self, after: DocumentKey = "") -> AsyncIterator[Document]:
        async for batch in self.batches(after):
            for _, document in batch:
                yield document

    async def batches(self, after: DocumentKey = "") -> AsyncIterator[list[tuple[DocumentHeader, Document]]]:
        """In the order of their keys, from the one after `after`; what is put meanwhile may come or not."""
        while headers := await self._shelf.page(after, PAGE, NO_FILTERS):
            for batch in _batches(headers):
                yield await self.of_headers(batch)
            after = headers[-1].key

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[tuple[DocumentHeader, Document]]:
        """Those of them that are there, with the header of the state that was read."""
        whole = await self._whole(headers)
        found = [whole.get(header.key) or await self._once_more(header) for header in headers]
        return [one for one in found if one is not None]

    async def _whole(
        self, headers: Sequence[DocumentHeader]
    ) -> Mapping[DocumentKey, tuple[DocumentHeader, Document]]:
        """Those whose passages are all there, and of one state."""
        ids = [
            ChunkId(document_header.key, number)
            for document_header in headers
            for number in range(document_header.passages)
        ]
        found = await self._shelf.passages(ids)
        of_key: dict[DocumentKey, list[Passage]] = {document_header.key: [] for document_header in headers}
        for id_, passage in found.items():
            of_key[id_.key].append(passage)
        documents = [
            (document_header, as_put(document_header, of_key[document_header.key])) for document_header in headers
        ]
        return {header.key: (header, document) for header, document in documents if document is not None}

    async def _once_more(self, header: DocumentHeader) -> tuple[DocumentHeader, Document] | None:
        """It was changed between two reads, or is being written; one that was removed is none."""
        for _ in range(TRIES):
            now = (await self._shelf.headers([header.key])).get(header.key)
            if now is None:
                return None
            if found := (await self._whole([now])).get(now.key):
                return found
        self.left_out.append(header.id)
        return None


def _batches(headers: Sequence[DocumentHeader]) -> Iterator[list[DocumentHeader]]:
    batch: list[DocumentHeader] = []
    for header in headers:
        if batch and sum(document_header.passages for document_header in batch) + header.passages > CHUNKS_AT_ONCE:
            yield batch
            batch = []
        batch.append(header)
    yield batch
