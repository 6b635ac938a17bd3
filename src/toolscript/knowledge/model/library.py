"""Values of a library: sources, chunks, types of extractions, and topics."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from toolscript.core.items import JsonObject
from toolscript.core.text import readable

SCHEMA_VERSION = 1

ID_PATTERN = "^[0-9a-f]{24}$"
# Ids are 12 bytes, written as 24 hex digits. Those of chunks and extractions have 4 bytes for the kind, then
# 8 bytes that are also the id of their point in an index.
_CHUNK, _EXTRACTION = b"chnk".hex(), b"extr".hex()
# A chunk's extractions share all but the last byte of its id, so that ids show which belong together.
MAX_EXTRACTIONS = 256

_ID = re.compile(ID_PATTERN)
MAX_TOPIC, MAX_TOPICS = 40, 32
_NO_TOPIC = re.compile(r"[^\w+#./ -]+")


class SourceStatus(StrEnum):
    INGESTING = "ingesting"
    READY = "ready"


@dataclass(frozen=True)
class Position:
    """A position in a source: offsets `start` (inclusive) to `end` (exclusive) of its text, first line `line`.

    A chapter is the outermost heading, a section the innermost one. Pages are counted from 1.
    """

    chapter: str = ""
    section: str = ""
    page: int | None = None
    line: int | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Source:
    """`path` identifies it: the same path later is the same source. Times are ISO 8601."""

    id: str
    type: str
    title: str
    path: str
    authors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    ingested_at: str = ""
    status: SourceStatus = SourceStatus.READY
    metadata: JsonObject = field(default_factory=dict)
    chunk_count: int = 0


@dataclass(frozen=True)
class Chunk:
    """`number` counts a source's chunks from 0, in reading order."""

    id: str
    source_id: str
    number: int
    content: str
    position: Position = Position()
    token_count: int = 0
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extraction:
    """A statement extracted from a chunk, of one type (decision, ...). `content` has `title` and `text`."""

    id: str
    source_id: str
    chunk_id: str
    type: str
    content: Mapping[str, str]
    topics: tuple[str, ...] = ()
    extracted_at: str = ""

    @property
    def text(self) -> str:
        return "\n".join(part for part in (self.content.get("title", ""), self.content.get("text", "")) if part)


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def source_id(path: str) -> str:
    return hashlib.blake2b(path.encode(), digest_size=12).hexdigest()


def chunk_id(source: str, content: str, occurrence: int = 0) -> str:
    """Return a stable id: same text and source, same id. `occurrence` numbers repeated texts from 0."""
    identity = f"{source}\0{occurrence}\0{content}".encode()
    return chunk_of_point(int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest()))


def extraction_id(of_chunk: str, number: int) -> str:
    """Return the id of the chunk's extraction `number`, counted from 0."""
    if not 0 <= number < MAX_EXTRACTIONS:
        raise ValueError(f"a chunk has at most {MAX_EXTRACTIONS} extractions")
    return f"{_EXTRACTION}{of_chunk[8:22]}{number:02x}"


def point_of(id_: str) -> int:
    """Return the id of the point that a chunk or an extraction has in an index."""
    return int(id_[8:], 16)


def chunk_of_point(point: int) -> str:
    return f"{_CHUNK}{point:016x}"


def extraction_of_point(point: int) -> str:
    return f"{_EXTRACTION}{point:016x}"


def chunk_key(point: int) -> int:
    """Return a key that is the same for a chunk's point and those of its extractions."""
    return point >> 8


def is_extraction(id_: str) -> bool:
    return id_.startswith(_EXTRACTION)


class ExtractionType(StrEnum):
    DECISION = "decision"
    PATTERN = "pattern"
    WARNING = "warning"
    METHOD = "method"
    CHECKLIST = "checklist"
    DEFINITION = "definition"
    FACT = "fact"
    EXAMPLE = "example"


MEANINGS = {
    ExtractionType.DECISION: "what was or should be chosen, and why",
    ExtractionType.PATTERN: "a solution that fits a kind of problem that comes again",
    ExtractionType.WARNING: "what goes wrong, or must not be done",
    ExtractionType.METHOD: "how something is done, step by step",
    ExtractionType.CHECKLIST: "what has to be there or be looked at, point by point",
    ExtractionType.DEFINITION: "what a term means",
    ExtractionType.FACT: "a figure, a limit or a relation that can be looked up",
    ExtractionType.EXAMPLE: "a case that shows how something works",
}


def clean_topic(text: str) -> str:
    """Return the normalised topic; empty if it is not a valid one."""
    topic = " ".join(_NO_TOPIC.sub(" ", readable(text)).lower().split())
    return topic if len(topic) <= MAX_TOPIC else ""


def clean_topics(texts: Iterable[str], maximum: int = MAX_TOPICS) -> tuple[str, ...]:
    """Return the normalised topics in order, without duplicates."""
    return tuple(dict.fromkeys(topic for text in texts if (topic := clean_topic(text))))[:maximum]
