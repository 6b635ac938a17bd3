"""Servers sleep until their first call and after idle time, and their starts take turns."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.core.mcp_client.builders import (
    QUICK,
    Watched,
    faulty,
    names_of,
    offer_of,
    plain,
    state_of,
    stdio,
    text,
    until_failed,
    until_ready,
    until_status,
)
from toolscript.core.errors import ServerUnavailable
from toolscript.core.mcp_client.model import Offer, ServerSpec, ServerStatus
from toolscript.core.mcp_client.servers import McpServers, SharedServers
from toolscript.core.mcp_client.turns import Turns

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]

SLEEPY = replace(QUICK, idle=0.2, linger=0.05)
DROWSY = replace(QUICK, idle=600.0, linger=0.05)


@pytest.fixture
async def sleepy() -> AsyncIterator[McpServers]:
    servers = McpServers(SLEEPY)
    yield servers
    await servers.close()


@pytest.fixture
async def drowsy() -> AsyncIterator[McpServers]:
    servers = McpServers(DROWSY)
    yield servers
    await servers.close()


def with_pid(folder: Path, name: str = "a") -> ServerSpec:
    (folder / name).write_text(json.dumps({"server": name, "name": "work"}))
    return stdio(name, "catalog", str(folder / name))


async def pid_of(servers: McpServers, name: str = "a") -> int:
    return int(json.loads(text(await servers.call(name, "pid", {})))["pid"])


async def test_a_server_that_is_not_called_sleeps_once_it_is_listed(drowsy: McpServers) -> None:
    drowsy.use([plain()])
    state = await until_status(drowsy, "plain", ServerStatus.ASLEEP)
    assert (state.tools, state.prompts, state.protocol) == (8, 1, "2025-11-25")
    assert "echo" in names_of(drowsy, "plain")


async def test_an_idle_server_is_gone_and_answers_its_next_call(sleepy: McpServers, tmp_path: Path) -> None:
    sleepy.use([with_pid(tmp_path)])
    await until_status(sleepy, "a", ServerStatus.ASLEEP)
    first = await pid_of(sleepy)
    process = Watched([first])
    await until_status(sleepy, "a", ServerStatus.ASLEEP)
    assert not await asyncio.to_thread(process.still_there, 10)
    assert await pid_of(sleepy) != first


async def test_a_server_with_a_cached_offer_is_not_started_until_it_is_called(drowsy: McpServers) -> None:
    drowsy.use([plain()])
    await until_status(drowsy, "plain", ServerStatus.ASLEEP)
    offer = offer_of(drowsy, "plain")
    other = McpServers(DROWSY)
    try:
        other.use([plain()], [offer])
        assert state_of(other, "plain").status is ServerStatus.ASLEEP
        assert offer_of(other, "plain") is offer
        assert text(await other.call("plain", "echo", {"a": 1})) == '{"a": 1}'
        assert state_of(other, "plain").status is ServerStatus.READY
    finally:
        await other.close()


async def test_calls_at_once_wake_a_server_once(drowsy: McpServers, tmp_path: Path) -> None:
    drowsy.use([with_pid(tmp_path)])
    await until_status(drowsy, "a", ServerStatus.ASLEEP)
    pids = await asyncio.gather(*(pid_of(drowsy) for _ in range(20)))
    assert len(set(pids)) == 1


async def test_a_server_does_not_sleep_during_a_call(sleepy: McpServers) -> None:
    sleepy.use([plain()])
    await until_status(sleepy, "plain", ServerStatus.ASLEEP)
    assert not (await sleepy.call("plain", "slow", {"seconds": 1})).is_error


async def test_calls_between_sleeps_are_all_answered(sleepy: McpServers) -> None:
    """A call may come in the moment in which the server falls asleep."""
    sleepy.use([plain()])
    await until_status(sleepy, "plain", ServerStatus.ASLEEP)
    for number in range(12):
        assert text(await sleepy.call("plain", "echo", {"n": number})) == json.dumps({"n": number})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.18 + number / 200):
                await asyncio.Event().wait()


async def test_a_woken_server_that_cannot_start_fails_its_call_with_the_reason(drowsy: McpServers) -> None:
    broken = faulty("dies_at_start")
    drowsy.use([broken], [Offer("dies_at_start")])
    with pytest.raises(ServerUnavailable, match="has failed: the process ended with exit code 3"):
        await drowsy.call("dies_at_start", "work", {})


async def test_a_woken_server_that_hangs_fails_its_call_after_its_start_time(drowsy: McpServers) -> None:
    drowsy.use([faulty("hangs_at_start", start_seconds=0.4)], [Offer("hangs_at_start")])
    with pytest.raises(ServerUnavailable, match=r"not ready within 0\.4 seconds"):
        await drowsy.call("hangs_at_start", "work", {})


async def test_a_library_that_cannot_be_imported_is_named(
    drowsy: McpServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "toolscript.core.mcp_client.connection", None)
    drowsy.use([plain()], [Offer("plain")])
    with pytest.raises(ServerUnavailable, match="a library is missing, install Toolscript again") as caught:
        await drowsy.call("plain", "echo", {})
    assert caught.value.hint == ""


async def test_a_fault_of_ours_fails_the_calls_that_wait(
    sleepy: McpServers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an upgrade that removed a module from under a running gateway."""
    sleepy.use([plain()], [Offer("plain")])
    await sleepy.call("plain", "echo", {})
    await until_status(sleepy, "plain", ServerStatus.ASLEEP)
    monkeypatch.setitem(sys.modules, "toolscript.core.mcp_client.connection", None)
    with pytest.raises(ServerUnavailable, match="has failed: a fault of Toolscript") as caught:
        await asyncio.wait_for(sleepy.call("plain", "echo", {}), 30)
    assert caught.value.hint == ""
    assert "MCP server is given up" in caplog.text


