"""A real chat endpoint on loopback that sends what a test scripts, also late or never."""

import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

Model = Callable[[dict[str, Any]], object]
Tokens = tuple[object, object]


def completion(content: object, ended: str = "stop", used: Tokens | None = None) -> dict[str, object]:
    """Return a response body of the protocol with the model's text; `used` are tokens in and out."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": ended, "message": message}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    usage = {"usage": {"prompt_tokens": used[0], "completion_tokens": used[1]}} if used else {}
    return {**body, **usage}


@dataclass(frozen=True)
class Scripted:
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    hangs_before_body: bool = False
    dribbles: bool = False


class TextEndpoint:
    """Sends the scripted responses first, each once, then `default`. `asked` records the requests.

    `model`, if set, computes the response to each request instead; `always` replaces both.
    """

    def __init__(self, default: object = None, model: Model | None = None, used: Tokens | None = None) -> None:
        self.default = json.dumps({"requests": ["do it"]} if default is None else default)
        self.model = model
        self.used = used
        self.always: Scripted | None = None
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._scripted: deque[Scripted] = deque()
        self._closing = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer_once(self, body: object, status: int = 200, *headers: tuple[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._scripted.append(Scripted(data, status, headers))

    def say_once(self, content: object) -> None:
        self.answer_once(completion(content))

    def hang_once(self) -> None:
        """Send the headers of a response, and then nothing."""
        self._scripted.append(Scripted(b"", hangs_before_body=True))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: dict[str, Any], key: str | None) -> Scripted:
        self.asked.append(request)
        self.keys.append(key)
        if self._scripted:
            return self._scripted.popleft()
        if self.always:
            return self.always
        content = self.default if self.model is None else json.dumps(self.model(request))
        return Scripted(json.dumps(completion(content, used=self.used)).encode())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                scripted = endpoint._answer(request, self.headers["Authorization"])
                self.send_response(scripted.status)
                self.send_header("Content-Type", "application/json")
                for name, value in scripted.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(1 if scripted.hangs_before_body else len(scripted.body)))
                self.end_headers()
                if scripted.hangs_before_body:
                    endpoint._closing.wait()
                self._write(scripted)

            def _write(self, scripted: Scripted) -> None:
                """Write the body; the client may have disconnected."""
                with suppress(OSError):
                    for byte in scripted.body if scripted.dribbles else b"":
                        self.wfile.write(bytes([byte]))
                        if endpoint._closing.wait(0.05):
                            return
                    self.wfile.write(b"" if scripted.dribbles else scripted.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        return Handler
