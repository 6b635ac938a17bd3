"""Opaque cursors of paged lists. Without FastAPI and Pydantic: the gateway has them, too."""

import base64
import json
import re
from collections.abc import Callable
from typing import TypeVar

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import MAX_ID

Key = str | int
AnyKey = TypeVar("AnyKey", str, int)

CURSOR_PATTERN = "^[A-Za-z0-9_-]*$"


def encode_cursor(key: Key) -> str:
    """Return a position in a list as text that clients only repeat."""
    text = json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_cursor(cursor: str, first: AnyKey) -> AnyKey:
    """Return the position in a cursor, which has the type of `first`; an empty cursor is `first`."""
    if not cursor:
        return first
    # The decoder skips other characters.
    if cursor.endswith("\n") or not re.match(CURSOR_PATTERN, cursor):
        raise _not_a_cursor()
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        key = None
    if type(key) is not type(first) or (isinstance(key, int) and not 0 <= key <= MAX_ID):
        raise _not_a_cursor()
    return key


def decode_key(cursor: str, is_key: Callable[[str], object]) -> str:
    """Return the key in a cursor, empty for the first page. Clients can send any text."""
    key = decode_cursor(cursor, "")
    if key and not is_key(key):
        raise _not_a_cursor()
    return key


def _not_a_cursor() -> InvalidRequest:
    return InvalidRequest(
        "this is no cursor of this list",
        hint="send `next_cursor` of the previous page unchanged, or no cursor for the first page",
        details={"field": "cursor"},
    )
