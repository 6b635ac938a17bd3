"""Servers to start, and helpers that wait for their states."""

import asyncio
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from toolscript.core.items import Item
from toolscript.core.mcp_client.model import (
    CallResult,
    Offer,
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolServers,
    Transport,
)
from toolscript.core.mcp_client.supervision import Timing

ROOT = Path(__file__).parents[4]
SOON = 20.0
QUICK = Timing(first_retry=0.05, max_retry=0.4, debounce=0.02, ping_after=0.5, shutdown=0.25, probe=0.5)


def stdio(name: str, module: str, *args: str, **more: object) -> ServerSpec:
    return ServerSpec(
        name,
        Transport.STDIO,
        command=sys.executable,
        args=("-S", "-m", f"tests.support.mcp_servers.{module}", *args),
        **{"cwd": str(ROOT), **more},  # type: ignore[arg-type]
    )


def plain(name: str = "plain", **more: object) -> ServerSpec:
    return stdio(name, "plain", **more)


def faulty(fault: str, **more: object) -> ServerSpec:
    return stdio(fault, "faulty", fault, **more)


def with_sdk(name: str = "modern", **more: object) -> ServerSpec:
    spec = stdio(name, "modern", "stdio", **more)
    return ServerSpec(name, spec.transport, command=spec.command, args=spec.args[1:], cwd=spec.cwd)


def state_of(servers: ToolServers, name: str) -> ServerState:
    return next(state for state in servers.states() if state.name == name)


def offer_of(servers: ToolServers, name: str) -> Offer:
    return next(offer for offer in servers.offers() if offer.server == name)


def items_of(servers: ToolServers, name: str) -> dict[str, Item]:
    return {item.name: item for item in offer_of(servers, name).items}


def names_of(servers: ToolServers, name: str) -> set[str]:
    return {item.name for offer in servers.offers() if offer.server == name for item in offer.items}


async def until(servers: ToolServers, holds: Callable[[], bool], seconds: float = SOON) -> None:
    """Wait until the condition holds; it is checked after every change."""
    seen = 0
    try:
        async with asyncio.timeout(seconds):
            while not holds():
                seen = await servers.changed(seen)
    except TimeoutError:
        raise AssertionError(f"the condition never held; the states are: {servers.states()}") from None


async def until_status(
    servers: ToolServers, name: str, status: ServerStatus, seconds: float = SOON
) -> ServerState:
    await until(servers, lambda: state_of(servers, name).status is status, seconds)
    return state_of(servers, name)


async def until_ready(servers: ToolServers, *names: str) -> None:
    for name in names:
        await until_status(servers, name, ServerStatus.READY)


async def until_failed(servers: ToolServers, name: str, containing: str = "") -> ServerState:
    def failed() -> bool:
        state = state_of(servers, name)
        return state.status is ServerStatus.FAILED and containing in state.error

    await until(servers, failed)
    return state_of(servers, name)


def text(result: CallResult) -> str:
    return str(result.content[0]["text"])


class Watched:
    """Processes whose end can be awaited, also if they are not children of this one."""

    def __init__(self, pids: list[int]) -> None:
        self._handles = {pid: os.pidfd_open(pid) for pid in pids}

    def still_there(self, seconds: float) -> list[int]:
        """Wait until all have ended, up to a limit; return those that have not."""
        left = [pid for pid, handle in self._handles.items() if not select.select([handle], [], [], seconds)[0]]
        for handle in self._handles.values():
            os.close(handle)
        return left


async def watched(servers: ToolServers, name: str) -> Watched:
    """Return the processes that a server's tool `pids` names."""
    return Watched(json.loads(text(await servers.call(name, "pids", {}))))


@contextmanager
def running(*command: str, port: str = "", **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server over HTTP that prints its port."""
    with subprocess.Popen(
        [sys.executable, "-m", *command, *([port] if port else [])],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
