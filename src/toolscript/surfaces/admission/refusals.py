"""What a request that there is no capacity for is answered, made of ready bytes: refusing must cost nothing."""

import json
from functools import cache

from starlette.types import Message

from toolscript.errors import Overloaded
from toolscript.search.fallbacks import RETRY_AFTER_SECONDS, overloaded
from toolscript.surfaces.admission.table import MCP_PATH
from toolscript.surfaces.error_table import ERROR_TABLE, envelope_of

STATUS = ERROR_TABLE[Overloaded].http_status


def refusal(path: str, *headers: tuple[bytes, bytes]) -> tuple[Message, Message]:
    """The two messages of the answer."""
    body = _body(is_mcp=path == MCP_PATH)
    told = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"%d" % RETRY_AFTER_SECONDS),
        *headers,
    ]
    return (
        {"type": "http.response.start", "status": STATUS, "headers": told},
        {"type": "http.response.body", "body": body},
    )


@cache
def _body(*, is_mcp: bool) -> bytes:
    """Clients of MCP also read an error of the protocol, see mcp_service/guard.py."""
    error = overloaded()
    said = envelope_of(error)
    if is_mcp:
        message = f"{error.message}. {error.hint}"
        said = {"jsonrpc": "2.0", "id": None, "error": {"code": STATUS, "message": message, "data": said}}
    return json.dumps(said).encode()
