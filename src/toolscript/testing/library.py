"""An in-memory library with a clock that a test can move."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from toolscript.knowledge.model.ingest import ChunkMark, KnownSource
from toolscript.knowledge.model.library import Chunk, Extraction, Source, SourceStatus
from toolscript.knowledge.model.query import require_id

Stored = TypeVar("Stored", Source, Chunk, Extraction)


@dataclass(frozen=True)
class _Claim:
    run: str
    until: float


class MemoryLibrary:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sources: dict[str, KnownSource] = {}
        self._claims: dict[str, _Claim] = {}
        self._chunks: dict[str, Chunk] = {}
        self._marks: dict[str, ChunkMark] = {}
        self._extractions: dict[str, Extraction] = {}

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        return {id_: self._sources[id_].source for id_ in ids if id_ in self._sources}

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        return {id_: self._chunks[id_] for id_ in ids if id_ in self._chunks}

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        return {id_: self._extractions[id_] for id_ in ids if id_ in self._extractions}

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        matching = (
            stored.source
            for stored in self._sources.values()
            if (not types or stored.source.type in types) and (not topics or {*topics} & {*stored.source.topics})
        )
        return _page(matching, after, limit)

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        chunks = [
            chunk
            for chunk in self._chunks.values()
            if chunk.source_id == source_id and first <= chunk.number <= last
        ]
        return sorted(chunks, key=lambda chunk: (chunk.number, chunk.id))

    async def ready(self) -> None: ...
    async def prepare(self) -> None: ...
    async def known(self, paths: Sequence[str]) -> Mapping[str, KnownSource]:
        requested = {*paths}
        return {source.source.path: source for source in self._sources.values() if source.source.path in requested}

    async def known_under(self, folder: str, after: str, limit: int) -> Sequence[KnownSource]:
        inside = folder.rstrip("/") + "/" if folder else ""
        sources = [
            source
            for source in self._sources.values()
            if source.source.path.startswith(inside) and source.source.path > max(inside, after)
        ]
        return sorted(sources, key=lambda source: source.source.path)[:limit]

    async def claim(self, source: Source, run: str, seconds: float) -> bool:
        held = self._claims.get(require_id("id", source.id))
        if held and held.run != run and held.until > self._now():
            return False
        stored = self._sources.get(source.id, KnownSource(source))
        self._sources[source.id] = replace(stored, source=replace(stored.source, status=SourceStatus.INGESTING))
        self._claims[source.id] = _Claim(run, self._now() + seconds)
        return True

    async def marks(self, source_id: str) -> Mapping[str, ChunkMark]:
        return {id_: self._marks[id_] for id_, chunk in self._chunks.items() if chunk.source_id == source_id}

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self._chunks[require_id("id", chunk.id)] = chunk
            self._marks.setdefault(chunk.id, ChunkMark())

    async def mark_indexed(self, marks: Mapping[str, str]) -> None:
        for id_, indexed in marks.items():
            self._mark(id_, indexed=indexed)

    async def put_extractions(self, recipe: str, found: Mapping[str, Sequence[Extraction]]) -> None:
        self._drop_extractions(found.keys())
        for chunk_id, extractions in found.items():
            self._extractions |= {extraction.id: extraction for extraction in extractions}
            self._mark(chunk_id, extracted=recipe)

    async def extractions_of(self, chunk_ids: Sequence[str]) -> Sequence[Extraction]:
        requested = {*chunk_ids}
        extractions = [extraction for extraction in self._extractions.values() if extraction.chunk_id in requested]
        return sorted(extractions, key=lambda extraction: extraction.id)

    async def remove_chunks(self, ids: Sequence[str]) -> None:
        self._drop_extractions(ids)
        for id_ in ids:
            self._chunks.pop(id_, None)
            self._marks.pop(id_, None)

    async def finish(self, source: Source, run: str, content_hash: str, recipe: str) -> bool:
        if not self._has(source.id, run):
            return False
        self._sources[source.id] = KnownSource(replace(source, status=SourceStatus.READY), content_hash, recipe)
        del self._claims[source.id]
        return True

    async def release(self, source_id: str, run: str) -> None:
        if self._has(source_id, run):
            del self._claims[source_id]

    async def remove_source(self, source_id: str) -> None:
        self._sources.pop(source_id, None)
        self._claims.pop(source_id, None)

    def _has(self, source_id: str, run: str) -> bool:
        """Return whether the run holds the claim. An expired claim counts until another run takes it."""
        held = self._claims.get(source_id)
        return held is not None and held.run == run

    def _mark(self, chunk_id: str, **changed: str) -> None:
        if chunk_id in self._marks:
            self._marks[chunk_id] = replace(self._marks[chunk_id], **changed)

    def _drop_extractions(self, chunk_ids: Iterable[str]) -> None:
        dropped = {*chunk_ids}
        self._extractions = {
            id_: extraction for id_, extraction in self._extractions.items() if extraction.chunk_id not in dropped
        }


def _page(stored: Iterable[Stored], after: str, limit: int) -> list[Stored]:
    if after:
        require_id("after", after)
    return sorted((entry for entry in stored if entry.id > after), key=lambda entry: entry.id)[:limit]
