"""A server of 2024: HTTP with server-sent events, which answers 405 to the newer transport. Prints its port."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

from tests.support.mcp_servers.raw import Handler, greeting, outcome, said, tool

HANDLERS: dict[str, Handler] = {
    **greeting("old", "tools", protocol="2024-11-05"),
    "tools/list": lambda _: {"tools": [tool("echo", "Says what it is told")]},
    "tools/call": lambda params: said(json.dumps(params["arguments"])),
}


class Old(BaseHTTPRequestHandler):
    events: "SimpleQueue[str]" = SimpleQueue()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        events: SimpleQueue[str] = SimpleQueue()
        Old.events = events
        self._event("endpoint", "/messages")
        while True:
            self._event("message", events.get())

    def do_POST(self) -> None:
        request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(202 if self.path == "/messages" else 405)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if self.path == "/messages" and "id" in request:
            self.events.put(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome(HANDLERS, request)}))

    def _event(self, name: str, data: str) -> None:
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Old)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
