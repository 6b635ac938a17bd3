"""Servers over Streamable HTTP and over the older SSE."""

import asyncio
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.faults import Fault, relay
from tests.support.reserved_ports import reserved_port
from tests.unit.core.mcp_client.builders import (
    QUICK,
    names_of,
    running,
    state_of,
    text,
    until,
    until_failed,
    until_ready,
)
from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]

MODERN = ("tests.support.mcp_servers.modern", "http")


def over_http(port: str, **more: object) -> ServerSpec:
    url = f"http://127.0.0.1:{port}/mcp"
    return ServerSpec("remote", Transport.HTTP, url=url, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def guarded_port() -> Iterator[str]:
    with running(*MODERN, TOKEN="sesame-open") as (_, port):
        yield port


@pytest.mark.requirement("TS-001", "TS-010")
async def test_a_server_is_reached_with_its_headers_and_its_changes_are_received(
    servers: McpServers, guarded_port: str
) -> None:
    servers.use([over_http(guarded_port, headers={"Authorization": "Bearer sesame-open"})])
    await until_ready(servers, "remote")
    assert state_of(servers, "remote").protocol == "2026-07-28"
    assert (await servers.call("remote", "multiply", {"a": 6, "b": 7})).structured_content == {"result": 42}
    await servers.call("remote", "grow", {"name": "grown"})
    await until(servers, lambda: "grown" in names_of(servers, "remote"))
    assert text(await servers.call("remote", "grown", {})) == "grown"


async def test_a_change_between_two_subscriptions_is_not_missed(servers: McpServers) -> None:
    with running(*MODERN) as (_, port):
        async with relay("127.0.0.1", int(port)) as between:
            servers.use([replace(over_http(port), name="direct"), over_http(str(between.port))])
            await until_ready(servers, "direct")
            await until_ready(servers, "remote")
            await between.fail(Fault.RESET)
            # The client lists again at once, and subscribes again a second later.
            await asyncio.sleep(0.5)
            await servers.call("direct", "grow", {"name": "grown_in_between"})
            await until(servers, lambda: "grown_in_between" in names_of(servers, "remote"))


@pytest.mark.requirement("TS-010")
async def test_an_argument_that_belongs_in_a_header_is_sent_there_as_well(
    servers: McpServers, guarded_port: str
) -> None:
    servers.use([over_http(guarded_port, headers={"Authorization": "Bearer sesame-open"})])
    await until_ready(servers, "remote")
    assert text(await servers.call("remote", "deploy", {"region": "Zürich"})) == "Zürich"


async def test_a_server_that_rejects_credentials_is_reported_without_revealing_them(
    servers: McpServers, guarded_port: str
) -> None:
    servers.use([over_http(guarded_port, headers={"Authorization": "Bearer not-sesame"})])
    assert (await until_failed(servers, "remote")).error == "HTTP 401 Unauthorized"


async def test_a_server_that_is_not_there_is_a_failure(servers: McpServers) -> None:
    with reserved_port() as port:
        servers.use([over_http(f"{port}/secret?token=abcdefgh")])
        state = await until_failed(servers, "remote")
    assert state.error.startswith("the server cannot be reached")
    assert "abcdefgh" not in state.error


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "no address", "http://", "http://[", ""])
async def test_an_invalid_address_is_a_failure(servers: McpServers, url: str) -> None:
    servers.use([ServerSpec("remote", Transport.HTTP, url=url)])
    assert (await until_failed(servers, "remote")).error


async def test_a_server_that_dies_and_comes_back_is_found_again(servers: McpServers) -> None:
    with running(*MODERN) as (process, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        process.kill()
        process.wait()
        await until_failed(servers, "remote", "cannot be reached")
    with running(*MODERN, port=port):
        await until_ready(servers, "remote")
        assert (await servers.call("remote", "multiply", {"a": 2, "b": 3})).structured_content == {"result": 6}


async def test_a_call_ends_at_once_when_the_server_dies(servers: McpServers) -> None:
    with running(*MODERN) as (_, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        with pytest.raises(ServerUnavailable):
            await servers.call("remote", "quit_now", {})


async def test_a_server_that_forgot_our_session_gets_a_new_one(servers: McpServers) -> None:
    with running("tests.support.mcp_servers.old_http") as (_, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        assert text(await servers.call("remote", "forget", {})) == "forgotten"
        with pytest.raises(ServerUnavailable, match="HTTP 404"):
            await servers.call("remote", "echo", {})
        await until_failed(servers, "remote")
        await until_ready(servers, "remote")
        assert text(await servers.call("remote", "echo", {"a": 1})) == '{"a": 1}'


async def test_a_ping_detects_a_server_that_died_silently(servers: McpServers) -> None:
    with running("tests.support.mcp_servers.old_http") as (process, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        process.kill()
        process.wait()
        await until_failed(servers, "remote", "cannot be reached")


async def test_a_server_that_is_busy_with_a_call_is_not_taken_for_lost() -> None:
    servers = McpServers(replace(QUICK, ping_after=0.2, ping_timeout=0.2))
    with running("tests.support.mcp_servers.old_http") as (_, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        assert text(await servers.call("remote", "work", {"seconds": 2})) == "done"
        assert text(await servers.call("remote", "echo", {"a": 1})) == '{"a": 1}'
        await servers.close()


async def test_a_server_that_hangs_without_a_call_is_taken_for_lost() -> None:
    servers = McpServers(replace(QUICK, ping_after=0.2, ping_timeout=0.2))
    with running("tests.support.mcp_servers.old_http") as (process, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        process.send_signal(signal.SIGSTOP)
        await until_failed(servers, "remote", "the connection was lost")
        process.send_signal(signal.SIGCONT)
        await servers.close()


@pytest.mark.alone
async def test_a_server_that_does_not_let_go_holds_up_no_close() -> None:
    servers = McpServers(QUICK)
    with running("tests.support.mcp_servers.old_http", "keep") as (_, port):
        servers.use([over_http(port)])
        await until_ready(servers, "remote")
        began = time.monotonic()
        await servers.close()
        assert time.monotonic() - began < 3


async def test_a_server_that_refuses_a_call_is_not_taken_for_lost(servers: McpServers, guarded_port: str) -> None:
    servers.use([over_http(guarded_port, headers={"Authorization": "Bearer sesame-open"})])
    await until_ready(servers, "remote")
    revision = await servers.changed(0)
    with pytest.raises(ServerRejected, match="not with me"):
        await servers.call("remote", "refuse", {})
    assert text(await servers.call("remote", "multiply", {"a": 1, "b": 1})) == "1"
    assert await servers.changed(0) == revision


@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
async def test_a_server_of_2024_connects_over_its_own_transport_at_the_first_try(transport: Transport) -> None:
    servers = McpServers(replace(QUICK, first_retry=600.0, max_retry=600.0))
    with running("tests.support.mcp_servers.old_sse") as (process, port):
        servers.use([ServerSpec("old", transport, url=f"http://127.0.0.1:{port}/sse")])
        await until_ready(servers, "old")
        assert state_of(servers, "old").protocol == "2024-11-05"
        assert text(await servers.call("old", "echo", {"a": 1})) == '{"a": 1}'
        process.kill()
        process.wait()
        await until_failed(servers, "old")
    await servers.close()
