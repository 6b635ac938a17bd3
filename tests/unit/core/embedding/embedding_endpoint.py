"""A real embeddings endpoint on loopback: it returns vectors of hashed words, or what a test scripts."""

import json
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

import anyio

from toolscript.testing import HashEmbedder


class EmbeddingEndpoint:
    """Sends the scripted responses first, each once, then vectors. `asked` records the inputs."""

    def __init__(self, dimensions: int) -> None:
        self._embedder = HashEmbedder(dimensions=dimensions)
        self._scripted: deque[tuple[int, bytes]] = deque()
        self.asked: list[list[str]] = []
        self.keys: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer_once(self, body: object, status: int = 200) -> None:
        self._scripted.append((status, body if isinstance(body, bytes) else json.dumps(body).encode()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: dict[str, Any], key: str | None) -> tuple[int, bytes]:
        self.asked.append(request["input"])
        self.keys.append(key)
        if self._scripted:
            return self._scripted.popleft()
        vectors = anyio.run(self._embedder.embed_texts, request["input"])
        data = [
            {"object": "embedding", "index": index, "embedding": row.tolist()} for index, row in enumerate(vectors)
        ]
        # In reverse order: the protocol guarantees none.
        return 200, json.dumps({"object": "list", "model": request["model"], "data": data[::-1]}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, body = endpoint._answer(request, self.headers["Authorization"])
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        return Handler
