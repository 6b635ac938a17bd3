"""Hydration: text and position of hits, with a cache of their sources. One read for all hits of a kind."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from toolscript.core.retrieval.cache import TtlCache
from toolscript.knowledge.model.library import Chunk, Extraction, Source, is_extraction
from toolscript.knowledge.model.query import CHUNK, EXTRACTION, KnowledgeHit
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.retrieval import RankedHit

CACHED_SOURCES = 20_000
CACHE_TTL_SECONDS = 60.0
MORE = 4


class SourceCache:
    def __init__(
        self, library: LibraryReader, size: int = CACHED_SOURCES, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._sources = TtlCache[str, Source](size, CACHE_TTL_SECONDS, now)

    async def read(self, ids: Collection[str]) -> Mapping[str, Source]:
        """Return the sources that exist; one read loads those that are not cached."""
        cached = {id_: source for id_ in ids if (source := self._sources.get(id_)) is not None}
        missing = [id_ for id_ in ids if id_ not in cached]
        if not missing:
            return cached
        read = await self._library.sources(missing)
        self._sources.put(read)
        return {**cached, **read}


async def first_hits(
    library: LibraryReader, sources: SourceCache, order: Iterable[RankedHit], limit: int
) -> list[KnowledgeHit]:
    """Return the first hits that the library still has; later candidates replace those that are gone."""
    hits: list[KnowledgeHit] = []
    rest, at_once = iter(order), limit
    while len(hits) < limit and (following := list(islice(rest, at_once))):
        hits += await _hits(library, sources, following)
        at_once *= MORE
    return hits[:limit]


async def _hits(library: LibraryReader, cache: SourceCache, order: Sequence[RankedHit]) -> list[KnowledgeHit]:
    extraction_ids = [ranked_hit.id for ranked_hit in order if is_extraction(ranked_hit.id)]
    extractions = await library.extractions(extraction_ids) if extraction_ids else {}
    chunk_ids = [ranked_hit.id for ranked_hit in order if not is_extraction(ranked_hit.id)]
    extracted_from = {extraction.chunk_id for extraction in extractions.values()}
    chunks = await library.chunks(list({*chunk_ids, *extracted_from}))
    sources = await cache.read({chunk.source_id for chunk in chunks.values()})
    hits = (_hit(ranked_hit, extractions, chunks, sources) for ranked_hit in order)
    return [hit for hit in hits if hit is not None]


def _hit(
    ranked_hit: RankedHit,
    extractions: Mapping[str, Extraction],
    chunks: Mapping[str, Chunk],
    sources: Mapping[str, Source],
) -> KnowledgeHit | None:
    extraction = extractions.get(ranked_hit.id)
    chunk = chunks.get(extraction.chunk_id if extraction else ranked_hit.id)
    source = sources.get(chunk.source_id) if chunk else None
    if chunk is None or source is None:
        return None
    return KnowledgeHit(
        id=ranked_hit.id,
        score=ranked_hit.score,
        kind=EXTRACTION if extraction else CHUNK,
        type=extraction.type if extraction else "",
        content=extraction.text if extraction else chunk.content,
        chunk_id=chunk.id,
        source=source,
        position=chunk.position,
        topics=extraction.topics if extraction else chunk.topics,
    )
