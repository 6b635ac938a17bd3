"""The indexes of a library: which are written, their points, and marks of what is written already."""

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
    """Of chunks and of extractions: made, named and dropped together."""

    chunks: Indexes
    extractions: Indexes

    async def live(self) -> str | None:
        """None where either is missing, and no fingerprint at all where they differ: neither is any use alone."""
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
        """Chunks last: what is live goes by them."""
        await self.extractions.make_live(fingerprint)
        await self.chunks.make_live(fingerprint)

    async def drop(self, fingerprint: str) -> None:
        await self.chunks.drop(fingerprint)
        await self.extractions.drop(fingerprint)


async def prepare_indexes(indexes: LibraryIndexes, card: IndexCard, reader: LibraryReader) -> None:
    """They are live and made with this card; those of a library without anything in it are made now."""
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
    """`chunk` and `extractions` stand for what is in the indexes of it; empty: nothing, or nobody knows.

    `version` is that of the points. What comes later has a later one, even where clocks differ.
    """

    version: int = 0
    chunk: str = ""
    extractions: str = ""

    def __str__(self) -> str:
        return f"{self.version}.{self.chunk}.{self.extractions}"


def mark_read(text: str) -> PointMark:
    """Whatever is no mark says that nobody knows."""
    version, *hashes = text.split(".")
    if not version.isdecimal() or len(hashes) != 2:
        return PointMark()
    return PointMark(int(version), *hashes)


def content_mark(fingerprint: str, entries: Iterable[tuple[str, Sequence[str], Fields]]) -> str:
    """Of ids, texts and fields as they are in the index of that fingerprint; of nothing, nothing."""
    told = [[id_, texts, {name: fields[name] for name in sorted(fields)}] for id_, texts, fields in entries]
    if not told:
        return ""
    canonical = json.dumps([fingerprint, told], ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Entry:
    """What is indexed of one thing, before anybody has embedded it or counted its words.

    `above` is what beside the text its words are taken from.
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
    """Whoever asks for a topic of the source finds what was extracted from it, too."""
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
    """By id."""
    if not entries:
        return {}
    vectors = await embedder.embed_passages([entry.text for entry in entries])
    terms = await asyncio.to_thread(lambda: [entry.terms() for entry in entries])
    return {
        entry.id: Point(point_of(entry.id), version, vector, counted, entry.fields)
        for entry, vector, counted in zip(entries, vectors, terms, strict=True)
    }
