"""Values of a library as MongoDB documents, and back. Documents of other programs are read leniently."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from bson import ObjectId

from toolscript.core.errors import SetupError
from toolscript.core.items import JsonObject
from toolscript.knowledge.model.ingest import ChunkMark, KnownSource
from toolscript.knowledge.model.library import (
    SCHEMA_VERSION,
    Chunk,
    Extraction,
    Position,
    Source,
    SourceStatus,
    is_id,
)
from toolscript.knowledge.model.query import require_id
from toolscript.knowledge.mongo.connection import Document

# Characters that MongoDB interprets in field names, or does not allow there.
_RESERVED = re.compile(r"[%.$\0]")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")
_MAX_INTEGER = (1 << 63) - 1


def object_id(id_: str, name: str = "id") -> ObjectId:
    return ObjectId(require_id(name, id_))


def object_ids(ids: Iterable[str]) -> list[ObjectId]:
    """Return the valid ids; an invalid one identifies nothing."""
    return [ObjectId(id_) for id_ in ids if is_id(id_)]


def source_document(source: Source) -> Document:
    return {
        "type": source.type,
        "title": source.title,
        "authors": list(source.authors),
        "path": source.path,
        "topics": list(source.topics),
        "ingested_at": source.ingested_at,
        "status": source.status.value,
        "metadata": _storable(source.metadata),
        "chunk_count": source.chunk_count,
        "schema_version": SCHEMA_VERSION,
    }


def read_source(document: Mapping[str, Any]) -> Source:
    require_readable(document)
    return Source(
        id=str(document["_id"]),
        type=_text(document.get("type")),
        title=_text(document.get("title")),
        path=_text(document.get("path")),
        authors=_texts(document.get("authors")),
        topics=_texts(document.get("topics")),
        ingested_at=_text(document.get("ingested_at")),
        status=SourceStatus.INGESTING if document.get("status") == "ingesting" else SourceStatus.READY,
        metadata=_metadata(document.get("metadata")),
        chunk_count=_number(document.get("chunk_count")) or 0,
    )


def read_known(document: Mapping[str, Any]) -> KnownSource:
    return KnownSource(read_source(document), _text(document.get("content_hash")), _text(document.get("recipe")))


def chunk_document(chunk: Chunk) -> Document:
    return {
        "source_id": chunk.source_id,
        "number": chunk.number,
        "content": chunk.content,
        "position": asdict(chunk.position),
        "token_count": chunk.token_count,
        "topics": list(chunk.topics),
        "schema_version": SCHEMA_VERSION,
    }


def read_chunk(document: Mapping[str, Any]) -> Chunk:
    require_readable(document)
    return Chunk(
        id=str(document["_id"]),
        source_id=_text(document.get("source_id")),
        number=_number(document.get("number")) or 0,
        content=_text(document.get("content")),
        position=_position(document.get("position")),
        token_count=_number(document.get("token_count")) or 0,
        topics=_texts(document.get("topics")),
    )


def read_mark(document: Mapping[str, Any]) -> ChunkMark:
    return ChunkMark(_text(document.get("indexed")), _text(document.get("extracted")))


def extraction_document(extraction: Extraction) -> Document:
    return {
        "source_id": extraction.source_id,
        "chunk_id": extraction.chunk_id,
        "type": extraction.type,
        "content": _storable(extraction.content),
        "topics": list(extraction.topics),
        "extracted_at": extraction.extracted_at,
        "schema_version": SCHEMA_VERSION,
    }


def read_extraction(document: Mapping[str, Any]) -> Extraction:
    require_readable(document)
    return Extraction(
        id=str(document["_id"]),
        source_id=_text(document.get("source_id")),
        chunk_id=_text(document.get("chunk_id")),
        type=_text(document.get("type")),
        content={name: _text(value) for name, value in _metadata(document.get("content")).items()},
        topics=_texts(document.get("topics")),
        extracted_at=_text(document.get("extracted_at")),
    )


def require_readable(document: Mapping[str, Any]) -> None:
    version = _number(document.get("schema_version")) or 0
    if version > SCHEMA_VERSION:
        raise SetupError(
            f"the library was written by a newer toolscript: its schema version is {version}, and this one "
            f"knows {SCHEMA_VERSION}",
            hint="install the toolscript that wrote it, or a newer one",
        )


def _storable(value: object) -> Any:
    match value:
        case Mapping():
            return {
                _RESERVED.sub(lambda match: f"%{ord(match.group()):02X}", str(name)): _storable(item)
                for name, item in value.items()
            }
        case list() | tuple():
            return [_storable(item) for item in value]
        case int() if abs(value) > _MAX_INTEGER:
            return str(value)
    return value


def _metadata(value: object) -> JsonObject:
    read = _plain(value)
    return read if isinstance(read, dict) else {}


def _plain(value: object) -> Any:
    match value:
        case Mapping():
            return {
                _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), name): _plain(item)
                for name, item in value.items()
            }
        case list():
            return [_plain(item) for item in value]
        case None | str() | bool() | float():
            return value
        case int():
            # The driver has its own type for 64-bit integers.
            return int(value)
    return _text(value)


def _position(value: object) -> Position:
    if not isinstance(value, Mapping):
        return Position()
    return Position(
        chapter=_text(value.get("chapter")),
        section=_text(value.get("section")),
        page=_number(value.get("page")),
        line=_number(value.get("line")),
        start=_number(value.get("start")) or 0,
        end=_number(value.get("end")) or 0,
    )


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in value) if isinstance(value, list) else ()


def _number(value: object) -> int | None:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole else None  # type: ignore[call-overload]
