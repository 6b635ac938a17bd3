"""A cursor is signed, for one tenant and one search, and for a while."""

import base64
import time
from dataclasses import replace

import pytest

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.fusion import Ranked
from toolscript.core.retrieval.results import Exactness, Total
from toolscript.documents import cursors
from toolscript.documents.cursors import Cursor, Cursors
from toolscript.documents.model.query import FIRST_PAGE, DocumentQuery

ACME, OTHER = Tenant("acme"), Tenant("other")
QUERY = DocumentQuery("taxes", cursor=FIRST_PAGE)
RANKED = Cursor(Total(12, Exactness.AT_LEAST), rest=[Ranked("0a" * 12, 0.5, 3), Ranked("0b" * 12, 0.25, 0)])
BY_KEY = Cursor(Total(7), after="0c" * 12)


@pytest.fixture
def service() -> Cursors:
    return Cursors(b"secret")


def continued(service: Cursors, cursor: Cursor = RANKED) -> DocumentQuery:
    return replace(QUERY, cursor=service.write(ACME, QUERY, cursor))


@pytest.mark.parametrize("cursor", [RANKED, BY_KEY])
def test_what_was_written_is_read(service: Cursors, cursor: Cursor) -> None:
    read = service.read(ACME, continued(service, cursor))
    assert (read.total, read.after) == (cursor.total, cursor.after)
    assert [(one.key, one.passage) for one in read.rest] == [(one.key, one.passage) for one in cursor.rest]
    assert [one.score for one in read.rest] == pytest.approx([one.score for one in cursor.rest], abs=1e-4)


def test_a_page_may_be_of_another_size_than_the_last(service: Cursors) -> None:
    assert service.read(ACME, replace(continued(service), top_k=3)).total == RANKED.total


def test_another_tenant_cannot_use_it(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="not for you"):
        service.read(OTHER, continued(service))


def test_another_search_cannot_use_it(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="another search"):
        service.read(ACME, replace(continued(service), text="wages"))


def test_another_secret_refuses_it(service: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="was not made here"):
        Cursors(b"other").read(ACME, continued(service))


def test_every_changed_bit_is_seen(service: Cursors) -> None:
    query = continued(service)
    raw = bytearray(base64.urlsafe_b64decode(query.cursor + "=" * (-len(query.cursor) % 4)))
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        with pytest.raises(InvalidRequest):
            service.read(ACME, replace(query, cursor=forged))
        raw[at // 8] ^= 1 << at % 8


@pytest.mark.parametrize("nonsense", ["x", "!!!", "AAAA", "é", "A" * 5_000, "**"])
def test_nonsense_is_refused(service: Cursors, nonsense: str) -> None:
    with pytest.raises(InvalidRequest, match="the cursor"):
        service.read(ACME, replace(QUERY, cursor=nonsense))


def test_an_old_one_is_refused(service: Cursors, monkeypatch: pytest.MonkeyPatch) -> None:
    query = continued(service)
    later = time.time() + cursors.VALID_SECONDS + 2
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(InvalidRequest, match="too old"):
        service.read(ACME, query)
