"""Documents as JSON: valid ones, and the reasons of refusals."""

import json
from dataclasses import replace

import pytest

from toolscript.core.text import TextChunk
from toolscript.documents.alias_schemas import DocumentAliasShown
from toolscript.documents.model.document import (
    Document,
    PutOutcome,
    PutResult,
    StoredDocument,
    document_to_json,
    parse_document,
    parse_line,
)
from toolscript.documents.schemas import DocumentShown

pytestmark = pytest.mark.requirement("DOC-006")


def test_a_document_round_trips_through_json() -> None:
    document = Document("a", "text", {"title": "T", "n": [1, 2.5, None, {"x": True}]})
    line = json.dumps(document_to_json(document)).encode()
    assert parse_line(line) == document


def test_a_title_beside_the_metadata_becomes_part_of_it() -> None:
    parsed = parse_document({"id": "a", "text": "x", "title": "T", "metadata": {"title": "other", "n": 1}})
    assert isinstance(parsed, Document)
    assert parsed.metadata == {"title": "T", "n": 1}
    untitled = parse_document({"id": "a", "text": "x", "title": None, "metadata": None})
    assert isinstance(untitled, Document)
    assert untitled.metadata == {}


@pytest.mark.parametrize(
    ("line", "id_", "problem"),
    [
        (b"", "", "is not JSON"),
        (b"\xff", "", "is not UTF-8"),
        ('{"id": "a", "text": "x"}'.encode("utf-16"), "", "is not UTF-8"),
        (b"[" * 99_999, "", "is not JSON"),
        (b"1" * 9_999, "", "is not JSON"),
        (b"null", "", "a document must be a JSON object"),
        (b'{"id": "a", "text": "x", "metadata": {"n": NaN}}', "a", "metadata has a number that is not finite"),
        (b'{"id": "a", "text": "x", "metadata": {"n": "\\ud800"}}', "a", "metadata has an invalid character"),
        (b'{"id": "\\ud800", "text": "x"}', "\ufffd", "id must be printable"),
        (b'{"id": "a", "text": "\\u0000"}', "a", "text has an invalid character"),
        (b'{"id": "a", "text": "x", "\\ud800": 1}', "a", "'\\ud800' is not one of"),
        (b'{"id": "a", "text": "x", "metadata": ' + b'{"a":' * 20 + b"1" + b"}" * 21, "a", "metadata is nested"),
    ],
)
def test_an_invalid_line_is_refused_with_a_printable_reason(line: bytes, id_: str, problem: str) -> None:
    parsed = parse_line(line)
    assert isinstance(parsed, PutResult)
    assert (parsed.outcome, parsed.id) == (PutOutcome.REFUSED, id_)
    assert parsed.problem.startswith(problem)
    (parsed.id + parsed.problem).encode()


def test_a_stored_document_is_returned_with_the_offsets_of_its_chunks() -> None:
    stored = StoredDocument("a", "text", {"n": 1}, (TextChunk(0, 0, 4, "text"),))
    rest = {"text": "text", "metadata": {"n": 1}}
    chunks = [{"number": 0, "start": 0, "end": 4}]
    assert DocumentAliasShown.of(stored).model_dump() == {"doc_id": "a", "passages": chunks, **rest}
    updated_at = "2026-11-17T20:00:00.123+00:00"
    assert DocumentShown.of(replace(stored, version=1_794_945_600_123_456)).model_dump() == {
        "id": "a",
        "chunks": chunks,
        "updated_at": updated_at,
        **rest,
    }
