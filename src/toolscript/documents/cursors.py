"""Signed cursors: the client holds the position in a search.

Paging through filtered documents follows the order of keys, which updates never change. Paging through a ranking
carries the rest of the first ranking in the cursor: a document keeps its rank, shows its current content, and
never comes twice, whatever is written meanwhile.
"""

import base64
import binascii
import hashlib
import hmac
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.fusion import RankedDocument
from toolscript.core.retrieval.results import DocumentKey, Exactness, Total
from toolscript.documents.model.query import DocumentQuery

VALID_SECONDS = 24 * 3600
_HEAD = struct.Struct(">BIBQ8s")
_PLACE = struct.Struct(">12sHH")
_SIGNATURE = 16
# A cursor of a ranking carries its verdict in its kind: a process that does not know it reads it as a ranking.
_BY_KEY, _BY_RANK, _GOOD_MATCH, _NO_GOOD_MATCH = 1, 2, 3, 4
_RANKINGS: Mapping[bool | None, int] = {None: _BY_RANK, True: _GOOD_MATCH, False: _NO_GOOD_MATCH}
_VERDICTS = {kind: verdict for verdict, kind in _RANKINGS.items()}
_FINEST = 65_535
_EXACTNESS = list(Exactness)


@dataclass(frozen=True)
class Cursor:
    """`after` is the last key when paging by key, `rest` the rest of a ranking; `total` and `good_match` are from
    the first page.
    """

    total: Total
    after: DocumentKey = ""
    rest: Sequence[RankedDocument] = ()
    good_match: bool | None = None


class Cursors:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def write(self, tenant: Tenant, query: DocumentQuery, cursor: Cursor) -> str:
        kind = _BY_KEY if cursor.after else _RANKINGS[cursor.good_match]
        until, total = int(time.time()) + VALID_SECONDS, cursor.total
        head = _HEAD.pack(kind, until, _EXACTNESS.index(total.exactness), total.value, query.fingerprint)
        body = bytes.fromhex(cursor.after) if cursor.after else b"".join(map(_place, cursor.rest))
        signed = head + body + self._signature(tenant, head + body)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()

    def read(self, tenant: Tenant, query: DocumentQuery) -> Cursor:
        signed = _decoded(query.cursor)
        body, signature = signed[:-_SIGNATURE], signed[-_SIGNATURE:]
        if len(body) < _HEAD.size or not hmac.compare_digest(signature, self._signature(tenant, body)):
            raise _refused("was not issued here, or not for this tenant")
        kind, until, exactness, value, fingerprint = _HEAD.unpack_from(body)
        if until < time.time():
            raise _refused("is too old")
        if fingerprint != query.fingerprint:
            raise _refused("belongs to another search")
        rest, total = body[_HEAD.size :], Total(value, _EXACTNESS[exactness])
        if kind == _BY_KEY:
            return Cursor(total, after=rest.hex())
        ranking = [_ranked(*entry) for entry in _PLACE.iter_unpack(rest)]
        return Cursor(total, rest=ranking, good_match=_VERDICTS.get(kind))

    def _signature(self, tenant: Tenant, body: bytes) -> bytes:
        named = tenant.name.encode() + b"\0" + body
        return hmac.new(self._secret, named, hashlib.sha256).digest()[:_SIGNATURE]


def _place(ranked: RankedDocument) -> bytes:
    return _PLACE.pack(bytes.fromhex(ranked.key), round(ranked.score * _FINEST), ranked.passage)


def _ranked(key: bytes, score: int, chunk: int) -> RankedDocument:
    return RankedDocument(key.hex(), score / _FINEST, chunk)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _refused("is not valid") from None


def _refused(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"the cursor {problem}",
        hint="send the same search with the next_cursor of its last page, or with cursor '*' to start anew",
        details={"field": "cursor"},
    )
