"""Documents as a tenant puts them and as the index stores them, and their JSON."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.results import DocumentKey
from toolscript.core.text import TextChunk, readable

MAX_ID = 512
MAX_TEXT = 1_000_000
MAX_METADATA_BYTES = 16 * 1024
MAX_METADATA_DEPTH = 8
FIELDS = frozenset({"id", "text", "title", "metadata"})

Json = dict[str, object]


def document_key(tenant: Tenant, document_id: str) -> DocumentKey:
    """Return the key. It includes the tenant, so the keys of two tenants never collide."""
    name = f"{tenant.name}\0{document_id}".encode()
    return hashlib.blake2b(name, digest_size=12).hexdigest()


@dataclass(frozen=True)
class Document:
    """`title` comes from the metadata, if there is one. It weighs more than the text."""

    id: str
    text: str
    metadata: JsonObject

    def __post_init__(self) -> None:
        _require(0 < len(self.id) <= MAX_ID and self.id.strip() == self.id, "id", f"must be 1 to {MAX_ID} long")
        _require(self.id.isprintable(), "id", "must be printable")
        _require(len(self.text) <= MAX_TEXT, "text", f"is longer than {MAX_TEXT} characters")
        for name, text in (("text", self.text), *(("metadata", value) for value in _strings(self.metadata))):
            _require("\0" not in text and _is_unicode(text), name, "has an invalid character")
        _require(len(self.canonical_metadata) <= MAX_METADATA_BYTES, "metadata", "is larger than 16 KiB")
        _require(bool(self.text.strip() or self.title), "text", "is blank")

    @property
    def title(self) -> str:
        title = self.metadata.get("title")
        return title.strip() if isinstance(title, str) else ""

    @cached_property
    def canonical_metadata(self) -> bytes:
        return json.dumps(
            self.metadata, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()

    @cached_property
    def content_hash(self) -> str:
        """Changes exactly when something that is stored, searched or returned changes."""
        return hashlib.sha256(self.text.encode() + b"\0" + self.canonical_metadata).hexdigest()[:32]


@dataclass(frozen=True)
class DocumentHeader:
    """The stored part of a document beside its chunks. Until it is `complete` it is still being written.

    `version` counts microseconds since 1970, by the clock of the writer; a later state always has a higher one.
    """

    key: DocumentKey
    id: str
    metadata: JsonObject
    content_hash: str
    passages: int
    version: int
    complete: bool = True


@dataclass(frozen=True)
class StoredDocument:
    """A document as a client reads it back. `version` is that of its header."""

    id: str
    text: str
    metadata: JsonObject
    passages: tuple[TextChunk, ...] = ()
    version: int = 0


class PutOutcome(StrEnum):
    """What became of a document that was put."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True)
class PutResult:
    """The outcome for one document, or why it was refused."""

    id: str
    outcome: PutOutcome
    passages: int = 0
    problem: str = ""


def join_chunks(chunks: Sequence[TextChunk]) -> str:
    """Return the text that the chunks were cut from. Overlaps count once."""
    parts, end = [], 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.start):
        parts.append(chunk.text[max(0, end - chunk.start) :])
        end = max(end, chunk.end)
    return "".join(parts)


def rebuild_document(header: DocumentHeader, chunks: Sequence[TextChunk]) -> Document | None:
    """Return the document, or None unless the chunks are exactly those of the header's text."""
    try:
        document = Document(header.id, join_chunks(chunks), header.metadata)
    except InvalidRequest:
        return None
    return document if document.content_hash == header.content_hash else None


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    _require(depth <= MAX_METADATA_DEPTH, "metadata", f"is nested deeper than {MAX_METADATA_DEPTH}")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner, depth + 1)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _strings(inner, depth + 1)
    else:
        _require(
            not isinstance(value, float) or math.isfinite(value), "metadata", "has a number that is not finite"
        )


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise InvalidRequest(f"{field} {problem}", details={"field": field})


def parse_line(line: bytes) -> Document | PutResult:
    """Return the document of a JSON line, or its refusal: a bad line never hides the good ones after it.

    UTF-8 only: guessing the encoding would mean guessing the text.
    """
    try:
        data = json.loads(str(line, "utf-8-sig"))
    except UnicodeDecodeError:
        return refusal("is not UTF-8")
    except (ValueError, RecursionError) as error:
        return refusal(f"is not JSON: {str(error)[:80]}")
    return parse_document(data)


def parse_document(data: object) -> Document | PutResult:
    try:
        return document_from_json(data)
    except InvalidRequest as error:
        document_id = data.get("id") if isinstance(data, Mapping) else None
        return refusal(error.message, document_id if isinstance(document_id, str) else "")


def refusal(problem: str, document_id: str = "") -> PutResult:
    """Return the refusal. The id is made readable and cut to the length of an id."""
    return PutResult(readable(document_id)[:MAX_ID], PutOutcome.REFUSED, problem=problem)


def document_from_json(data: object) -> Document:
    if not isinstance(data, Mapping):
        raise InvalidRequest("a document must be a JSON object")
    if unknown := sorted(str(name) for name in data.keys() - FIELDS):
        raise InvalidRequest(f"{unknown[0][:40]!r} is not one of id, text, title and metadata")
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidRequest("metadata must be a JSON object", details={"field": "metadata"})
    title = None if data.get("title") is None else _text(data, "title")
    return Document(
        _text(data, "id"), _text(data, "text"), {**(metadata or {}), **({} if title is None else {"title": title})}
    )


def document_to_json(document: Document) -> Json:
    return {"id": document.id, "text": document.text, "metadata": document.metadata}


def _text(data: Mapping[str, object], field: str) -> str:
    value = data.get(field)
    if not isinstance(value, str):
        raise InvalidRequest(
            f"{field} {'is missing' if value is None else 'must be text'}", details={"field": field}
        )
    return value
