"""Chunks and extractions as they go into their indexes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.model.index import Fields, Point, Terms
from toolscript.model.library import Chunk, Extraction, point_of
from toolscript.model.passages import passage_terms
from toolscript.ports import Embedder
from toolscript.sync.chunking import chunk_terms, chunk_text
from toolscript.sync.library_marks import content_mark


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
    return Entry(extraction.id, extraction.text, (title,), fields, lambda: passage_terms(title, text))


def mark_of(fingerprint: str, entries: Sequence[Entry]) -> str:
    return content_mark(fingerprint, [(one.id, [one.text, *one.above], one.fields) for one in entries])


async def points_of(embedder: Embedder, entries: Sequence[Entry], version: int) -> Mapping[str, Point]:
    """By id."""
    if not entries:
        return {}
    vectors = await embedder.embed_passages([one.text for one in entries])
    terms = await asyncio.to_thread(lambda: [one.terms() for one in entries])
    return {
        one.id: Point(point_of(one.id), version, vector, counted, one.fields)
        for one, vector, counted in zip(entries, vectors, terms, strict=True)
    }
