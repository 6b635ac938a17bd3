"""Documents as JSON: `{id, text, title?, metadata?}`, as whoever puts them says it."""

import json
from collections.abc import Mapping

from toolscript.errors import InvalidRequest
from toolscript.model.documents import Document, StoredDocument

FIELDS = frozenset({"id", "text", "title", "metadata"})

Json = dict[str, object]


def document_from_line(line: bytes) -> Document:
    """A line of JSON. One encoding for all: a guess at it would be a guess at what the text says."""
    try:
        return document_from_json(json.loads(str(line, "utf-8-sig")))
    except UnicodeDecodeError:
        raise InvalidRequest("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"is not JSON: {str(error)[:80]}") from None


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


def stored_to_json(document: StoredDocument) -> Json:
    places = [{"number": one.number, "start": one.start, "end": one.end} for one in document.passages]
    return {"doc_id": document.id, "text": document.text, "metadata": document.metadata, "passages": places}


def _text(data: Mapping[str, object], field: str) -> str:
    value = data.get(field)
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} {'is missing' if value is None else 'must be text'}", details={"field": field})
    return value
