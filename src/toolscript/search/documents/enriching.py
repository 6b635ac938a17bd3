"""What is shown of the documents that are returned, and of no others."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.document_points import PassageId, ShownPassages
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.document_results import DocumentHit
from toolscript.model.documents import DocumentHeader, Passage
from toolscript.model.tenancy import Plan
from toolscript.ports import TenantDocuments
from toolscript.search.documents.fusion import Ranked
from toolscript.search.documents.plan_limits import shown_metadata
from toolscript.search.documents.retrieval import Understood
from toolscript.search.documents.snippets import snippet

MORE = 4
# A window takes a while to find: after so many, others have their turn.
AT_ONCE = 8


@dataclass(frozen=True)
class Enrichment:
    documents: TenantDocuments
    plan: Plan
    query: DocumentQuery
    understood: Understood | None = None

    async def first(self, order: Sequence[Ranked]) -> tuple[list[DocumentHit], Sequence[Ranked]]:
        """The first `top_k` that are still there, and what is left after them."""
        hits: list[DocumentHit] = []
        rest, at_once = order, self.query.top_k
        while rest and len(hits) < self.query.top_k:
            found = await self._hits(rest[:at_once])
            taken = found[: self.query.top_k - len(hits)]
            hits += [hit for _, hit in taken]
            used = at_once if len(taken) == len(found) else 1 + taken[-1][0]
            # Where many have left, it takes a few more rounds, not one for each.
            rest, at_once = rest[used:], at_once * MORE
        return hits, rest

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        """Of documents that nothing but filters have chosen: all are as good, and shown from their beginning."""
        ids = [PassageId(header.key, 0) for header in headers] if self.query.include_snippets else []
        passages = await self.documents.passages(ids)
        return [
            self._hit(Ranked(header.key, 1.0, 0), header, passages.get(PassageId(header.key, 0)))
            for header in headers
        ]

    async def _hits(self, order: Sequence[Ranked]) -> list[tuple[int, DocumentHit]]:
        """Those that are there, each with its place."""
        found = await self._shown(order)
        hits: list[tuple[int, DocumentHit]] = []
        for at, one in enumerate(order):
            if (header := found.headers.get(one.key)) is not None:
                hits.append((at, self._hit(one, header, found.passages.get(PassageId(one.key, one.passage)))))
                if at % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
        return hits

    async def _shown(self, order: Sequence[Ranked]) -> ShownPassages:
        if self.query.include_snippets:
            return await self.documents.shown([PassageId(one.key, one.passage) for one in order])
        return ShownPassages(await self.documents.headers([one.key for one in order]), {})

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
