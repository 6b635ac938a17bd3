"""A tenant's client that searches, puts and removes all the time, and records acknowledged writes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.doubles import MemorySpans
from toolscript.core.auth.model import Principal, Tenant
from toolscript.documents.model.document import Document, DocumentHeader, PutOutcome
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.ports import DocumentIndex, TenantDocuments
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantExport
from toolscript.testing import HashEmbedder, MemoryTenants

# Text of documents that never change and that every search must find.
STANDING = "a lighthouse that nobody moves"
WRITERS = 3
# Pause between two searches of one searcher; without it they would starve the engine of CPU.
BREATH_SECONDS = 0.02
# Documents per writer; a writer returns to a document after all its others.
EACH = 25
LONG = " ".join(f"The keeper wrote line {number} into the book of the harbour." for number in range(60))


@dataclass
class BusyClient:
    """`indexes` open the same collection, one per node; each writer and searcher uses one of them."""

    tenant: Tenant
    indexes: Sequence[DocumentIndex]
    promised: dict[str, str] = field(default_factory=dict)
    failures: list[object] = field(default_factory=list)
    writes: int = 0
    searches: int = 0

    async def fill(self, more: int = 0) -> None:
        standing = [Document(f"standing-{number}", STANDING, {}) for number in range(3)]
        written = [
            _document(f"{writer}-{number}", 0, number) for writer in range(WRITERS) for number in range(EACH)
        ]
        extra = [Document(f"more-{number}", f"Shelf {number}. {LONG}", {}) for number in range(more)]
        everything = [*standing, *written, *extra]
        for start in range(0, len(everything), 64):
            await self._service(0).put(Principal(self.tenant), everything[start : start + 64])
        self.promised = {document.id: document.text for document in everything}

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Run writers and searchers; on exit, await requests in flight, so that all outcomes are known."""
        ends = asyncio.Event()
        async with asyncio.timeout(180), asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(self._write(number, ends))
            for number in range(len(self.indexes)):
                group.create_task(self._search(number, ends))
            try:
                yield
            finally:
                ends.set()

    async def reaches(self, writes: int) -> None:
        """Wait for this many more writes."""
        target = self.writes + writes
        while self.writes < target and not self.failures:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def stored(self) -> dict[str, str]:
        """Return the texts of all stored documents."""
        export = TenantExport(self.indexes[0].of(self.tenant))
        documents = [document async for document in export.documents()]
        assert export.left_out == []
        assert len(documents) == len({document.id for document in documents})
        return {document.id: document.text for document in documents}

    async def passages(self) -> int:
        """Return the number of chunks that the documents' headers name."""
        return sum(header.passages for header in await all_headers(self.indexes[0].of(self.tenant)))

    async def _write(self, writer: int, ends: asyncio.Event) -> None:
        service = self._service(writer)
        for turn in range(1, 10_000):
            for number in range(EACH):
                if ends.is_set():
                    return
                await self._write_one(service, f"{writer}-{number}", turn, number)
                self.writes += 1

    async def _write_one(self, service: DocumentService, id_: str, turn: int, number: int) -> None:
        principal = Principal(self.tenant)
        try:
            if (turn + number) % 4 == 0:
                await service.remove(principal, [id_])
                self.promised.pop(id_, None)
            else:
                document = _document(id_, turn, number)
                (result,) = await service.put(principal, [document])
                self.promised[id_] = document.text
                if result.outcome not in (PutOutcome.CREATED, PutOutcome.UPDATED):
                    self.failures.append(result)
        except Exception as error:  # noqa: BLE001
            self.failures.append(error)

    async def _search(self, number: int, ends: asyncio.Event) -> None:
        search = DocumentSearch(
            HashEmbedder(), self.indexes[number], spans=MemorySpans(), cursor_secret=b"a secret of this test"
        )
        while not ends.is_set():
            try:
                answer = await search.search(Principal(self.tenant), DocumentQuery(STANDING, top_k=20))
            except Exception as error:  # noqa: BLE001
                self.failures.append(error)
                return
            ids = [hit.id for hit in answer.hits]
            whole = {f"standing-{number}" for number in range(3)} <= set(ids[:3]) and len(ids) == len(set(ids))
            if not whole or answer.degraded:
                self.failures.append((ids, answer.degraded))
            self.searches += 1
            await asyncio.sleep(BREATH_SECONDS)

    def _service(self, number: int) -> DocumentService:
        return DocumentService(HashEmbedder(), self.indexes[number % len(self.indexes)], MemoryTenants())


async def all_headers(documents: TenantDocuments) -> list[DocumentHeader]:
    headers: list[DocumentHeader] = []
    while page := await documents.page(headers[-1].key if headers else "", 200, NO_FILTERS):
        headers += page
    return headers


def _document(id_: str, turn: int, number: int) -> Document:
    """Return a document; the number of its chunks changes from turn to turn."""
    text = f"Turn {turn} of {id_}."
    return Document(id_, f"{text} {LONG[: 1_500 * ((turn + number) % 3)]}".strip(), {"turn": turn})
