"""`toolscript mcp` as a process between a client and an MCP server over HTTP."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from socket import create_server, socket
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from starlette.routing import Route

from tests.e2e.commands import command, environment
from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.mcp.serving import serve
from toolscript.core.mcp.sessions import mcp_asgi_with_sessions
from toolscript.gateway.bridge import READING, Bridge, _lines
from toolscript.gateway.bridge_http import Address
from toolscript.gateway.bridge_place import BridgeSettings, Finder, parse_options
from toolscript.gateway.first_answers import PIPE_HEADER, FirstAnswers
from toolscript.gateway.mcp.definitions import definitions_of_tools
from toolscript.gateway.mcp.tools import create_mcp_server

SECONDS = 60
ME = {"name": "old", "version": "1"}
BEGIN: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ME}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]


@asynccontextmanager
async def a_gateway() -> AsyncIterator[str]:
    app, opened = mcp_asgi_with_sessions(create_mcp_server(GatewayDouble(), "1.2.3"), one_stream=PIPE_HEADER)
    async with serve([Route("/mcp", app)], opened) as address:
        yield address


def pipe_to(address: str) -> dict[str, str]:
    return environment({"TOOLSCRIPT_GATEWAY_URL": address})


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_client_searches_and_calls_over_stdio(mode: str, protocol: str) -> None:
    async with a_gateway() as address:
        program, *arguments = command("mcp")
        process = StdioServerParameters(command=program, args=arguments, env=pipe_to(address))
        with anyio.fail_after(SECONDS):
            async with Client(stdio_client(process), mode=mode) as client:
                assert client.protocol_version == protocol
                search_result = await client.call_tool("search_tools", {"query": "read file", "limit": 1})
                called = await client.call_tool("call_tool", {"tool": "files__read_file"})
    assert text_of(search_result).startswith("files__read_file(path?) 1.00")
    assert text_of(called) == "called files__read_file"


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def exchange(address: str, *messages: dict[str, Any] | str) -> list[dict[str, Any]]:
    """Return what `toolscript mcp` writes until the last request is answered and it has ended."""
    waiting = {message["id"] for message in messages if isinstance(message, dict) and "id" in message}
    lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(command("mcp"), env=pipe_to(address), stderr=None) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send("".join(f"{line}\n" for line in lines).encode())
            received, answers = b"", list[dict[str, Any]]()
            while waiting - {answer.get("id") for answer in answers}:
                received += await process.stdout.receive()
                answers = [json.loads(line) for line in received.split(b"\n")[:-1]]
            await process.stdin.aclose()
            assert await process.wait() == 0
    return answers


async def test_a_client_of_2025_06_18_initialises_and_need_not_wait_for_answers() -> None:
    call = request(2, "tools/call", name="call_tool", arguments={"tool": "files__read_file"})
    async with a_gateway() as address:
        answers = await exchange(address, request(1, "initialize", **BEGIN), INITIALIZED, call)
    by_id = {answer["id"]: answer["result"] for answer in answers if "id" in answer}
    assert by_id[1]["protocolVersion"] == "2025-06-18"
    assert by_id[1]["serverInfo"]["version"] == "1.2.3"
    assert by_id[2]["content"] == [{"type": "text", "text": "called files__read_file"}]


async def test_what_is_no_message_is_answered_as_an_error_and_ends_nothing() -> None:
    async with a_gateway() as address:
        answers = await exchange(address, "no json", "[1]", request(1, "initialize", **BEGIN))
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32700, -32600}
    assert any(answer.get("id") == 1 for answer in answers)


async def test_a_request_before_the_first_one_is_answered_too() -> None:
    async with a_gateway() as address:
        [answer] = await exchange(address, request(7, "tools/list"))
    assert "search_tools" in str(answer["result"]["tools"])


async def test_ctrl_c_ends_it_though_its_input_stays_open() -> None:
    with anyio.fail_after(SECONDS):
        async with a_gateway() as address:
            process = await anyio.open_process(command("mcp"), env=pipe_to(address), stderr=subprocess.DEVNULL)
            async with process:
                assert process.stdin is not None
                assert process.stdout is not None
                await process.stdin.send((json.dumps(request(1, "initialize", **BEGIN)) + "\n").encode())
                await process.stdout.receive()
                process.send_signal(signal.SIGINT)
                assert await process.wait() != 0


async def test_split_characters_and_a_last_line_without_newline_arrive_complete() -> None:
    reading, writing = os.pipe()
    sent = "größe\nzwei\ndrei".encode()
    lines = _lines(reading)
    os.write(writing, sent[:5])
    first = asyncio.ensure_future(asyncio.to_thread(next, lines))
    await anyio.lowlevel.checkpoint()
    os.write(writing, sent[5:])
    os.close(writing)
    assert [await first, *lines] == [b"gr\xc3\xb6\xc3\x9fe", b"zwei", b"drei"]
    os.close(reading)


async def test_a_session_ends_with_its_process() -> None:
    """However that ends: a call of a client that is gone must not go on."""
    app, opened = mcp_asgi_with_sessions(create_mcp_server(GatewayDouble(), "1.2.3"), one_stream=PIPE_HEADER)
    sessions: Any = app
    with anyio.fail_after(SECONDS):
        async with serve([Route("/mcp", app)], opened) as address:
            process = await anyio.open_process(command("mcp"), env=pipe_to(address))
            assert process.stdin is not None
            assert process.stdout is not None
            messages = (request(1, "initialize", **BEGIN), INITIALIZED, request(2, "ping"))
            await process.stdin.send("".join(f"{json.dumps(message)}\n" for message in messages).encode())
            while b'"id":2' not in await process.stdout.receive():
                pass
            assert sessions._sessions._server_instances
            process.kill()
            while sessions._sessions._server_instances:
                await anyio.lowlevel.checkpoint()
            await process.aclose()


# What a gateway does that ends.


@contextmanager
def gateway_that(*answers: Callable[[bytes], bytes]) -> Iterator[str]:
    """Serve one connection by each; None of them listens any more afterwards."""
    listener = create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def serve_each() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(answer(_request_in(connection)))
        listener.close()

    thread = threading.Thread(target=serve_each, daemon=True)
    thread.start()
    yield address
    listener.close()


def _request_in(connection: socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    while lengths and len(body) < int(lengths[0]):
        body += connection.recv(65536)
    return body


def ends(_: bytes) -> bytes:
    return b""


def answers(body: bytes) -> bytes:
    result = json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": {"tools": []}}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(result),
        result,
    )


def breaks_off(_: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nff\r\ndata: {"


def alive(_: bytes) -> bytes:
    return b'HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\n{"status":"alive"}'


@pytest.mark.parametrize("end", [ends, breaks_off])
async def test_a_call_that_was_sent_is_not_sent_again_and_its_outcome_is_unknown(end: Any) -> None:
    with gateway_that(end, alive, answers) as address:
        [said] = await exchange(address, request(1, "tools/call", name="call_tool", arguments={}))
    assert said["result"]["isError"]
    [block] = said["result"]["content"]
    assert block["text"] == "the gateway ended during this call: its outcome is unknown"


@pytest.mark.parametrize(("method", "name"), [("prompts/list", ""), ("tools/call", "search_tools")])
async def test_what_changes_nothing_is_asked_again(method: str, name: str) -> None:
    with gateway_that(ends, alive, answers) as address:
        [said] = await exchange(address, request(1, method, name=name))
    assert said["result"] == {"tools": []}


def test_the_tools_that_are_called_again_are_those_that_change_nothing() -> None:
    tools: Any = definitions_of_tools(split=True)
    reading = [tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]]
    assert sorted(reading) == sorted(READING)


async def test_without_any_gateway_a_call_says_what_to_do() -> None:
    with gateway_that() as address:
        pass
    [said] = await exchange(address, request(1, "tools/call", name="call_tool", arguments={}))
    assert "does not answer" in said["result"]["content"][0]["text"]
    assert "ask the user to start it again" in said["result"]["content"][0]["text"]


# What is light, and what is answered first.


def test_it_loads_nothing_that_takes_long_to_import() -> None:
    code = (
        "import sys; sys.argv = ['toolscript', 'mcp', '--no-such'];"
        "from toolscript.gateway.bridge_place import parse_options; assert parse_options(sys.argv[2:]) is None;"
        "import toolscript.__main__, toolscript.gateway.bridge, toolscript.gateway.launch;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"mcp", "pydantic", "numpy", "typer", "starlette", "asyncio", "http", "email", "logging", "ssl"}
    assert not heavy & set(loaded.stdout.split())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2026-07-28", "unheard-of"])
def test_the_first_answers_of_the_package_are_of_every_version(tmp_path: Path, version: str) -> None:
    first = FirstAnswers(tmp_path, split=False)
    tools = first.to("tools/list", {}, version)
    assert tools is not None
    assert "search_tools" in [tool["name"] for tool in tools["tools"]]
    begin = first.to("initialize", {}, version)
    if version != "2026-07-28":
        assert begin is not None
        assert begin["protocolVersion"] == (version if version[:2] == "20" else "2025-11-25")
    assert first.to("tools/list", {"cursor": "x"}, version) is None
    assert first.to("tools/call", {}, version) is None


def test_those_of_the_last_gateway_count_where_they_are_of_this_version(tmp_path: Path) -> None:
    file = tmp_path / "first_answers.json"
    known = json.loads(Path(sys.modules[FirstAnswers.__module__].__file__ or "").with_suffix(".json").read_text())
    known["split"]["2025-11-25"]["tools/list"] = {"tools": []}
    file.write_text(json.dumps(known))
    assert FirstAnswers(tmp_path, split=True).to("tools/list", {}, "2025-06-18") == {"tools": []}
    file.write_text(json.dumps({**known, "version": "0"}))
    assert FirstAnswers(tmp_path, split=True).to("tools/list", {}, "2025-06-18") != {"tools": []}
    file.write_text("{")
    assert FirstAnswers(tmp_path, split=True).to("tools/list", {}, "2025-06-18") is not None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--direct", "--config", "a b"], {"direct": "--direct", "config": "a b"}),
        (
            ["--data-dir=/x", "--model", "none", "--alone"],
            {"data_dir": "/x", "search_model": "none", "alone": "--alone"},
        ),
        (["--help"], None),
        (["--config"], None),
        (["--alone=1"], None),
    ],
)
def test_options_are_read_without_the_command_line(words: list[str], expected: dict[str, str] | None) -> None:
    assert parse_options(words) == expected


@pytest.mark.parametrize(
    ("url", "place"), [("http://127.0.0.1:7355/w/abc", "127.0.0.1"), ("http://[::1]:7355", "::1")]
)
def test_an_address_is_taken_apart(url: str, place: str) -> None:
    address = Address(url)
    assert (address.host, address.port) == (place, 7355)
    assert address.path == ("/w/abc" if "/w/" in url else "")


def test_a_variable_that_cannot_be_used_is_for_the_command_line() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        BridgeSettings({}, {"TOOLSCRIPT_GATEWAY_ALONE": "perhaps"})


def test_questions_of_two_sessions_under_one_id_stay_apart() -> None:
    settings = BridgeSettings({}, {})
    bridge = Bridge(settings, Finder(settings), 0, 1)
    sessions: Any = [object(), object()]
    question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create"}
    data = json.dumps(question).encode()
    assert bridge._noted(question, data, sessions[0], None) == data
    other = json.loads(bridge._noted(question, data, sessions[1], None))
    assert other["id"] != 1
    assert bridge._asked[json.dumps(other["id"])][:2] == (sessions[1], 1)
