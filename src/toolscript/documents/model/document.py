"""Documents as JSON: `{id, text, title?, metadata?}`, as whoever puts them says it."""

import json
from collections.abc import Mapping

from toolscript.errors import InvalidRequest
from toolscript.model.documents import MOST_ID, Document, PutOutcome, PutResult, StoredDocument
from toolscript.model.text import readable

FIELDS = frozenset({"id", "text", "title", "metadata"})

Json = dict[str, object]


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
    return PutResult(readable(document_id)[:MOST_ID], PutOutcome.REFUSED, problem=problem)


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
        raise InvalidRequest(
            f"{field} {'is missing' if value is None else 'must be text'}", details={"field": field}
        )
    return value
