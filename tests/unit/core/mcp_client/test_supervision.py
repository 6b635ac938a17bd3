"""Failed servers restart, hanging servers delay no others, and a new config affects only changed servers."""

import asyncio
import logging
import time

import pytest

from tests.unit.core.mcp_client.builders import (
    QUICK,
    faulty,
    names_of,
    plain,
    state_of,
    stdio,
    text,
    until,
    until_failed,
    until_ready,
    until_status,
)
from toolscript.core.errors import ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, ServerStatus, Transport
from toolscript.core.mcp_client.servers import McpServers
from toolscript.core.mcp_client.supervision import Timing

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


@pytest.mark.alone
async def test_use_returns_at_once_with_starting_servers(servers: McpServers) -> None:
    began = time.monotonic()
    servers.use([faulty("hangs_at_start"), plain()])
    assert time.monotonic() - began < 0.1
    assert [state.status for state in servers.states()] == [ServerStatus.STARTING] * 2
    assert servers.offers() == []


async def test_a_server_that_hangs_holds_up_no_other(servers: McpServers) -> None:
    servers.use([faulty("hangs_at_start"), faulty("endless_line"), faulty("dies_at_start"), plain()])
    await until_ready(servers, "plain")
    assert text(await servers.call("plain", "echo", {"a": 1})) == '{"a": 1}'
    assert state_of(servers, "hangs_at_start").status is ServerStatus.STARTING


async def test_a_server_that_is_not_ready_in_time_failed(servers: McpServers) -> None:
    servers.use([faulty("hangs_at_start", start_seconds=0.4)])
    state = await until_failed(servers, "hangs_at_start")
    assert state.error == "it was not ready within 0.4 seconds"


async def test_the_error_of_a_server_that_prints_to_stdout_quotes_its_output(servers: McpServers) -> None:
    """On a busy machine it may print nothing at its first start."""
    servers.use([faulty("only_noise", start_seconds=1.5)])
    state = await until_failed(servers, "only_noise", "Listening")
    assert "'Listening on port 3000'" in state.error


async def test_a_line_without_an_end_is_a_failure(servers: McpServers) -> None:
    servers.use([faulty("endless_line")])
    assert "a line without an end" in (await until_failed(servers, "endless_line")).error


async def test_the_error_of_an_ended_process_has_its_stderr_but_not_its_secrets(
    servers: McpServers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    servers.use([faulty("dies_at_start", env={"KEY": "sk-very-secret"})])
    state = await until_failed(servers, "dies_at_start", "exit code")
    assert state.error == "the process ended with exit code 3; stderr: the key *** is not valid"
    assert "secret" not in caplog.text
    assert "is not valid" not in caplog.text
    assert "dies_at_start" in {getattr(record, "part", "") for record in caplog.records}


async def test_the_end_of_a_long_stderr_is_kept(servers: McpServers) -> None:
    servers.use([faulty("floods_stderr")])
    state = await until_failed(servers, "floods_stderr", "exit code 1")
    assert state.error.endswith("the last line")
    assert len(state.error) < 10_000


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (ServerSpec("no", Transport.STDIO, "no-such-command"), "command not found: no-such-command"),
        (ServerSpec("no", Transport.STDIO, "./absent"), "command not found: ./absent"),
        (ServerSpec("no", Transport.STDIO, "/etc"), "no permission to run command: /etc"),
        (ServerSpec("no", Transport.STDIO, "a\0b"), "command cannot be run"),
        (ServerSpec("no", Transport.STDIO, "cat", cwd="/no/such/folder"), "there is no folder /no/such/folder"),
    ],
    ids=lambda value: value.command if isinstance(value, ServerSpec) else "",
)
async def test_a_command_that_cannot_be_run_is_named(servers: McpServers, spec: ServerSpec, error: str) -> None:
    servers.use([spec])
    assert error in (await until_failed(servers, "no")).error


