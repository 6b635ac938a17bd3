"""Finds chunks and extractions of a library at once, and leads from a hit to its source and its surroundings."""

from toolscript.errors import NotFound
from toolscript.model.knowledge import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
    require_id,
)
from toolscript.model.library import Source
from toolscript.ports import Embedder, Index, LibraryReader


class KnowledgeSearch:
    def __init__(
        self,
        embedder: Embedder,
        chunks: Index,
        extractions: Index,
        library: LibraryReader,
        *,
        deadline_seconds: float = 10.0,
    ) -> None:
        self._embedder = embedder
        self._chunks = chunks
        self._extractions = extractions
        self._library = library
        self._deadline_seconds = deadline_seconds

    async def search(self, query: KnowledgeQuery) -> KnowledgeAnswer:
        raise NotImplementedError

    async def source(self, source_id: str) -> Source:
        found = await self._library.sources([require_id("source_id", source_id)])
        if source_id not in found:
            raise NotFound(f"there is no source {source_id}", hint="`list_sources` names all of them")
        return found[source_id]

    async def sources(self, query: SourcesQuery) -> SourcesAnswer:
        page = await self._library.source_page(query.after, query.limit, query.types, query.topics)
        return SourcesAnswer(page, page[-1].id if len(page) == query.limit else "")

    async def passage(self, query: PassageQuery) -> PassageAnswer:
        chunk = (await self._library.chunks([query.chunk_id])).get(query.chunk_id)
        if chunk is None:
            raise NotFound(f"there is no chunk {query.chunk_id}", hint="`search_knowledge` names those it finds")
        first, last = max(0, chunk.number - query.before), chunk.number + query.after
        return PassageAnswer(
            await self.source(chunk.source_id), await self._library.passage(chunk.source_id, first, last)
        )
