"""Hydration: text and position of hits, with a cache of their sources. One read for all hits of a kind."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from toolscript.core.retrieval.cache import TtlCache
from toolscript.knowledge.model.library import Chunk, Extraction, Source, is_extraction
from toolscript.knowledge.model.query import CHUNK, EXTRACTION, KnowledgeHit
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.retrieval import Placed

REMEMBERED = 20_000
REMEMBERED_SECONDS = 60.0
MORE = 4


class SourceCache:
    def __init__(
        self, library: LibraryReader, size: int = REMEMBERED, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._sources = TtlCache[str, Source](size, REMEMBERED_SECONDS, now)

    async def read(self, ids: Collection[str]) -> Mapping[str, Source]:
        """Those that are there, the others in one read."""
        known = {id_: source for id_ in ids if (source := self._sources.get(id_)) is not None}
        missing = [id_ for id_ in ids if id_ not in known]
        if not missing:
            return known
        read = await self._library.sources(missing)
        self._sources.put(read)
        return {**known, **read}


async def first_hits(
    library: LibraryReader, sources: SourceCache, order: Iterable[Placed], limit: int
) -> list[KnowledgeHit]:
    """The first that are still there. Where some have left, the next take their places."""
    hits: list[KnowledgeHit] = []
    rest, at_once = iter(order), limit
    while len(hits) < limit and (following := list(islice(rest, at_once))):
        hits += await _hits(library, sources, following)
        at_once *= MORE
    return hits[:limit]


async def _hits(library: LibraryReader, cache: SourceCache, order: Sequence[Placed]) -> list[KnowledgeHit]:
    named = [one.id for one in order if is_extraction(one.id)]
    extractions = await library.extractions(named) if named else {}
    wanted = [one.id for one in order if not is_extraction(one.id)]
    chunks = await library.chunks(list({*wanted, *(one.chunk_id for one in extractions.values())}))
    sources = await cache.read({chunk.source_id for chunk in chunks.values()})
    shown = (_hit(one, extractions, chunks, sources) for one in order)
    return [hit for hit in shown if hit is not None]


def _hit(
    placed: Placed,
    extractions: Mapping[str, Extraction],
    chunks: Mapping[str, Chunk],
    sources: Mapping[str, Source],
) -> KnowledgeHit | None:
    extraction = extractions.get(placed.id)
    chunk = chunks.get(extraction.chunk_id if extraction else placed.id)
    source = sources.get(chunk.source_id) if chunk else None
    if chunk is None or source is None:
        return None
    return KnowledgeHit(
        id=placed.id,
        score=placed.score,
        kind=EXTRACTION if extraction else CHUNK,
        type=extraction.type if extraction else "",
        content=extraction.text if extraction else chunk.content,
        chunk_id=chunk.id,
        source=source,
        position=chunk.position,
        topics=extraction.topics if extraction else chunk.topics,
    )
