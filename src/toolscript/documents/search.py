"""Finds documents of one tenant.

    plan -> embedding, and beside it how rare the words are -> both arms -> fusion -> rerank -> what is shown

A request without a text is a walk through what its filters let through. A cursor goes on where a page has ended.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.auth.model import Principal
from toolscript.core.chunking import MAX_WORD
from toolscript.core.errors import IndexUnavailable, Unavailable
from toolscript.core.retrieval.deadline import Attempt, Deadline
from toolscript.core.retrieval.fusion import Ranked, ranked
from toolscript.core.retrieval.ports import Embedder, Reranker, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.documents.cursors import Cursor, Cursors
from toolscript.documents.hydration import Hydration
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.query import FIRST_PAGE, MAX_RANKED, DocumentQuery, Rerank
from toolscript.documents.plan_limits import require_within
from toolscript.documents.ports import DocumentIndex, TenantDocuments
from toolscript.documents.rerank import Reranking
from toolscript.documents.retrieval import Retrieval, Understood


@dataclass(frozen=True)
class _Run:
    """One search on its way."""

    principal: Principal
    query: DocumentQuery
    documents: TenantDocuments
    attempt: Attempt

    def hydration(self, understood: Understood | None = None) -> Hydration:
        return Hydration(self.documents, self.principal.plan, self.query, understood)

    @property
    def goes_on(self) -> bool:
        return self.query.cursor not in ("", FIRST_PAGE)


class DocumentSearch:
    def __init__(
        self,
        embedder: Embedder,
        index: DocumentIndex,
        *,
        spans: Spans,
        cursor_secret: bytes,
        rerankers: Mapping[Rerank, Reranker] | None = None,
        deadline_seconds: float = 10.0,
    ) -> None:
        self._index = index
        self._spans = spans
        self._retrieval = Retrieval(embedder, spans)
        self._reranking = Reranking(rerankers or {})
        self._cursors = Cursors(cursor_secret)
        self._deadline_seconds = deadline_seconds

    async def search(self, principal: Principal, query: DocumentQuery) -> DocumentAnswer:
        require_within(principal.plan, query)
        self._reranking.require(query)
        deadline = Deadline(self._deadline_seconds)
        run = _Run(principal, query, self._index.of(principal.tenant), Attempt(deadline))
        facts = {"search_type": query.search_type.value, "tenant": principal.tenant.name}
        with self._spans.span("search.execute", product="documents", **facts):
            try:
                return await deadline.spend(1.0, self._answer(run))
            except TimeoutError:
                raise IndexUnavailable("no answer in time", hint="try again, or ask for less") from None

    async def _answer(self, run: _Run) -> DocumentAnswer:
        if not run.query.text:
            return await self._by_key(run)
        if run.goes_on:
            cursor = self._cursors.read(run.principal.tenant, run.query)
            understood = await self._understood(run, embed=False)
            return await self._page(run, understood, cursor.rest, cursor.total)
        understood = await self._understood(run, embed=run.query.search_type is not SearchType.KEYWORD)
        return await self._ranked(run, understood)

    async def _understood(self, run: _Run, *, embed: bool) -> Understood:
        return await self._retrieval.understood(run.attempt, run.documents, run.query, embed=embed)

    async def _ranked(self, run: _Run, understood: Understood) -> DocumentAnswer:
        wanted = MAX_RANKED if run.query.cursor else run.query.wanted
        ranked_lists = await self._retrieval.ranked_lists(run.documents, run.query, understood, wanted)
        with self._spans.span("search.fuse"):
            best_words = math.fsum(understood.said.values()) * MAX_WORD
            rankeds = ranked(ranked_lists, run.query.fusion or Fusion.BEST, best_words)
        order, reranked_by = await self._reranked(run, rankeds)
        return await self._page(
            run, understood, order[run.query.offset : MAX_RANKED], ranked_lists.total, reranked_by
        )

    async def _reranked(self, run: _Run, rankeds: Sequence[Ranked]) -> tuple[Sequence[Ranked], str]:
        if run.query.rerank is Rerank.OFF:
            return rankeds, ""
        with self._spans.span("search.rerank"):
            return await self._reranking.reranked(run.attempt, run.documents, run.query, rankeds)

    async def _page(
        self,
        run: _Run,
        understood: Understood,
        order: Sequence[Ranked],
        total: Total | None,
        reranked_by: str = "",
    ) -> DocumentAnswer:
        with self._spans.span("search.enrich"):
            (hits, rest), in_all = await asyncio.gather(
                run.hydration(understood).first(order), _total(run, total, len(order), understood.documents)
            )
        cursor = Cursor(in_all, rest=rest) if run.query.cursor and rest else None
        return self._answered(run, hits, in_all, cursor, reranked_by)

    async def _by_key(self, run: _Run) -> DocumentAnswer:
        """Through everything that passes the filters, in an order that no change of a document changes."""
        query = run.query
        known = self._cursors.read(run.principal.tenant, query) if run.goes_on else None
        with self._spans.span("search.retrieve", limit=query.wanted):
            headers, total = await asyncio.gather(
                run.documents.page(known.after if known else "", query.wanted, query.filters),
                _total(run, known.total if known else None),
            )
        document_headers = headers[query.offset :]
        hits = await self._shown(run, document_headers)
        goes_on = bool(query.cursor) and len(headers) == query.wanted
        return self._answered(run, hits, total, Cursor(total, after=headers[-1].key) if goes_on else None)

    async def _shown(self, run: _Run, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        with self._spans.span("search.enrich"):
            return await run.hydration().of_headers(headers)

    def _answered(
        self, run: _Run, hits: Sequence[DocumentHit], total: Total, cursor: Cursor | None, reranked_by: str = ""
    ) -> DocumentAnswer:
        following = self._cursors.write(run.principal.tenant, run.query, cursor) if cursor else ""
        return DocumentAnswer(hits, total, following, run.attempt.parts_failed, reranked_by)


async def _total(run: _Run, known: Total | None, found: int = 0, large: int | None = None) -> Total:
    """How many match, if it is not known already. An answer does not fail for that."""
    if known is not None:
        return known
    if large is not None and not run.query.filters:
        return Total(max(found, large), Exactness.ABOUT)
    try:
        counted = await run.documents.count(run.query.filters)
    except Unavailable:
        return Total(found, Exactness.AT_LEAST)
    return counted if counted.value >= found else Total(found, Exactness.AT_LEAST)
