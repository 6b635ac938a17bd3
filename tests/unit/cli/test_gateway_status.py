"""gateway status: one sentence on items, servers and retrieval."""

import pytest

from tests.unit.cli.commands import CommandLine
from toolscript.core.mcp_client.model import ServerState, ServerStatus, Transport
from toolscript.gateway import daemon
from toolscript.gateway.model import GatewayHealth


def server(name: str, status: ServerStatus, tools: int = 0) -> ServerState:
    return ServerState(name, Transport.STDIO, status, tools=tools)


def status_line(
    toolscript: CommandLine, monkeypatch: pytest.MonkeyPatch, items: int, *servers: ServerState
) -> str:
    health = GatewayHealth("1", ready=True, semantic=True, model="m", items=items, servers=servers)
    monkeypatch.setattr(daemon, "status", lambda *, flags: (None, health))
    return toolscript("gateway", "status").out.splitlines()[0]


def test_just_after_the_start_items_are_cached_and_servers_are_starting_or_failed(
    toolscript: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = (server("files", ServerStatus.STARTING), server("mail", ServerStatus.STARTING))
    line = status_line(toolscript, monkeypatch, 40, *starting, server("broken", ServerStatus.FAILED))
    assert line == (
        "running: 40 items (40 cached); 0 of 3 servers ready, 2 starting (files, mail), 1 failed (broken); "
        "hybrid search (m)"
    )


def test_items_of_ready_servers_are_not_cached(toolscript: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    line = status_line(toolscript, monkeypatch, 3, server("files", ServerStatus.READY, tools=3))
    assert line == "running: 3 items; 1 of 1 servers ready; hybrid search (m)"


def test_of_many_servers_that_failed_the_first_are_named(
    toolscript: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = [server(f"s{number}", ServerStatus.FAILED) for number in range(7)]
    assert "7 failed (s0, s1, s2, s3, s4, ...)" in status_line(toolscript, monkeypatch, 0, *down)
