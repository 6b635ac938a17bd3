"""Which tool a model calls first, with a small endpoint that stands in for one."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.descriptions import NO_TOOL, OTHER, FirstCalls, bench_descriptions, first_call
from toolscript.core.errors import Rejected, SetupError, Unavailable
from toolscript.core.values import silent

REPLIES = {
    "read a file": {"name": "search_tools", "arguments": '{"query": "read a file"}'},
    "make an issue": {"name": "search_tools", "arguments": "not JSON"},
    "github__create_issue": {"name": "call_tool", "arguments": "{}"},
    "invent": {"name": "make_it_up", "arguments": "{}"},
    "hello": None,
}
# A benchmark has at least twenty requests.
FILLERS = [f"hello {number}" for number in range(15)]


class Endpoint(BaseHTTPRequestHandler):
    """Calls the tool that belongs to the request."""

    seen: list[dict[str, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({**body, "path": self.path, "authorization": self.headers.get("Authorization")})
        call = REPLIES.get(body["messages"][-1]["content"])
        message = {"role": "assistant", "tool_calls": [{"type": "function", "function": call}] if call else None}
        answer = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200 if body["model"] == "small" else 404)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Endpoint.seen.clear()
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def ask(tmp_path: Path, url: str, model: str = "small") -> FirstCalls:
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*REPLIES, *FILLERS]))
    return bench_descriptions(
        queries, url=url, model=model, api_key="k", servers=["github"], limit=20, on_progress=silent
    )


def test_the_first_tool_of_each_request_is_counted(tmp_path: Path, url: str) -> None:
    result = ask(tmp_path, url)
    assert result.first == {"search_tools": 2, "call_tool": 1, OTHER: 1, NO_TOOL: 16}
    assert (result.requests, result.wrong_arguments) == (20, 1)
    sent = Endpoint.seen[0]
    assert (sent["path"], sent["authorization"]) == ("/v1/chat/completions", "Bearer k")
    assert [tool["function"]["name"] for tool in sent["tools"]][:2] == ["search_tools", "describe_tool"]
    assert "Servers: github (1)." in sent["tools"][0]["function"]["description"]


def test_an_endpoint_that_cannot_be_used_is_said_to_be_so(tmp_path: Path, url: str) -> None:
    with pytest.raises(SetupError, match="404"):
        ask(tmp_path, url, "large")
    with pytest.raises(Unavailable, match="cannot be reached"):
        ask(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(Rejected, match="not one of a chat"):
        first_call({"error": "x"})
