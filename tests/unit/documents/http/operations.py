"""Every operation of the running API that only callers may come to, as its own description lists them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

# Of tools, skills and the library, and of nobody's documents; whatever else the description lists is taken for one
# of them.
OF_NOBODY = ("/api/v1/", "/search_knowledge", "/sources", "/passages/")
OPEN = frozenset({("GET", "/livez"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/search/health")})
LINES, EVENTS = "application/x-ndjson", "text/event-stream"

Json = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """`headers` say what is wanted, and `body` is what a caller would send."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.headers.get('accept', '')}".strip()


def require_principal(openapi: Json, document_id: str = "doc-1") -> Iterator[Operation]:
    for template, operations in openapi["paths"].items():
        for method, described in operations.items():
            if template.startswith(OF_NOBODY) or (method.upper(), template) in OPEN:
                continue
            path = template.replace("{document_id}", document_id)
            assert "{" not in path, f"{template}: what stands for its parameter?"
            yield from _forms(method.upper(), path, described)


def _forms(method: str, path: str, described: Json) -> Iterator[Operation]:
    """Once for each content that is taken, and for each that is answered with."""
    taken = described.get("requestBody", {}).get("content", {"": {}})
    answered = described["responses"]["200"].get("content", {"": {}})
    for kind in taken:
        for accept in answered:
            headers = {name: value for name, value in (("content-type", kind), ("accept", accept)) if value}
            yield Operation(method, path, _body(path, method, kind) if kind else None, headers)


def _body(path: str, method: str, kind: str) -> bytes:
    if path == "/search":
        return b'{"query": "anything", "cursor": "*"}'
    if method == "DELETE":
        return b'{"ids": ["doc-1"]}'
    document = b'{"id": "doc-1", "text": "changed by a stranger"}'
    return document if kind == LINES else b'{"documents": [' + document + b"]}"


def as_sent(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Some have letters that a client would rather not send."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


def require_refusal(answer: httpx2.Response, secret: str, said: str) -> None:
    """Nothing but that one is no caller, in the one shape of errors."""
    assert answer.status_code == 401, f"{said}: {answer.text}"
    assert answer.headers["www-authenticate"].startswith("Bearer"), said
    told = answer.json()
    assert told.keys() == {"error"}, said
    assert told["error"].keys() == {"code", "message", "details"}, said
    assert told["error"]["code"] == "UNAUTHORIZED", said
    assert secret not in answer.text + str(answer.headers), said
