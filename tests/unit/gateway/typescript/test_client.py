"""A client calls its tools, under Deno and under Node, through a gateway with answers like ours."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest

from tests.unit.gateway.typescript.deno import run_client_under_deno, run_client_under_node
from tests.unit.gateway.typescript.schema_cases import TEXT, obj
from tests.unit.gateway.typescript.tools import tool
from toolscript.gateway.typescript.module import typescript_module

pytestmark = [pytest.mark.requirement("TS-009"), pytest.mark.slow]

Run = Callable[[str, str, str, str], str]
PROBLEM = {"error": {"code": "NOT_FOUND", "message": "no tool is called missing", "details": {}}}


def text_result(*texts: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text} for text in texts], "isError": False, **more}


ANSWERS: dict[str, tuple[int, object]] = {
    "files__read": (200, text_result("hello", structuredContent={"content": "hello"})),
    "files__plain": (200, text_result("hello")),
    "files__json": (200, text_result('{"lines": 3}')),
    "files__list": (200, text_result("[1, 2]")),
    "files__two": (200, text_result("{}", "{}")),
    "files__fails": (200, text_result("disk is full", isError=True)),
    "files__missing": (404, PROBLEM),
    "files__broken": (502, "not an envelope"),
    "my files/ü__odd name": (200, text_result("", structuredContent={"ok": True})),
}


@dataclass
class Gateway:
    """Records its requests in order: path, body and headers."""

    url: str = ""
    requests: list[tuple[str, Any, dict[str, str]]] = field(default_factory=list)


def handler(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = unquote(self.path.removeprefix("/tools/"))
            gateway.requests.append((name, body, {key.lower(): value for key, value in self.headers.items()}))
            status, answer = ANSWERS[name]
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write((answer if isinstance(answer, str) else json.dumps(answer)).encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    recorder = Gateway()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(recorder)) as server:
        recorder.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield recorder
        server.shutdown()
        thread.join()


READ = tool(obj(("path",), path=TEXT), server="files", name="read", output=obj(("content",), content=TEXT))
NAMES = ("plain", "json", "list", "two", "fails", "missing", "broken")
ITEMS = [READ, *(tool(server="files", name=name) for name in NAMES), tool(server="my files/ü", name="odd name")]
CALL_ALL = """
    const read = await tools.files.read({ path: "a.txt" });
    console.log(JSON.stringify(read.content));
    for (const name of ["plain", "json", "list", "two", "fails", "missing", "broken"]) {
      const answer = await tools.files[name]().catch((error) => error.message);
      console.log(JSON.stringify(answer));
    }
    console.log(JSON.stringify(await tools.myFilesÜ["odd name"]({})));
"""
TYPED = CALL_ALL.replace('"broken"]', '"broken"] as const').replace("(error)", "(error: Error)")


@pytest.mark.parametrize(
    ("run", "script", "compact"),
    [
        (run_client_under_deno, TYPED, False),
        (run_client_under_deno, TYPED, True),
        (run_client_under_node, CALL_ALL, False),
    ],
    ids=["deno", "deno-compact", "node"],
)
def test_a_client_returns_the_tools_result_and_throws_its_error(
    run: Run, script: str, compact: bool, gateway: Gateway
) -> None:
    printed = run(gateway.url, typescript_module(ITEMS, compact=compact), script, "")
    assert [json.loads(line) for line in printed.splitlines()] == [
        "hello",
        {"content": [{"type": "text", "text": "hello"}]},
        {"lines": 3},
        {"content": [{"type": "text", "text": "[1, 2]"}]},
        {"content": [{"type": "text", "text": "{}"}, {"type": "text", "text": "{}"}]},
        "disk is full",
        "no tool is called missing",
        "Tool call failed: 502 Bad Gateway",
        {"ok": True},
    ]
    assert [(name, body) for name, body, _ in gateway.requests][:2] == [
        ("files__read", {"path": "a.txt"}),
        ("files__plain", {}),
    ]


def test_a_client_sends_the_token_it_is_given_and_none_otherwise(gateway: Gateway) -> None:
    script = 'await tools.files.read({ path: "a" });'
    for run in (partial(run_client_under_deno, check=False), run_client_under_node):
        run(f"{gateway.url}/", typescript_module(ITEMS), script, "secret")
        run(gateway.url, typescript_module(ITEMS), script, "")
    assert [headers.get("authorization") for _, _, headers in gateway.requests] == ["Bearer secret", None] * 2
    assert {headers["content-type"] for _, _, headers in gateway.requests} == {"application/json"}


def test_a_client_without_the_gateways_address_throws() -> None:
    script = 'await tools.files.read({ path: "a" });'
    with pytest.raises(RuntimeError, match="TOOLSCRIPT_GATEWAY_URL not set"):
        run_client_under_deno("", typescript_module(ITEMS), script, check=False)


def test_deno_refuses_a_call_with_other_arguments(gateway: Gateway) -> None:
    with pytest.raises(RuntimeError, match="TS2322"):
        run_client_under_deno(gateway.url, typescript_module(ITEMS), "await tools.files.read({ path: 1 });")
    assert gateway.requests == []
