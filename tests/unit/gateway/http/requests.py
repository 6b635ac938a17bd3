"""Requests directly to the app, with exactly the headers of the test."""

import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message

HOST = ("host", "127.0.0.1:7355")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error object; checks that the body contains nothing else."""
        (name, error), *more = self.json.items()
        assert (name, more) == ("error", [])
        assert sorted(error) == ["code", "details", "message"]
        return dict(error)


async def ask(
    app: ASGIApp,
    target: str,
    *headers: tuple[str, str],
    method: str = "GET",
    body: bytes | list[bytes] = b"",
    host: bool = True,
) -> Reply:
    """`target` is the raw path and query; `body` may be sent in parts."""
    path, _, query = target.partition("?")
    request_headers = [*([HOST] if host else []), *headers]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request_headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7355),
    }
    parts = [body] if isinstance(body, bytes) else list(body)
    sent: list[Message] = []

    async def receive() -> Message:
        if not parts:
            return {"type": "http.disconnect"}
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers_sent = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], headers_sent, b"".join(part.get("body", b"") for part in sent[1:]))
