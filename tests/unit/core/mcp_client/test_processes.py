"""No process of a server outlives its use, however the server or the gateway ends."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.core.mcp_client.builders import (
    QUICK,
    ROOT,
    SOON,
    Watched,
    faulty,
    plain,
    until_ready,
    until_status,
    watched,
)
from toolscript.core.errors import ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, ServerStatus, Transport
from toolscript.core.mcp_client.servers import McpServers
from toolscript.core.mcp_client.stdio import _message

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


@pytest.mark.alone
async def test_after_close_children_and_their_children_are_gone_however_stubborn() -> None:
    servers = McpServers(QUICK)
    servers.use([faulty("stubborn"), faulty("leaves_a_child"), faulty("hangs_at_start"), plain()])
    await until_ready(servers, "stubborn", "leaves_a_child", "plain")
    processes = [await watched(servers, "stubborn"), await watched(servers, "leaves_a_child")]
    began = time.monotonic()
    await servers.close()
    assert time.monotonic() - began < 4
    assert [group.still_there(0) for group in processes] == [[], []]


@pytest.mark.alone
async def test_a_removed_server_ends_without_delaying_the_others(servers: McpServers) -> None:
    servers.use([faulty("stubborn"), plain()])
    await until_ready(servers, "stubborn", "plain")
    processes = await watched(servers, "stubborn")
    began = time.monotonic()
    servers.use([plain()])
    assert time.monotonic() - began < 0.1
    await servers.call("plain", "echo", {})
    assert time.monotonic() - began < 0.5
    await servers.close()
    assert processes.still_there(0) == []


async def test_a_changed_server_starts_only_when_the_one_before_is_gone(servers: McpServers) -> None:
    servers.use([faulty("stubborn")])
    await until_ready(servers, "stubborn")
    processes = await watched(servers, "stubborn")
    servers.use([faulty("stubborn", call_seconds=10.0)])
    await until_ready(servers, "stubborn")
    assert processes.still_there(0) == []


async def test_a_start_that_is_cut_off_at_any_moment_leaves_no_process(servers: McpServers) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    servers.use([plain()])
    await until_ready(servers, "plain")
    for moments in range(40):
        args = ("-S", "-c", "import time; time.sleep(600)", mark)
        servers.use([plain(), ServerSpec(f"cut off {moments}", Transport.STDIO, sys.executable, args)])
        for _ in range(moments):
            await asyncio.sleep(0)
        servers.use([plain()])
    await servers.close()
    gc.collect()
    assert _commands_with(mark) == []


def _commands_with(mark: str) -> list[str]:
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            commands.append(entry.read_text("utf-8", "replace"))
    return [command for command in commands if mark in command]


async def test_processes_left_by_a_dead_server_end_before_it_restarts(
    servers: McpServers,
) -> None:
    servers.use([faulty("leaves_a_child")])
    await until_ready(servers, "leaves_a_child")
    processes = await watched(servers, "leaves_a_child")
    with pytest.raises(ServerUnavailable):
        await servers.call("leaves_a_child", "quit", {})
    await until_status(servers, "leaves_a_child", ServerStatus.FAILED)
    await until_ready(servers, "leaves_a_child")
    assert processes.still_there(0) == []


def test_when_the_gateway_is_killed_its_children_end() -> None:
    command = [sys.executable, "-m", "tests.unit.core.mcp_client.gateway_to_kill"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        processes = Watched(json.loads(gateway.stdout.readline()))
        os.kill(gateway.pid, signal.SIGKILL)
        assert processes.still_there(SOON) == []


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"cut \uDE00 here", "cut \ufffd here"),
        (r"whole \ud83d\ude00 \ud83d", "whole \U0001f600 \ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"written \\ud83d, \ud83d", "written \\ud83d, \ufffd"),
    ],
)
def test_half_a_character_of_a_server_is_replaced(sent: str, received: str) -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}'
    message = _message(line % sent.encode())
    assert json.loads(message.model_dump_json())["params"]["data"] == received
