"""The gateway as a separate process, over stdin and stdout."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.repo.sources import ROOT
from tests.unit.gateway.mcp.clients import text_of
from toolscript.core.mcp.endpoint import InputLines

COMMAND = [sys.executable, "-m", "tests.unit.gateway.mcp.stdio_gateway"]
SECONDS = 60
ME = {"name": "old", "version": "1"}

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_client_searches_and_calls_over_stdio(mode: str, protocol: str) -> None:
    process = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=ROOT)
    with anyio.fail_after(SECONDS):
        async with Client(stdio_client(process), mode=mode) as client:
            assert client.protocol_version == protocol
            search_result = await client.call_tool("search_tools", {"query": "read file", "limit": 1})
            called = await client.call_tool("call_tool", {"tool": "files__read_file"})
    assert text_of(search_result).startswith("files__read_file(path?) 1.00")
    assert text_of(called) == "called files__read_file"


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def exchange(messages: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Return the answers until the last request is answered, and stderr."""
    waiting = {message["id"] for message in messages if "id" in message}
    async with await anyio.open_process(COMMAND, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        await process.stdin.send("".join(json.dumps(message) + "\n" for message in messages).encode())
        received, answers = b"", list[dict[str, Any]]()
        while waiting - {answer.get("id") for answer in answers}:
            received += await process.stdout.receive()
            answers = [json.loads(line) for line in received.split(b"\n")[:-1]]
        await process.stdin.aclose()
        noise = b"".join([piece async for piece in process.stderr])
        assert await process.wait() == 0
    return answers, noise.decode()


async def test_a_client_of_2025_06_18_initialises_and_stdout_has_only_messages() -> None:
    client: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ME}
    messages = [
        request(1, "initialize", **client),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", name="call_tool", arguments={"tool": "files__read_file"}),
    ]
    with anyio.fail_after(SECONDS):
        answers, noise = await exchange(messages)
    by_id = {answer["id"]: answer["result"] for answer in answers}
    assert by_id[1]["protocolVersion"] == "2025-06-18"
    assert by_id[1]["serverInfo"]["version"] == "1.2.3"
    assert by_id[2]["content"] == [{"type": "text", "text": "called files__read_file"}]
    assert all(text in noise for text in ("printed", "from a child", "logged"))


async def test_ctrl_c_ends_it_though_its_input_stays_open() -> None:
    client: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ME}
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(COMMAND, cwd=ROOT, stderr=None) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send((json.dumps(request(1, "initialize", **client)) + "\n").encode())
            await process.stdout.receive()
            process.send_signal(signal.SIGINT)
            assert await process.wait() != 0


async def test_split_characters_and_a_last_line_without_newline_arrive_complete() -> None:
    reading, writing = os.pipe()
    lines = InputLines(reading)
    os.write(writing, "größ".encode()[:-1])
    waiting = asyncio.ensure_future(anext(lines))
    await anyio.lowlevel.checkpoint()
    os.write(writing, "größe\nzwei\ndrei".encode()[5:])
    os.close(writing)
    with anyio.fail_after(SECONDS):
        assert [await waiting, *[line async for line in lines]] == ["größe", "zwei", "drei"]
    os.close(reading)
