"""A library that looks like a real one: chunks around real texts, in sources, and extractions of some of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from toolscript.evaluation.lookalikes import moved
from toolscript.evaluation.made_words import Numbers
from toolscript.evaluation.many_documents import WORDS_ADDED, Originals, mixed, terms_of, text_of
from toolscript.model.index import Point
from toolscript.model.library import (
    Chunk,
    Extraction,
    Position,
    Source,
    chunk_id,
    extraction_id,
    point_of,
    source_id,
)
from toolscript.model.models import Vector

CHUNKS_A_SOURCE = 200
# One chunk in so many has something worth extracting.
CHUNKS_AN_EXTRACTION = 10
SOURCE_TYPES = ("book", "paper", "case_study", "note")
EXTRACTED = ("decision", "pattern", "warning", "method", "checklist")
TOPICS = 40
WORDS_A_TITLE, WORDS_EXTRACTED = 5, 25


@dataclass(frozen=True)
class MadeSource:
    """A source with everything that is stored and indexed of it."""

    source: Source
    chunks: list[Chunk]
    chunk_points: list[Point]
    extractions: dict[str, list[Extraction]]
    extraction_points: list[Point]


def sources_of(originals: Originals, chunks: int, seed: int) -> Iterator[MadeSource]:
    """The same ones for the same seed."""
    for number in range(-(-chunks // CHUNKS_A_SOURCE)):
        count = min(CHUNKS_A_SOURCE, chunks - number * CHUNKS_A_SOURCE)
        yield _source(originals, number, count, np.random.default_rng([seed, number]))


def _source(originals: Originals, number: int, count: int, chance: np.random.Generator) -> MadeSource:
    title = f"Source {number}"
    topics = tuple(f"topic-{at}" for at in sorted({*chance.integers(TOPICS, size=3).tolist()}))
    id_ = source_id(f"/made/{number}")
    kind = SOURCE_TYPES[number % len(SOURCE_TYPES)]
    made = MadeSource(
        Source(id_, kind, title, f"/made/{number}", ("Somebody",), topics, chunk_count=count), [], [], {}, []
    )
    origins = chance.integers(len(originals.texts), size=count)
    vectors = moved(originals.vectors[origins], chance)
    added = originals.vocabulary.draw(chance, (count, WORDS_ADDED))
    for at in range(count):
        words = mixed(originals.words[origins[at]], added[at], chance)
        text = text_of(words, originals.vocabulary)
        position = Position(
            f"Chapter {at // 40}", f"Section {at // 8}", at // 3 + 1, at * 10 + 1, at * 800, at * 800
        )
        chunk = Chunk(chunk_id(id_, text, at), id_, at, text, position, len(words), topics)
        fields = {"source_id": id_, "topics": list(topics)}
        made.chunks.append(chunk)
        made.chunk_points.append(
            Point(point_of(chunk.id), 1, vectors[at], terms_of(words, originals.vocabulary), fields)
        )
        if at % CHUNKS_AN_EXTRACTION == 0:
            _extract(made, chunk, originals, words, vectors[at], chance)
    return made


def _extract(
    made: MadeSource,
    chunk: Chunk,
    originals: Originals,
    words: Numbers,
    vector: Vector,
    chance: np.random.Generator,
) -> None:
    kept = words[:WORDS_EXTRACTED]
    kind = EXTRACTED[chunk.number // CHUNKS_AN_EXTRACTION % len(EXTRACTED)]
    title, text = text_of(kept[:WORDS_A_TITLE], originals.vocabulary), text_of(kept, originals.vocabulary)
    one = Extraction(
        extraction_id(chunk.id, 0), chunk.source_id, chunk.id, kind, {"title": title, "text": text}, chunk.topics
    )
    fields = {"source_id": one.source_id, "chunk_id": chunk.id, "type": kind, "topics": list(chunk.topics)}
    near = moved(vector[None], chance)[0]
    made.extractions[chunk.id] = [one]
    made.extraction_points.append(Point(point_of(one.id), 1, near, terms_of(kept, originals.vocabulary), fields))
