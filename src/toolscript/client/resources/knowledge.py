"""The library of a service."""

from collections.abc import Sequence
from typing import Literal

from toolscript.client.answers.knowledge import KnowledgeSearchAnswer, LibraryChunk, LibrarySource
from toolscript.client.exchange import Steps
from toolscript.client.resource import PREFIX, Listing, M_co, Resource, listing, operation, step_of, values_of
from toolscript.client.resources.tools import SearchType

KNOWLEDGE = f"{PREFIX}/knowledge"

KnowledgeKind = Literal["chunk", "extraction"]


class Knowledge(Resource[M_co]):
    @operation
    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        kind: KnowledgeKind | Sequence[KnowledgeKind] | None = None,
        extraction_type: str | Sequence[str] | None = None,
        topics: str | Sequence[str] | None = None,
        source_id: str | Sequence[str] | None = None,
        search_type: SearchType | None = None,
        include_both: bool | None = None,
    ) -> Steps[KnowledgeSearchAnswer]:
        """Search chunks of the library and what was extracted from them; each hit names its source."""
        body = {
            "query": query,
            "limit": limit,
            "kind": values_of(kind),
            "extraction_type": values_of(extraction_type),
            "topics": values_of(topics),
            "source_id": values_of(source_id),
            "search_type": search_type,
            "include_both": include_both,
        }
        return self._ask("POST", f"{KNOWLEDGE}/search", KnowledgeSearchAnswer, body=body)

    @listing
    def list_sources(
        self,
        *,
        kind: str | Sequence[str] | None = None,
        topics: str | Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[LibrarySource]:
        """List the sources of the library."""
        more = {"kind": values_of(kind), "topics": values_of(topics)}
        return self._listing(f"{KNOWLEDGE}/sources", LibrarySource, page_size, cursor, **more)

    @operation
    def get_source(self, source_id: str) -> Steps[LibrarySource]:
        """Return a source."""
        return self._ask("GET", f"{KNOWLEDGE}/sources/{step_of(source_id)}", LibrarySource)

    @operation
    def get_chunk(
        self, chunk_id: str, *, before: int | None = None, after: int | None = None
    ) -> Steps[LibraryChunk]:
        """Return a chunk, and as many of its neighbours as requested."""
        query = {"before": before, "after": after}
        return self._ask("GET", f"{KNOWLEDGE}/chunks/{step_of(chunk_id)}", LibraryChunk, query=query)