async def test_a_server_that_sleeps_is_stopped_at_once(drowsy: McpServers) -> None:
    drowsy.use([plain()], [Offer("plain")])
    drowsy.use([])
    assert drowsy.states() == []
    await drowsy.close()


async def test_an_old_offer_is_listed_again() -> None:
    servers = McpServers(replace(DROWSY, list_after=0.05))
    try:
        servers.use([plain()], [Offer("plain")])
        await until_ready(servers, "plain")
        assert "echo" in names_of(servers, "plain")
    finally:
        await servers.close()


async def test_without_idle_time_a_server_with_a_cached_offer_starts_at_once(servers: McpServers) -> None:
    servers.use([plain()], [Offer("plain")])
    await until_ready(servers, "plain")


async def test_equal_servers_of_two_sets_are_one_process_that_lives_while_one_has_it(tmp_path: Path) -> None:
    shared = SharedServers(QUICK)
    first, second = McpServers(shared=shared), McpServers(shared=shared)
    try:
        for servers in (first, second):
            servers.use([with_pid(tmp_path)])
            await until_ready(servers, "a")
        pid = await pid_of(first)
        assert await pid_of(second) == pid
        await first.close()
        assert await pid_of(second) == pid
        second.use([])
        assert not await asyncio.to_thread(Watched([pid]).still_there, 10)
    finally:
        await shared.close()


async def test_a_server_of_one_set_is_none_of_another(tmp_path: Path) -> None:
    shared = SharedServers(QUICK)
    first, second = McpServers(shared=shared), McpServers(shared=shared)
    try:
        first.use([with_pid(tmp_path)])
        second.use([with_pid(tmp_path, "b")])
        await until_ready(second, "b")
        assert [state.name for state in second.states()] == ["b"]
        assert os.getpid() != await pid_of(second, "b")
    finally:
        await shared.close()


async def test_a_crash_loop_holds_up_no_call_that_wakes_another(drowsy: McpServers) -> None:
    drowsy.use([faulty("dies_at_start"), faulty("hangs_at_start"), plain()], [Offer("plain")])
    await until_failed(drowsy, "dies_at_start")
    async with asyncio.timeout(10):
        assert text(await drowsy.call("plain", "echo", {"a": 1})) == '{"a": 1}'


async def test_no_more_servers_start_at_once_than_there_are_turns() -> None:
    turns = Turns(2)
    held = [await turns.take(urgent=False, failed_before=False) for _ in range(2)]
    patient = asyncio.create_task(turns.take(urgent=False, failed_before=False))
    await asyncio.sleep(0)
    urgent = asyncio.create_task(turns.take(urgent=True, failed_before=False))
    await asyncio.sleep(0)
    held[0].release()
    held[0].release()
    (await urgent).release()
    assert (await patient) is not None


async def test_a_turn_ends_by_itself_and_servers_that_failed_take_none_of_the_others() -> None:
    turns = Turns(1, held_seconds=0.05)
    await turns.take(urgent=False, failed_before=True)
    await turns.take(urgent=False, failed_before=False)
    async with asyncio.timeout(5):
        await turns.take(urgent=False, failed_before=False)


async def test_a_cancelled_wait_for_a_turn_takes_none() -> None:
    turns = Turns(1)
    held = await turns.take(urgent=False, failed_before=False)
    waiting = [asyncio.create_task(turns.take(urgent=False, failed_before=False)) for _ in range(2)]
    await asyncio.sleep(0)
    held.release()
    waiting[0].cancel()
    async with asyncio.timeout(5):
        await waiting[1]
