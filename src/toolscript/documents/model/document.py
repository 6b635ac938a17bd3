"""Documents as a tenant puts them and as they are kept, and their JSON."""

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
from toolscript.core.text import Passage, readable

MAX_ID = 512
MAX_TEXT = 1_000_000
MAX_METADATA_BYTES = 16 * 1024
MAX_METADATA_DEPTH = 8
FIELDS = frozenset({"id", "text", "title", "metadata"})

Json = dict[str, object]


def document_key(tenant: Tenant, document_id: str) -> DocumentKey:
    """The tenant is part of it: a key of one tenant is none of any other."""
    name = f"{tenant.name}\0{document_id}".encode()
    return hashlib.blake2b(name, digest_size=12).hexdigest()


@dataclass(frozen=True)
class Document:
    """`title` is that of the metadata, if it has one: it counts more than the text."""

    id: str
    text: str
    metadata: JsonObject

    def __post_init__(self) -> None:
        _require(0 < len(self.id) <= MAX_ID and self.id.strip() == self.id, "id", f"must be 1 to {MAX_ID} long")
        _require(self.id.isprintable(), "id", "must be printable")
        _require(len(self.text) <= MAX_TEXT, "text", f"is longer than {MAX_TEXT} characters")
        for name, text in (("text", self.text), *(("metadata", one) for one in _strings(self.metadata))):
            _require("\0" not in text and _is_unicode(text), name, "has a character that is none")
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
        """Changes exactly when something that is stored, searched or handed out changes."""
        return hashlib.sha256(self.text.encode() + b"\0" + self.canonical_metadata).hexdigest()[:32]


@dataclass(frozen=True)
class DocumentHeader:
    """What is kept of a document beside its passages. One that is not `complete` is still being written."""

    key: DocumentKey
    id: str
    metadata: JsonObject
    content_hash: str
    passages: int
    version: int
    complete: bool = True


@dataclass(frozen=True)
class StoredDocument:
    """A document as it can be had back."""

    id: str
    text: str
    metadata: JsonObject
    passages: tuple[Passage, ...] = ()


class PutOutcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True)
class PutResult:
    """What became of one document, or why it was refused."""

    id: str
    outcome: PutOutcome
    passages: int = 0
    problem: str = ""


def whole_text(passages: Sequence[Passage]) -> str:
    """The text that passages were cut from; where two overlap it is taken once."""
    parts, at = [], 0
    for passage in sorted(passages, key=lambda one: one.start):
        parts.append(passage.text[max(0, at - passage.start) :])
        at = max(at, passage.end)
    return "".join(parts)


def as_put(header: DocumentHeader, passages: Sequence[Passage]) -> Document | None:
    """The document, if these are the passages of just the text that its header is of."""
    try:
        document = Document(header.id, whole_text(passages), header.metadata)
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
        _require(not isinstance(value, float) or math.isfinite(value), "metadata", "has a number that is none")


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise InvalidRequest(f"{field} {problem}", details={"field": field})


def line_read(line: bytes) -> Document | PutResult:
    """The document of a line of JSON, or its refusal: a bad line never hides the good ones after it.

    One encoding for all: a guess at it would be a guess at what the text says.
    """
    try:
        data = json.loads(str(line, "utf-8-sig"))
    except UnicodeDecodeError:
        return refusal("is not UTF-8")
    except (ValueError, RecursionError) as error:
        return refusal(f"is not JSON: {str(error)[:80]}")
    return entry_read(data)


def entry_read(data: object) -> Document | PutResult:
    try:
        return document_from_json(data)
    except InvalidRequest as error:
        named = data.get("id") if isinstance(data, Mapping) else None
        return refusal(error.message, named if isinstance(named, str) else "")


def refusal(problem: str, document_id: str = "") -> PutResult:
    """An id is shown as far as it could be one."""
    return PutResult(readable(document_id)[:MAX_ID], PutOutcome.REFUSED, problem=problem)


def document_from_json(data: object) -> Document:
    if not isinstance(data, Mapping):
        raise InvalidRequest("a document must be a JSON object")
    if unknown := sorted(str(name) for name in data.keys() - FIELDS):
        raise InvalidRequest(f"{unknown[0][:40]!r} is none of id, text, title and metadata")
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
