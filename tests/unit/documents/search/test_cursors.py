"""A cursor is signed, valid for one tenant and one search, and expires."""

import base64
import time
from dataclasses import replace

import pytest

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.fusion import RankedDocument
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.documents import cursors
from toolscript.documents.cursors import Cursor, Cursors
from toolscript.documents.model.query import FIRST_PAGE, DocumentQuery

ACME, OTHER = Tenant("acme"), Tenant("other")
QUERY = DocumentQuery("taxes", cursor=FIRST_PAGE)
RANKED = Cursor(
    Total(12, Exactness.AT_LEAST), rest=[RankedDocument("0a" * 12, 0.5, 3), RankedDocument("0b" * 12, 0.25, 0)]
)
# The kind that every version reads.
WITHOUT_VERDICT = 2
BY_KEY = Cursor(Total(7), after="0c" * 12)


@pytest.fixture
def service() -> Cursors:
    return Cursors(b"secret")


def continued(service: Cursors, cursor: Cursor = RANKED) -> DocumentQuery:
    return replace(QUERY, cursor=service.write(ACME, QUERY, cursor))


@pytest.mark.parametrize("cursor", [RANKED, BY_KEY])
def test_a_cursor_round_trips(service: Cursors, cursor: Cursor) -> None:
    read = service.read(ACME, continued(service, cursor))
    assert (read.total, read.after) == (cursor.total, cursor.after)
    assert [(entry.key, entry.passage) for entry in read.rest] == [
        (entry.key, entry.passage) for entry in cursor.rest
    ]
    assert [entry.score for entry in read.rest] == pytest.approx([entry.score for entry in cursor.rest], abs=1e-4)


@pytest.mark.parametrize("verdict", [True, False, None])
def test_a_cursor_of_a_ranking_carries_the_verdict_of_the_first_page(
    service: Cursors, verdict: bool | None
) -> None:
    read = service.read(ACME, continued(service, replace(RANKED, good_match=verdict)))
    assert (read.good_match, len(read.rest)) == (verdict, 2)


def test_a_cursor_without_a_verdict_is_as_before(service: Cursors) -> None:
    """A cursor that another version issued is read while both are running."""
    issued = base64.urlsafe_b64decode(continued(service).cursor + "==")
    assert issued[0] == WITHOUT_VERDICT


def test_the_page_size_may_change_between_pages(service: Cursors) -> None:
    assert service.read(ACME, replace(continued(service), top_k=3)).total == RANKED.total


def test_another_tenant_cannot_use_a_cursor(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="not for this tenant"):
        service.read(OTHER, continued(service))


def test_another_search_cannot_use_a_cursor(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="another search"):
        service.read(ACME, replace(continued(service), text="wages"))


def test_a_cursor_of_another_secret_is_refused(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="was not issued here"):
        Cursors(b"other").read(ACME, continued(service))


def test_every_changed_bit_is_detected(service: Cursors) -> None:
    query = continued(service)
    raw = bytearray(base64.urlsafe_b64decode(query.cursor + "=" * (-len(query.cursor) % 4)))
    for bit in range(len(raw) * 8):
        raw[bit // 8] ^= 1 << bit % 8
        forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        with pytest.raises(InvalidRequest):
            service.read(ACME, replace(query, cursor=forged))
        raw[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("nonsense", ["x", "!!!", "AAAA", "é", "A" * 5_000, "**"])
def test_nonsense_is_refused(service: Cursors, nonsense: str) -> None:
    with pytest.raises(InvalidRequest, match="the cursor"):
        service.read(ACME, replace(QUERY, cursor=nonsense))


def test_an_expired_cursor_is_refused(service: Cursors, monkeypatch: pytest.MonkeyPatch) -> None:
    query = continued(service)
    later = time.time() + cursors.VALID_SECONDS + 2
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(InvalidRequest, match="too old"):
        service.read(ACME, query)
