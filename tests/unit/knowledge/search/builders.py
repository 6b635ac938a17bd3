"""A small library with both of its indexes, on any engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from toolscript.core.chunking import terms_of_chunk
from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.model import IndexCard, Point
from toolscript.core.retrieval.ports import Embedder, Index, Indexes
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.knowledge.model.library import (
    Chunk,
    Extraction,
    Position,
    Source,
    chunk_id,
    extraction_id,
    point_of,
    source_id,
)
from toolscript.knowledge.model.query import KnowledgeAnswer, KnowledgeQuery
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.testing import HashEmbedder, MemoryLibrary

CARD = IndexCard(HashEmbedder().model)

GUIDE = ("Keeping bees", ["The hive needs a dry place", "Feed sugar in autumn", "A queen lays eggs in spring"])
PAPER = ("On steel bridges", ["Bridges rust where water stands", "Paint every bridge in spring"])


@dataclass
class Shelf:
    chunks: Index
    extractions: Index
    library: MemoryLibrary = field(default_factory=MemoryLibrary)
    embedder: Any = field(default_factory=HashEmbedder)
    scale: CosineScale | None = None

    def __post_init__(self) -> None:
        self.search = _search(self.embedder, self.chunks, self.extractions, self.library, self.scale)

    def breaks(self, part: str, method: str, error: ToolscriptError) -> None:
        """Make a method of one part fail from now on."""
        parts = {name: getattr(self, name) for name in ("embedder", "chunks", "extractions", "library")}
        self.search = _search(**{**parts, part: _Broken(parts[part], method, error)}, scale=self.scale)

    async def add(self, title: str, texts: list[str], topics: tuple[str, ...] = ()) -> list[Chunk]:
        """Add a source with these chunks."""
        source = Source(source_id(title), "book", title, title, authors=("Ann",), topics=topics)
        await self.library.claim(source, "run", 60)
        chunks = [
            Chunk(
                chunk_id(source.id, text),
                source.id,
                number,
                text,
                Position("One", f"Part {number}", number + 1),
                5,
                topics,
            )
            for number, text in enumerate(texts)
        ]
        await self.library.put_chunks(chunks)
        await self.library.finish(source, "run", "hash", "recipe")
        fields = {"source_id": source.id, "topics": list(topics)}
        await self.chunks.put([await self._point(chunk.id, chunk.content, fields) for chunk in chunks])
        return chunks

    async def extract(
        self, chunk: Chunk, type_: str, title: str, text: str = "", topics: tuple[str, ...] = ()
    ) -> Extraction:
        before = await self.library.extractions_of([chunk.id])
        id_ = extraction_id(chunk.id, len(before))
        extraction = Extraction(id_, chunk.source_id, chunk.id, type_, {"title": title, "text": text}, topics)
        await self.library.put_extractions("recipe", {chunk.id: [*before, extraction]})
        fields = {"source_id": extraction.source_id, "type": type_, "topics": list(topics)}
        await self.extractions.put([await self._point(extraction.id, extraction.text, fields)])
        return extraction

    async def ask(self, text: str, **options: object) -> KnowledgeAnswer:
        return await self.search.search(KnowledgeQuery(text, **options))  # type: ignore[arg-type]

    async def found(self, text: str, **options: object) -> list[str]:
        return [hit.content for hit in (await self.ask(text, **options)).hits]

    async def _point(self, id_: str, text: str, fields: Mapping[str, object]) -> Point:
        vector = (await self.embedder.embed_texts([text]))[0]
        return Point(point_of(id_), 1, vector, terms_of_chunk("", text), fields)


def _search(
    embedder: Embedder,
    chunks: Index,
    extractions: Index,
    library: LibraryReader,
    scale: CosineScale | None = None,
) -> KnowledgeSearch:
    async def open_indexes() -> tuple[Index, Index]:
        return chunks, extractions

    return KnowledgeSearch(embedder, open_indexes, library, scale=scale)


@dataclass
class _Broken:
    real: Any
    method: str
    error: ToolscriptError

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self.method else getattr(self.real, name)

    async def _fail(self, *_: object) -> NoReturn:
        raise self.error


async def open_shelf(chunks: Indexes, extractions: Indexes) -> Shelf:
    for indexes in (chunks, extractions):
        await indexes.create(CARD)
    return Shelf(await chunks.open(CARD), await extractions.open(CARD))
