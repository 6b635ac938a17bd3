"""Searches the documents of one tenant.

    check the plan -> embed and load IDF concurrently -> dense and sparse retrieval -> fuse -> rerank -> hydrate

A request without a text lists every document that passes its filters. A cursor continues where a page ended.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolscript.core.auth.model import Principal
from toolscript.core.chunking import MAX_WORD
from toolscript.core.errors import IndexUnavailable, Unavailable
from toolscript.core.retrieval.deadline import Attempt, Deadline, Part
from toolscript.core.retrieval.fusion import RankedDocument, RankedLists, ranked
from toolscript.core.retrieval.ports import Embedder, Reranker, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.core.retrieval.text_verdict import any_text_fits
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.documents.cursors import Cursor, Cursors
from toolscript.documents.hydration import Hydration
from toolscript.documents.lost import require_kept
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.points import ReadContent, no_content
from toolscript.documents.model.query import FIRST_PAGE, MAX_RANKED, DocumentQuery, Rerank
from toolscript.documents.plan_limits import require_within
from toolscript.documents.ports import DocumentIndex, TenantDocuments, Tenants
from toolscript.documents.rerank import Reranking
from toolscript.documents.retrieval import AnalyzedQuery, Retrieval


@dataclass(frozen=True)
class _Run:
    """State of one search."""

    principal: Principal
    query: DocumentQuery
    documents: TenantDocuments
    attempt: Attempt

    def hydration(self, analyzed: AnalyzedQuery | None = None, content: ReadContent = no_content) -> Hydration:
        return Hydration(self.documents, self.principal.plan, self.query, analyzed, content)

    @property
    def is_continued(self) -> bool:
        return self.query.cursor not in ("", FIRST_PAGE)


@dataclass(frozen=True)
class _Ranking:
    """Documents, best first, from the first of the page on. `total` is None if it is still to be counted; `judge`
    tells from it whether anything fits. `content` reads what the search has brought along.
    """

    order: Sequence[RankedDocument]
    total: Total | None
    judge: Callable[[Total], bool | None]
    reranked_by: str = ""
    content: ReadContent = no_content


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
        scale: CosineScale | None = None,
        tenants: Tenants | None = None,
    ) -> None:
        """`scale` is that of the model's cosines; without it no answer says whether anything fits.

        With `tenants`, a tenant that holds documents is not told that there are none.
        """
        self._tenants = tenants
        self._index = index
        self._spans = spans
        self._retrieval = Retrieval(embedder, spans)
        self._reranking = Reranking(rerankers or {})
        self._cursors = Cursors(cursor_secret)
        self._deadline_seconds = deadline_seconds
        self._scale = scale

    async def search(self, principal: Principal, query: DocumentQuery) -> DocumentAnswer:
        require_within(principal.plan, query)
        self._reranking.require(query)
        deadline = Deadline(self._deadline_seconds)
        run = _Run(principal, query, self._index.of(principal.tenant), Attempt(deadline))
        facts = {"search_type": query.search_type.value, "tenant": principal.tenant.name}
        with self._spans.span("search.execute", product="documents", **facts):
            try:
                return await deadline.spend(1.0, self._checked(run))
            except TimeoutError:
                raise IndexUnavailable("no answer in time", hint="try again, or request less") from None

    async def _checked(self, run: _Run) -> DocumentAnswer:
        answer = await self._answer(run)
        if not answer.hits and self._tenants is not None:
            await require_kept(run.documents, self._tenants)
        return answer

    async def _answer(self, run: _Run) -> DocumentAnswer:
        if not run.query.text:
            return await self._by_key(run)
        if run.is_continued:
            cursor = self._cursors.read(run.principal.tenant, run.query)
            analyzed = await self._understood(run, embed=False)
            ranking = _Ranking(cursor.rest, cursor.total, lambda _: cursor.good_match)
            return await self._page(run, analyzed, ranking)
        analyzed = await self._understood(run, embed=run.query.search_type is not SearchType.KEYWORD)
        return await self._ranked(run, analyzed)

    async def _understood(self, run: _Run, *, embed: bool) -> AnalyzedQuery:
        return await self._retrieval.analyzed(run.attempt, run.documents, run.query, embed=embed)

    async def _ranked(self, run: _Run, analyzed: AnalyzedQuery) -> DocumentAnswer:
        depth = MAX_RANKED if run.query.cursor else run.query.wanted
        retrieved = await self._retrieval.ranked_lists(run.documents, run.query, analyzed, depth)
        ranked_lists = retrieved.lists
        max_sparse_score = math.fsum(analyzed.idfs.values()) * MAX_WORD
        with self._spans.span("search.fuse"):
            fused = ranked(ranked_lists, run.query.fusion or Fusion.BEST, max_sparse_score)
        order, reranked_by = await self._reranked(run, fused)

        def judge(total: Total) -> bool | None:
            return any_text_fits(ranked_lists, max_sparse_score, _chunks(ranked_lists, total), self._scale)

        rest = order[run.query.offset : MAX_RANKED]
        ranking = _Ranking(rest, ranked_lists.total, judge, reranked_by, retrieved.content)
        return await self._page(run, analyzed, ranking)

    async def _reranked(self, run: _Run, fused: Sequence[RankedDocument]) -> tuple[Sequence[RankedDocument], str]:
        if run.query.rerank is Rerank.OFF:
            return fused, ""
        with self._spans.span("search.rerank"):
            return await self._reranking.reranked(run.attempt, run.documents, run.query, fused)

    async def _page(self, run: _Run, analyzed: AnalyzedQuery, ranking: _Ranking) -> DocumentAnswer:
        order = ranking.order
        with self._spans.span("search.enrich"):
            (hits, rest), counted = await asyncio.gather(
                run.hydration(analyzed, ranking.content).first(order),
                _total(run, ranking.total, len(order), analyzed.documents),
            )
        run.attempt.require_found(order, Part.EMBEDDING)
        good_match = ranking.judge(counted)
        cursor = Cursor(counted, rest=rest, good_match=good_match) if run.query.cursor and rest else None
        answer = self._response(run, hits, counted, cursor)
        return replace(answer, reranked_by=ranking.reranked_by, good_match=good_match and bool(hits))

    async def _by_key(self, run: _Run) -> DocumentAnswer:
        """Page through all documents that pass the filters, ordered by key: updates never change that order."""
        query = run.query
        cursor = self._cursors.read(run.principal.tenant, query) if run.is_continued else None
        with self._spans.span("search.retrieve", limit=query.wanted):
            headers, total = await asyncio.gather(
                run.documents.page(cursor.after if cursor else "", query.wanted, query.filters),
                _total(run, cursor.total if cursor else None),
            )
        page = headers[query.offset :]
        hits = await self._hydrate(run, page)
        has_more = bool(query.cursor) and len(headers) == query.wanted
        return self._response(run, hits, total, Cursor(total, after=headers[-1].key) if has_more else None)

    async def _hydrate(self, run: _Run, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        with self._spans.span("search.enrich"):
            return await run.hydration().of_headers(headers)

    def _response(
        self, run: _Run, hits: Sequence[DocumentHit], total: Total, cursor: Cursor | None
    ) -> DocumentAnswer:
        next_cursor = self._cursors.write(run.principal.tenant, run.query, cursor) if cursor else ""
        failed = run.attempt.parts_failed
        return DocumentAnswer(hits, total, next_cursor, failed, index_version=self._index.name)


def _chunks(ranked_lists: RankedLists, total: Total) -> float:
    """Return about how many chunks the documents that pass the filters have."""
    return total.value * ranked_lists.dense.chunks_per_document if ranked_lists.dense else 0.0


async def _total(run: _Run, known: Total | None, minimum: int = 0, large: int | None = None) -> Total:
    """Return the number of matches, counted unless `known`. A failed count does not fail the search."""
    if known is not None:
        return known
    if large is not None and not run.query.filters:
        return Total(max(minimum, large), Exactness.ABOUT)
    try:
        counted = await run.documents.count(run.query.filters)
    except Unavailable:
        return Total(minimum, Exactness.AT_LEAST)
    return counted if counted.value >= minimum else Total(minimum, Exactness.AT_LEAST)
