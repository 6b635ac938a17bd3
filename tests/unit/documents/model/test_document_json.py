"""Documents as JSON: what is one, and what is said of what is none."""

import json

import pytest

from toolscript.core.text import Passage
from toolscript.documents.model.document import (
    Document,
    PutOutcome,
    PutResult,
    StoredDocument,
    document_to_json,
    entry_read,
    line_read,
)
from toolscript.documents.schemas import DocumentShown

pytestmark = pytest.mark.requirement("DOC-006")


def test_a_document_comes_back_from_what_it_was_written_as() -> None:
    document = Document("a", "text", {"title": "T", "n": [1, 2.5, None, {"x": True}]})
    line = json.dumps(document_to_json(document)).encode()
    assert line_read(line) == document


def test_a_title_beside_the_metadata_becomes_part_of_it() -> None:
    read = entry_read({"id": "a", "text": "x", "title": "T", "metadata": {"title": "other", "n": 1}})
    assert isinstance(read, Document)
    assert read.metadata == {"title": "T", "n": 1}
    untitled = entry_read({"id": "a", "text": "x", "title": None, "metadata": None})
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
        (b'{"id": "a", "text": "x", "metadata": {"n": NaN}}', "a", "metadata has a number that is none"),
        (b'{"id": "a", "text": "x", "metadata": {"n": "\\ud800"}}', "a", "metadata has a character that is none"),
        (b'{"id": "\\ud800", "text": "x"}', "\ufffd", "id must be printable"),
        (b'{"id": "a", "text": "\\u0000"}', "a", "text has a character that is none"),
        (b'{"id": "a", "text": "x", "\\ud800": 1}', "a", "'\\ud800' is none of"),
        (b'{"id": "a", "text": "x", "metadata": ' + b'{"a":' * 20 + b"1" + b"}" * 21, "a", "metadata is nested"),
    ],
)
def test_what_is_none_is_refused_with_a_reason_that_can_be_shown(line: bytes, id_: str, problem: str) -> None:
    read = line_read(line)
    assert isinstance(read, PutResult)
    assert (read.outcome, read.id) == (PutOutcome.REFUSED, id_)
    assert read.problem.startswith(problem)
    (read.id + read.problem).encode()


def test_what_is_stored_is_shown_with_the_places_of_its_passages() -> None:
    stored = StoredDocument("a", "text", {"n": 1}, (Passage(0, 0, 4, "text"),))
    assert DocumentShown.of(stored).model_dump() == {
        "doc_id": "a",
        "text": "text",
        "metadata": {"n": 1},
        "passages": [{"number": 0, "start": 0, "end": 4}],
    }