async def test_a_server_that_died_comes_back(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    with pytest.raises(ServerUnavailable):
        await servers.call("plain", "quit", {})
    state = await until_failed(servers, "plain", "exit code")
    assert state.error == "the process ended with exit code 7; stderr: I was told to quit"
    assert servers.offers() == []
    await until_ready(servers, "plain")
    assert text(await servers.call("plain", "echo", {"a": 1})) == '{"a": 1}'


async def test_a_server_that_ignores_unknown_requests_gets_an_older_protocol(
    servers: McpServers,
) -> None:
    servers.use([faulty("silent_when_probed")])
    await until_ready(servers, "silent_when_probed")
    assert state_of(servers, "silent_when_probed").protocol == "2025-11-25"


async def test_a_server_that_crashes_on_the_newest_protocol_gets_an_older_one(
    servers: McpServers,
) -> None:
    servers.use([faulty("dies_when_probed")])
    await until_ready(servers, "dies_when_probed")
    assert state_of(servers, "dies_when_probed").protocol == "2025-11-25"


@pytest.mark.alone
async def test_a_server_that_ends_while_its_child_holds_its_pipes_is_noticed(servers: McpServers) -> None:
    servers.use([faulty("leaves_a_child")])
    await until_ready(servers, "leaves_a_child")
    began = time.monotonic()
    with pytest.raises(ServerUnavailable):
        await servers.call("leaves_a_child", "quit", {})
    await until_status(servers, "leaves_a_child", ServerStatus.FAILED)
    assert time.monotonic() - began < 5


def test_retries_come_ever_later_but_not_later_than_the_longest() -> None:
    timing = Timing(first_retry=0.5, max_retry=60.0)
    waits = [timing.retry_after(failures) for failures in range(1, 2_000)]
    assert 0.25 <= waits[0] <= 0.5
    assert 4.0 <= waits[4] <= 8.0
    assert all(30.0 <= wait <= 60.0 for wait in waits[10:])
    assert len(set(waits[10:])) > 100


@pytest.mark.alone
async def test_a_server_that_was_ready_for_a_while_is_tried_again_soon() -> None:
    servers = McpServers(Timing(first_retry=0.05, max_retry=600.0, settled_after=0.0, shutdown=0.5))
    servers.use([plain()])
    began = time.monotonic()
    for _ in range(10):
        await until_ready(servers, "plain")
        with pytest.raises(ServerUnavailable):
            await servers.call("plain", "quit", {})
        await until_failed(servers, "plain", "exit code")
    await servers.close()
    # Ten failures in a row would take at least half a minute of retries.
    assert time.monotonic() - began < 12


async def test_a_new_config_starts_what_is_new_ends_what_is_gone_and_leaves_the_rest_alone(
    servers: McpServers,
) -> None:
    servers.use([plain("kept"), plain("gone"), plain("altered")])
    await until_ready(servers, "kept", "gone", "altered")
    await servers.call("kept", "grow", {"name": "memory"})
    await until(servers, lambda: "memory" in names_of(servers, "kept"))
    servers.use([plain("kept"), plain("altered", include_tools=("echo",)), plain("new")])
    assert [state.name for state in servers.states()] == ["altered", "kept", "new"]
    assert state_of(servers, "altered").status is ServerStatus.STARTING
    await until_ready(servers, "altered", "new")
    assert "memory" in names_of(servers, "kept")
    assert state_of(servers, "altered").tools == 1
    assert [offer.server for offer in servers.offers()] == ["altered", "kept", "new"]


async def test_the_same_config_again_changes_nothing(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    revision = await servers.changed(0)
    servers.use([plain()])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await servers.changed(revision)


async def test_a_config_that_changes_again_and_again_ends_as_its_last_version(servers: McpServers) -> None:
    for number in range(10):
        servers.use([plain(include_tools=("echo",) if number % 2 else ("add",))])
        await asyncio.sleep(0)
    await until_ready(servers, "plain")
    assert {"echo"} <= names_of(servers, "plain")
    assert "add" not in names_of(servers, "plain")


async def test_a_client_that_waits_for_a_newer_revision_sees_every_change(servers: McpServers) -> None:
    waiting = asyncio.create_task(servers.changed(0))
    await asyncio.sleep(0)
    servers.use([plain()])
    first = await waiting
    await until_ready(servers, "plain")
    assert await servers.changed(first) > first
    assert await servers.changed(0) == await servers.changed(first)


async def test_after_close_all_are_stopped_and_calls_fail() -> None:
    servers = McpServers(QUICK)
    servers.use([plain(), faulty("hangs_at_start")])
    await until_ready(servers, "plain")
    await servers.close()
    assert {state.status for state in servers.states()} == {ServerStatus.STOPPED}
    assert servers.offers() == []
    with pytest.raises(ServerUnavailable, match="stopped"):
        await servers.call("plain", "echo", {})
    await servers.close()


async def test_a_server_that_is_being_listed_when_all_is_closed_stays_stopped() -> None:
    servers = McpServers(QUICK)
    servers.use([plain()])
    await until_ready(servers, "plain")
    await servers.call("plain", "grow", {"name": "late"})
    await servers.close()
    assert state_of(servers, "plain").status is ServerStatus.STOPPED
    assert servers.offers() == []


async def test_a_server_may_go_by_any_name(servers: McpServers) -> None:
    servers.use([stdio("päth/../ \n", "plain")])
    await until_ready(servers, "päth/../ \n")


async def test_who_watches_a_resource_is_told_that_its_server_was_stopped(servers: McpServers) -> None:
    servers.use([faulty("hangs")])
    watching = asyncio.create_task(servers.watch("hangs", "file:///a", lambda: None))
    await asyncio.sleep(0.05)
    servers.use([])
    with pytest.raises(ServerUnavailable, match="stopped"):
        await asyncio.wait_for(watching, 10)
