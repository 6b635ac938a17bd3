"""A tenant with a few documents, on any index."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.retrieval.ports import Spans
from toolscript.core.retrieval.timings import NoSpans
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import Document, PutResult
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.model.query import FIRST_PAGE, DocumentQuery
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.testing import HashEmbedder, MemoryTenants

CARD = DocumentCard(HashEmbedder().model)
ACME = Principal(Tenant("acme"))
OTHER = Principal(Tenant("other"))


@dataclass
class Corpus:
    """Service and search of one installation, for one principal."""

    index: DocumentIndex
    embedder: Any = field(default_factory=HashEmbedder)
    principal: Principal = ACME
    spans: Spans = field(default_factory=NoSpans)
    scale: CosineScale | None = None

    def __post_init__(self) -> None:
        self.service = DocumentService(self.embedder, self.index, MemoryTenants())
        self.search = DocumentSearch(
            self.embedder, self.index, spans=self.spans, cursor_secret=b"secret", scale=self.scale
        )

    async def put(self, *documents: Document) -> list[PutResult]:
        return await self.service.put(self.principal, documents)

    async def ask(self, text: str = "", **options: object) -> DocumentAnswer:
        return await self.search.search(self.principal, DocumentQuery(text, **options))  # type: ignore[arg-type]

    async def found(self, text: str = "", **options: object) -> list[str]:
        return [hit.id for hit in (await self.ask(text, **options)).hits]

    async def walk(self, text: str = "", **options: object) -> list[str]:
        """Return the ids of all pages."""
        ids, cursor = list[str](), FIRST_PAGE
        while cursor:
            answer = await self.ask(text, cursor=cursor, **options)
            ids += [hit.id for hit in answer.hits]
            cursor = answer.next_cursor
        return ids


def document(id_: str, text: str, **metadata: object) -> Document:
    return Document(id_, text, metadata)


def long_text(words: Sequence[str], chunks: int) -> str:
    """A text of about this many chunks, each about one word."""
    return "\n\n".join(f"{words[number % len(words)]} " * 150 for number in range(chunks))
