"""A key set endpoint on loopback, which can fail as real ones do, and counts requests."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class KeySetEndpoint:
    """Serves the last argument of `serve`. While `held` is cleared, it does not answer."""

    def __init__(self) -> None:
        self.requests = 0
        self.held = threading.Event()
        self.held.set()
        self.reached = threading.Event()
        self._answer: tuple[int, bytes, dict[str, str]] = (404, b"", {})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/jwks.json"

    def serve(self, body: object, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._answer = (status, data, {name.replace("_", "-"): value for name, value in headers.items()})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                endpoint.requests += 1
                endpoint.reached.set()
                endpoint.held.wait(30)
                status, body, headers = endpoint._answer
                # A client that has read enough disconnects.
                with suppress(ConnectionError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        return Handler
