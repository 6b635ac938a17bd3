"""Every operation of the running API that requires a token, read from its OpenAPI description."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

# Routes of tools, skills, tenants and the library. Every other route counts as one of documents.
OTHER_ROUTES = ("/api/v1/", "/search_knowledge", "/sources", "/passages/")
DOCUMENTS = "/api/v1/documents"
OPEN = frozenset({("GET", "/livez"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/search/health")})
LINES, EVENTS = "application/x-ndjson", "text/event-stream"

Json = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One request: `headers` set the media types, `body` is what a client would send."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.headers.get('accept', '')}".strip()


def deletes(operation: Operation) -> bool:
    return operation.method == "DELETE" or operation.path == f"{DOCUMENTS}/delete"


def require_principal(openapi: Json, document_id: str = "doc-1") -> Iterator[Operation]:
    for template, operations in openapi["paths"].items():
        for method, described in operations.items():
            is_other = template.startswith(OTHER_ROUTES) and not template.startswith(DOCUMENTS)
            if is_other or (method.upper(), template) in OPEN:
                continue
            path = template.replace("{document_id}", document_id)
            assert "{" not in path, f"{template}: no value for its parameter"
            yield from _forms(method.upper(), path, described)


def _forms(method: str, path: str, described: Json) -> Iterator[Operation]:
    """Yield an operation for each request and response media type."""
    request_types = described.get("requestBody", {}).get("content", {"": {}})
    response_types = described["responses"]["200"].get("content", {"": {}})
    for content_type in request_types:
        for accept in response_types:
            headers = {
                name: value for name, value in (("content-type", content_type), ("accept", accept)) if value
            }
            yield Operation(method, path, _body(path, method, content_type) if content_type else None, headers)


def _body(path: str, method: str, kind: str) -> bytes:
    if path.endswith("/search"):
        return b'{"query": "anything", "cursor": "*"}'
    if method == "DELETE" or path.endswith("/delete"):
        return b'{"ids": ["doc-1"]}'
    document = b'{"id": "doc-1", "text": "changed without a token"}'
    return document if kind == LINES else b'{"documents": [' + document + b"]}"


def as_sent(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Encode headers, including characters that a client would refuse to send."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


def require_refusal(answer: httpx2.Response, secret: str, context: str) -> None:
    """Require a 401 in the common error format that reveals nothing."""
    assert answer.status_code == 401, f"{context}: {answer.text}"
    assert answer.headers["www-authenticate"].startswith("Bearer"), context
    body = answer.json()
    assert body.keys() == {"error"}, context
    assert body["error"].keys() == {"code", "message", "details"}, context
    assert body["error"]["code"] == "UNAUTHORIZED", context
    assert secret not in answer.text + str(answer.headers), context
