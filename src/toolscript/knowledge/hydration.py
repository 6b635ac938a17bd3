"""What is shown of hits: their text, and where it stands. One read of each kind of thing, for all hits at once."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from toolscript.model.knowledge import CHUNK, EXTRACTION, KnowledgeHit
from toolscript.model.library import Chunk, Extraction, Source, is_extraction
from toolscript.ports import LibraryReader
from toolscript.search.knowledge.ordering import Placed
from toolscript.search.knowledge.source_memory import SourceMemory

MORE = 4


async def first_hits(
    library: LibraryReader, sources: SourceMemory, order: Iterable[Placed], limit: int
) -> list[KnowledgeHit]:
    """The first that are still there. Where some have left, the next take their places."""
    hits: list[KnowledgeHit] = []
    rest, at_once = iter(order), limit
    while len(hits) < limit and (following := list(islice(rest, at_once))):
        hits += await _hits(library, sources, following)
        at_once *= MORE
    return hits[:limit]


async def _hits(library: LibraryReader, memory: SourceMemory, order: Sequence[Placed]) -> list[KnowledgeHit]:
    named = [one.id for one in order if is_extraction(one.id)]
    extractions = await library.extractions(named) if named else {}
    wanted = [one.id for one in order if not is_extraction(one.id)]
    chunks = await library.chunks(list({*wanted, *(one.chunk_id for one in extractions.values())}))
    sources = await memory.read({chunk.source_id for chunk in chunks.values()})
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
