"""A recording proxy in front of a gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.e2e.gateway.machines import Gateway


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    content_type: str | None
    body: str


@dataclass
class Recorder:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def recorded(gateway: Gateway) -> Iterator[Recorder]:
    recorder = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            target = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            message = Asked(self.command, target.path, query, self.headers.get("content-type"), body.decode())
            recorder.asked.append(message)
            answer = gateway.ask(self.path, self.command, content=body)
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorder.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
