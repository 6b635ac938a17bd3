"""What is shown of the documents that are returned, and of no others."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.document_points import PassageId
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.document_results import DocumentHit
from toolscript.model.documents import DocumentHeader, Passage
from toolscript.model.tenancy import Plan
from toolscript.ports import TenantDocuments
from toolscript.search.documents.fusion import Ranked
from toolscript.search.documents.plan_limits import shown_metadata
from toolscript.search.documents.retrieval import Understood
from toolscript.search.documents.snippets import snippet


@dataclass(frozen=True)
class Enrichment:
    documents: TenantDocuments
    plan: Plan
    query: DocumentQuery
    understood: Understood | None = None

    async def first(self, order: Sequence[Ranked]) -> tuple[list[DocumentHit], Sequence[Ranked]]:
        """The first `top_k` that are still there, and what is left after them."""
        hits: list[DocumentHit] = []
        rest = order
        while rest and len(hits) < self.query.top_k:
            missing = self.query.top_k - len(hits)
            hits += await self._hits(rest[:missing])
            rest = rest[missing:]
        return hits, rest

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        """Of documents that nothing but filters have chosen: all are as good, and shown from their beginning."""
        ids = [PassageId(header.key, 0) for header in headers] if self.query.include_snippets else []
        passages = await self.documents.passages(ids)
        return [
            self._hit(Ranked(header.key, 1.0, 0), header, passages.get(PassageId(header.key, 0)))
            for header in headers
        ]

    async def _hits(self, order: Sequence[Ranked]) -> list[DocumentHit]:
        ids = [PassageId(one.key, one.passage) for one in order] if self.query.include_snippets else []
        headers, passages = await asyncio.gather(
            self.documents.headers([one.key for one in order]), self.documents.passages(ids)
        )
        return [
            self._hit(one, header, passages.get(PassageId(one.key, one.passage)))
            for one in order
            if (header := headers.get(one.key)) is not None
        ]

    def _hit(self, ranked: Ranked, header: DocumentHeader, passage: Passage | None) -> DocumentHit:
        said = self.understood.said if self.understood else {}
        return DocumentHit(
            key=header.key,
            id=header.id,
            score=ranked.score,
            metadata=shown_metadata(self.plan, self.query, header.metadata),
            snippet=snippet(passage, said, self.query.snippet_max_chars) if passage else None,
            passage=ranked.passage,
        )
