"""A local model hub with the protocol of the real one, which can be made to misbehave."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LARGE = 1_000_000
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BLOCK = 65_536
HELD_SECONDS = 120


@dataclass
class Hub:
    """`files` by the requested path. `asked` lists every request: method, file and range.

    While `may_send` is cleared, a large file does not come.
    """

    repository: str
    files: dict[str, bytes]
    url: str = ""
    refuses: int = 0
    breaks_after: int = 0
    damaged: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    may_send: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_send.set()

    def content(self, name: str) -> bytes:
        """Return the content to send; that of a damaged file does not match its hash."""
        whole = self.files[name]
        return whole[:-1] + bytes([whole[-1] ^ 1]) if name == self.damaged else whole


def hash_of(content: bytes) -> str:
    """Return the hash: SHA-256 for large files, the git blob hash for small ones."""
    if len(content) >= LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


@contextmanager
def open_hub(folder: Path, repository: str) -> Iterator[Hub]:
    hub = Hub(repository, {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})

    class Handler(_Handler):
        answers_for = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers_for: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self, *, with_body: bool) -> None:
        hub = self.answers_for
        prefix = f"/{hub.repository}/resolve/main/"
        name = self.path.removeprefix(prefix).partition("?")[0]
        hub.asked.append((self.command, name, self.headers.get("Range", "")))
        if hub.refuses:
            self._empty(hub.refuses)
        elif not self.path.startswith(prefix) or name not in hub.files:
            self._empty(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        else:
            self._file(hub, name, with_body=with_body)

    def _empty(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for header, value in {**(headers or {}), "Content-Length": "0"}.items():
            self.send_header(header, value)
        self.end_headers()

    def _file(self, hub: Hub, name: str, *, with_body: bool) -> None:
        whole, digest = hub.content(name), hash_of(hub.files[name])
        begins = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0] or 0)
        self.send_response(206 if begins else 200)
        if begins:
            self.send_header("Content-Range", f"bytes {begins}-{len(whole) - 1}/{len(whole)}")
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(whole))}
        headers = {"ETag": f'"{digest}"', **(linked if len(whole) >= LARGE else {})}
        for header, value in {**headers, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(whole) - begins))
        self.end_headers()
        if with_body:
            self._body(hub, whole, begins)

    def _body(self, hub: Hub, whole: bytes, begins: int) -> None:
        if len(whole) >= LARGE:
            hub.may_send.wait(HELD_SECONDS)
        breaks_at = hub.breaks_after if len(whole) >= LARGE else 0
        for position in range(begins, len(whole), BLOCK):
            if breaks_at and position >= breaks_at:
                hub.breaks_after = 0
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(whole[position : position + BLOCK])
