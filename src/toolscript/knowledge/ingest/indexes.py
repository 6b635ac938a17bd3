"""The indexes of a library: the live versions, their points, and marks of indexed content."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.chunking import terms_of_chunk
from toolscript.core.errors import ModelMismatch, SetupError
from toolscript.core.retrieval.model import Fields, IndexCard, Point, Terms
from toolscript.core.retrieval.ports import Embedder, Index, Indexes
from toolscript.knowledge.ingest.chunking import chunk_terms, chunk_text
from toolscript.knowledge.model.library import Chunk, Extraction, point_of
from toolscript.knowledge.ports import LibraryReader

REINDEX = "toolscript ingest --reindex"


@dataclass(frozen=True)
class LibraryIndexes:
    """The indexes of chunks and extractions: created, switched and dropped together."""

    chunks: Indexes
    extractions: Indexes

    async def live(self) -> str | None:
        """Return the live fingerprint; None if either is missing, one that matches nothing if they differ."""
        chunks, extractions = await self.chunks.live(), await self.extractions.live()
        if chunks is None or extractions is None:
            return None
        return chunks if chunks == extractions else f"{chunks} and {extractions}"

    async def create(self, card: IndexCard) -> None:
        await self.extractions.create(card)
        await self.chunks.create(card)

    async def open(self, card: IndexCard) -> tuple[Index, Index]:
        return await self.chunks.open(card), await self.extractions.open(card)

    async def make_live(self, fingerprint: str) -> None:
        """Switch the chunks last: they decide which index version is live."""
        await self.extractions.make_live(fingerprint)
        await self.chunks.make_live(fingerprint)

    async def drop(self, fingerprint: str) -> None:
        await self.chunks.drop(fingerprint)
        await self.extractions.drop(fingerprint)


async def prepare_indexes(indexes: LibraryIndexes, card: IndexCard, reader: LibraryReader) -> None:
    """Require live indexes of this index version; create them for an empty library."""
    live = await indexes.live()
    if live is None:
        if await reader.source_page("", 1):
            raise SetupError(
                "the library has sources, and their index is gone", hint=f"`{REINDEX}` builds it from the library"
            )
        await indexes.create(card)
        await indexes.make_live(card.fingerprint)
    await require_live(indexes, card)


async def require_live(indexes: LibraryIndexes, card: IndexCard) -> None:
    live = await indexes.live()
    if live != card.fingerprint:
        raise ModelMismatch(
            f"the library's index has fingerprint {live}; model {card.model.name} would make {card.fingerprint}",
            hint="set TOOLSCRIPT_EMBEDDING_MODEL back to the model of the index, "
            f"or run `{REINDEX}` to build one with this model",
            details={"live": live, "wanted": card.fingerprint, "model": card.model.name},
        )


@dataclass(frozen=True)
class PointMark:
    """`chunk` and `extractions` are hashes of a chunk's indexed content; empty: nothing indexed, or unknown.

    `version` is that of the points. It increases with every write, even where clocks differ.
    """

    version: int = 0
    chunk: str = ""
    extractions: str = ""

    def __str__(self) -> str:
        return f"{self.version}.{self.chunk}.{self.extractions}"


def parse_mark(text: str) -> PointMark:
    """Parse a mark; an invalid one is as an unknown state."""
    version, *hashes = text.split(".")
    if not version.isdecimal() or len(hashes) != 2:
        return PointMark()
    return PointMark(int(version), *hashes)


def content_mark(fingerprint: str, entries: Iterable[tuple[str, Sequence[str], Fields]]) -> str:
    """Return a hash of ids, texts and payloads in the index of that fingerprint; empty without entries."""
    content = [[id_, texts, {name: fields[name] for name in sorted(fields)}] for id_, texts, fields in entries]
    if not content:
        return ""
    canonical = json.dumps([fingerprint, content], ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Entry:
    """The indexed text and payload of a chunk or an extraction, before its vectors are computed.

    `above` are texts that count for the sparse vector in addition to `text`.
    """

    id: str
    text: str
    above: Sequence[str]
    fields: Fields
    terms: Callable[[], Terms]


def chunk_entry(title: str, chunk: Chunk) -> Entry:
    fields = {"source_id": chunk.source_id, "topics": list(chunk.topics)}
    above = (title, chunk.position.chapter, chunk.position.section)
    return Entry(chunk.id, chunk_text(title, chunk), above, fields, lambda: chunk_terms(title, chunk))


def extraction_entry(chunk: Chunk, extraction: Extraction) -> Entry:
    """Return the entry of an extraction. It also has the topics of its source, so that filters find it."""
    fields = {
        "source_id": extraction.source_id,
        "chunk_id": extraction.chunk_id,
        "type": extraction.type,
        "topics": list(dict.fromkeys([*chunk.topics, *extraction.topics])),
    }
    title, text = extraction.content.get("title", ""), extraction.content.get("text", "")
    return Entry(extraction.id, extraction.text, (title,), fields, lambda: terms_of_chunk(title, text))


def mark_of(fingerprint: str, entries: Sequence[Entry]) -> str:
    return content_mark(fingerprint, [(entry.id, [entry.text, *entry.above], entry.fields) for entry in entries])


async def points_of(embedder: Embedder, entries: Sequence[Entry], version: int) -> Mapping[str, Point]:
    """Embed entries and return their points by id."""
    if not entries:
        return {}
    vectors = await embedder.embed_texts([entry.text for entry in entries])
    terms = await asyncio.to_thread(lambda: [entry.terms() for entry in entries])
    return {
        entry.id: Point(point_of(entry.id), version, vector, counted, entry.fields)
        for entry, vector, counted in zip(entries, vectors, terms, strict=True)
    }
