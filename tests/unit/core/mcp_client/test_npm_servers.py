"""Third-party servers from npm, run as users run them."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.npm_servers_installed import entry_point, npm_servers
from tests.support.reserved_ports import reserved_port
from tests.unit.core.mcp_client.builders import (
    QUICK,
    Watched,
    items_of,
    state_of,
    text,
    until,
    until_failed,
    until_ready,
)
from toolscript.core.mcp_client.model import ServerSpec, ServerStatus, Transport
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-001", "TS-010", "TS-011"), pytest.mark.slow]


def node(name: str, package: str, *args: str, **env: str) -> ServerSpec:
    return ServerSpec(name, Transport.STDIO, "node", (entry_point(package), *args), env)


async def test_four_third_party_servers_are_listed_and_called(servers: McpServers, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello from a file")
    servers.use(
        [
            node("everything", "server-everything", "stdio"),
            node("files", "server-filesystem", str(tmp_path)),
            node("memory", "server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json")),
            node("thinking", "server-sequential-thinking"),
        ]
    )
    await until_ready(servers, "everything", "files", "memory", "thinking")
    assert state_of(servers, "everything").prompts >= 3
    assert state_of(servers, "everything").resources >= 1
    assert {"read_text_file", "write_file", "search_files"} <= set(items_of(servers, "files"))
    assert "sequentialthinking" in items_of(servers, "thinking")
    assert [offer.refused for offer in servers.offers()] == [()] * 4
    read = await servers.call("files", "read_text_file", {"path": str(tmp_path / "note.txt")})
    assert text(read) == "hello from a file"
    outside = await servers.call("files", "read_text_file", {"path": "/etc/hostname"})
    assert outside.is_error
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    await servers.call("memory", "create_entities", {"entities": [entity]})
    graph = await servers.call("memory", "read_graph", {})
    assert json.loads(text(graph))["entities"][0]["name"] == "Ada"


@contextmanager
def everything_over_http(port: int) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        ["node", entry_point("server-everything"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_third_party_http_server_is_called_lost_and_found_again() -> None:
    servers = McpServers(replace(QUICK, ping_after=600.0))
    with reserved_port() as port:
        servers.use([ServerSpec("everything", Transport.HTTP, url=f"http://127.0.0.1:{port}/mcp")])
        await until_failed(servers, "everything", "cannot be reached")
        with everything_over_http(port) as process:
            await until_ready(servers, "everything")
            assert state_of(servers, "everything").protocol == "2025-11-25"
            assert text(await servers.call("everything", "echo", {"message": "hi"})) == "Echo: hi"
            process.kill()
            await until_failed(servers, "everything")
        with everything_over_http(port):
            await until_ready(servers, "everything")
            assert text(await servers.call("everything", "echo", {"message": "again"})) == "Echo: again"
            await servers.close()


async def test_a_server_that_refuses_the_newer_protocol_is_ready_at_the_first_try(servers: McpServers) -> None:
    """It rejects the request with the code that the SDK uses for a closed connection."""
    with reserved_port() as port, everything_over_http(port):
        await _until_listening(port)
        servers.use([ServerSpec("everything", Transport.HTTP, url=f"http://127.0.0.1:{port}/mcp")])
        await until(servers, lambda: state_of(servers, "everything").status is not ServerStatus.STARTING)
        assert state_of(servers, "everything").error == ""
        await servers.close()


async def _until_listening(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def test_a_server_that_npx_starts_ends_with_all_that_npx_started(
    servers: McpServers, tmp_path: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(npm_servers())
    folder, env = str(tmp_path), {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    spec = ServerSpec("npx", Transport.STDIO, "npx", ("--no-install", "mcp-server-memory"), env, cwd=folder)
    servers.use([spec])
    await until_ready(servers, "npx")
    processes = Watched(_started_in(folder))
    await servers.close()
    assert processes.still_there(0) == []


def _started_in(folder: str) -> list[int]:
    """Return the processes with this working folder: npx, and its children."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str((entry / "cwd").readlink()) == folder:
                pids.append(int(entry.name))
        except OSError:
            continue
    assert len(pids) >= 2
    return pids
