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
def desk() -> Cursors:
    return Cursors(b"secret")


def continued(desk: Cursors, cursor: Cursor = RANKED) -> DocumentQuery:
    return replace(QUERY, cursor=desk.write(ACME, QUERY, cursor))


@pytest.mark.parametrize("cursor", [RANKED, BY_KEY])
def test_what_was_written_is_read(desk: Cursors, cursor: Cursor) -> None:
    read = desk.read(ACME, continued(desk, cursor))
    assert (read.total, read.after) == (cursor.total, cursor.after)
    assert [(one.key, one.passage) for one in read.rest] == [(one.key, one.passage) for one in cursor.rest]
    assert [one.score for one in read.rest] == pytest.approx([one.score for one in cursor.rest], abs=1e-4)


def test_a_page_may_be_of_another_size_than_the_last(desk: Cursors) -> None:
    assert desk.read(ACME, replace(continued(desk), top_k=3)).total == RANKED.total


def test_another_tenant_cannot_use_it(desk: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="not for you"):
        desk.read(OTHER, continued(desk))


def test_another_search_cannot_use_it(desk: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="another search"):
        desk.read(ACME, replace(continued(desk), text="wages"))


def test_another_secret_refuses_it(desk: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="was not made here"):
        Cursors(b"other").read(ACME, continued(desk))


def test_every_changed_bit_is_seen(desk: Cursors) -> None:
    query = continued(desk)
    raw = bytearray(base64.urlsafe_b64decode(query.cursor + "=" * (-len(query.cursor) % 4)))
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        with pytest.raises(InvalidRequest):
            desk.read(ACME, replace(query, cursor=forged))
        raw[at // 8] ^= 1 << at % 8


@pytest.mark.parametrize("nonsense", ["x", "!!!", "AAAA", "é", "A" * 5_000, "**"])
def test_nonsense_is_refused(desk: Cursors, nonsense: str) -> None:
    with pytest.raises(InvalidRequest, match="the cursor"):
        desk.read(ACME, replace(QUERY, cursor=nonsense))


def test_an_old_one_is_refused(desk: Cursors, monkeypatch: pytest.MonkeyPatch) -> None:
    query = continued(desk)
    later = time.time() + cursors.VALID_SECONDS + 2
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(InvalidRequest, match="too old"):
        desk.read(ACME, query)
