"""A server of 2025 over Streamable HTTP, with sessions that it can drop, and keep. Prints its port.

It answers one request after the other.
"""

import json
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.mcp_servers.raw import Params, outcome, said, tool, tools_only

SESSIONS: set[str] = set()
ONE_AT_A_TIME = threading.Lock()


def call(params: Params) -> object:
    if params["name"] == "forget":
        SESSIONS.clear()
        return said("forgotten")
    if params["name"] == "work":
        time.sleep(params["arguments"]["seconds"])
        return said("done")
    return said(json.dumps(params.get("arguments")))


HANDLERS = tools_only("old", [tool("echo"), tool("forget"), tool("work")], call)


class Old(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id", "")
        if request["method"] == "initialize":
            session = uuid.uuid4().hex
            SESSIONS.add(session)
        if session not in SESSIONS:
            refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}
            self._answer(404, refusal)
        elif "id" in request:
            with ONE_AT_A_TIME:
                answer = {"jsonrpc": "2.0", "id": request["id"], **outcome(HANDLERS, request)}
            self._answer(200, answer, session)
        else:
            self._answer(202, None)

    def do_GET(self) -> None:
        self._answer(405, None)

    def do_DELETE(self) -> None:
        if "keep" in sys.argv:
            threading.Event().wait()
        self._answer(405, None)

    def _answer(self, status: int, body: object, session: str = "") -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Old)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
