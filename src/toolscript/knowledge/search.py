"""Search chunks and extractions of a library together, and lead from a hit to its source and its neighbours.

embedding and IDFs in parallel -> both collections, dense and sparse -> fusion -> hydration
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from toolscript.core.errors import (
    IndexLost,
    IndexUnavailable,
    LibraryRejected,
    LibraryUnavailable,
    ModelMismatch,
    NotFound,
    SetupError,
)
from toolscript.core.retrieval.deadline import Attempt, Deadline, Part
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.text_verdict import any_text_fits
from toolscript.core.retrieval.timings import NO_SPANS
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.knowledge.hydration import SourceCache, first_hits
from toolscript.knowledge.model.library import Source
from toolscript.knowledge.model.query import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
    require_id,
)
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.retrieval import Retrieval, collapse_by_chunk, ordered

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Replaces the query in the log.
REDACTED = "..."

REINDEX_HINT = "`toolscript ingest --reindex` builds it from the library"
RESTORE_HINT = (
    "`toolscript restore FOLDER` brings it back from a backup, `toolscript ingest PATH...` from the files"
)

# Opens the indexes of chunks and extractions; fails while there are none, and the next search tries again.
OpenIndexes = Callable[[], Awaitable[tuple[Index, Index]]]


class KnowledgeSearch:
    def __init__(
        self,
        embedder: Embedder,
        open_indexes: OpenIndexes,
        library: LibraryReader,
        *,
        deadline_seconds: float = 10.0,
        spans: Spans = NO_SPANS,
        log_queries: bool = False,
        scale: CosineScale | None = None,
    ) -> None:
        """`log_queries`: whether the log contains the query texts. `scale` is that of the model's cosines; without
        it no answer says whether anything fits.
        """
        self._scale = scale
        self._spans = spans
        self._log_queries = log_queries
        self._embedder = embedder
        self._open_indexes = open_indexes
        self._opened: Retrieval | None = None
        self._library = library
        self._sources = SourceCache(library)
        self._deadline_seconds = deadline_seconds

    async def search(self, query: KnowledgeQuery) -> KnowledgeAnswer:
        began = time.perf_counter()
        text = query.text if self._log_queries else REDACTED
        logger.info("search_knowledge_start", extra={"query": text})
        with self._spans.span("search.execute", product="knowledge", search_type=query.search_type.value):
            answer = await self._in_time(query)
        took_ms = (time.perf_counter() - began) * 1000
        facts = {"query": text, "result_count": len(answer.hits), "latency_ms": round(took_ms, 2)}
        logger.info("search_knowledge_complete", extra=facts)
        return replace(answer, took_ms=took_ms)

    async def _in_time(self, query: KnowledgeQuery) -> KnowledgeAnswer:
        deadline = Deadline(self._deadline_seconds)
        try:
            return await deadline.spend(1.0, self._answer(query, Attempt(deadline)))
        except TimeoutError:
            raise IndexUnavailable("no answer in time", hint="try again, or ask for less") from None

    async def _answer(self, query: KnowledgeQuery, attempt: Attempt) -> KnowledgeAnswer:
        retrieval = self._opened or await self._open_whole()
        result = await retrieval.retrieve(attempt, query)
        order = ordered(result.ranked_lists, result.max_sparse_score)
        ranked_hits = order if query.both else collapse_by_chunk(order)
        with self._spans.span("search.enrich"):
            hits = await _from_library(first_hits(self._library, self._sources, ranked_hits, query.limit))
        attempt.require_found(hits, Part.INDEX, Part.EMBEDDING)
        if not hits:
            await self._require_whole(retrieval)
        good_match = any_text_fits(result.ranked_lists, result.max_sparse_score, result.searched, self._scale)
        return KnowledgeAnswer(
            query.text,
            hits,
            result.by,
            degraded=attempt.parts_failed,
            index_version=retrieval.fingerprint,
            good_match=good_match and bool(hits),
        )

    async def _open(self) -> Retrieval:
        self._opened = Retrieval(self._embedder, *await self._open_indexes(), spans=self._spans)
        return self._opened

    async def ready(self) -> str:
        """Return the fingerprint of the index. Raise an error with the reason if the library is not searchable."""
        await self._library.ready()
        try:
            # Opened anew, to notice when another index has become live.
            opened = await self._open_whole()
        except (ModelMismatch, IndexLost):
            raise
        except SetupError as error:
            # An empty library before the first ingest is no fault.
            return error.message
        await self._require_whole(opened)
        return opened.fingerprint

    async def _open_whole(self) -> Retrieval:
        """Open the indexes. Raise IndexLost if there are none although the library has chunks."""
        try:
            return await self._open()
        except ModelMismatch:
            raise
        except SetupError as error:
            if not await _from_library(self._has_chunks()):
                raise
            raise IndexLost("the library has chunks, and their index is gone", hint=REINDEX_HINT) from error

    async def _require_whole(self, opened: Retrieval) -> None:
        """Raise IndexLost if only one of index and library has chunks: an empty answer would hide the loss."""
        if await opened.is_empty():
            if await _from_library(self._has_chunks()):
                raise IndexLost("the library has chunks, and its index has none", hint=REINDEX_HINT)
        elif not await _from_library(self._library.source_page("", 1)):
            raise IndexLost("the index has chunks, and the library has no sources", hint=RESTORE_HINT)

    async def _has_chunks(self) -> bool:
        """Return whether the first source has chunks; `ingest` checks completeness."""
        sources = await self._library.source_page("", 1)
        return bool(sources) and bool(await self._library.passage(sources[0].id, 0, 0))

    async def source(self, source_id: str) -> Source:
        sources = await _from_library(self._library.sources([require_id("source_id", source_id)]))
        if source_id not in sources:
            raise NotFound(f"there is no source {source_id}", hint="`list_sources` names all of them")
        return sources[source_id]

    async def sources(self, query: SourcesQuery) -> SourcesAnswer:
        one_more = query.limit + 1
        read = await _from_library(self._library.source_page(query.after, one_more, query.types, query.topics))
        page = read[: query.limit]
        next_after = page[-1].id if len(page) == query.limit else ""
        return SourcesAnswer(page, next_after, has_more=len(read) > query.limit)

    async def passage(self, query: PassageQuery) -> PassageAnswer:
        chunk = (await _from_library(self._library.chunks([query.chunk_id]))).get(query.chunk_id)
        if chunk is None:
            raise NotFound(f"there is no chunk {query.chunk_id}", hint="`search_knowledge` names those it finds")
        first, last = max(0, chunk.number - query.before), chunk.number + query.after
        source = await self.source(chunk.source_id)
        chunks = await _from_library(self._library.passage(chunk.source_id, first, last))
        return PassageAnswer(source, chunk, chunks)


async def _from_library(request: Awaitable[T]) -> T:
    """Report to the client only that the library fails. The log has the reason, which can name hosts."""
    try:
        return await request
    except (LibraryUnavailable, LibraryRejected, SetupError) as error:
        logger.warning("no answer from the library", extra={"part": "library", "reason": error.message})
        raise LibraryUnavailable("the library does not answer", hint="try again in a moment") from error
