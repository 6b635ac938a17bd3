"""A gateway killed under the calls of three clients: each is in its log once, those in flight as unknown."""

import asyncio
import contextlib
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import Implementation

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, until
from tests.support.mcp_servers.noting import SECONDS

pytestmark = pytest.mark.requirement("GW-005")

# Calls that each client has under way at once.
AT_ONCE = 4
STDIO, OVER_HTTP, PLAIN = "an editor", "an agent", "http"
Call = Callable[[dict[str, object]], Awaitable[bool]]
FOREVER = 60.0


class Clients:
    """Three clients that share out the numbers of calls; `answered` are those with an answer, by client."""

    def __init__(self, machine: Machine, gateway: Gateway, numbers: range, seconds: Sequence[float] = ()) -> None:
        """`seconds`: how long the calls take, by number; those without take a moment."""
        self._seconds = dict(zip(numbers, seconds, strict=False))
        self._ready = asyncio.Barrier(3)
        self._machine = machine
        self._gateway = gateway
        self._numbers = iter(numbers)
        self.answered: dict[int, str] = {}
        self.asked: dict[int, str] = {}

    async def run(self) -> None:
        await asyncio.gather(*map(self._use, (STDIO, OVER_HTTP, PLAIN)))

    async def _use(self, name: str) -> None:
        """Call until the numbers are used up, or the gateway is gone: then the SDK raises, also at the end."""
        with_client = {STDIO: self._editor, OVER_HTTP: self._agent, PLAIN: self._program}[name]
        with contextlib.suppress(Exception):
            async with with_client() as call:
                await self._ready.wait()
                await asyncio.gather(*(self._work(name, call) for _ in range(AT_ONCE)))

    async def _work(self, name: str, call: Call) -> None:
        for number in self._numbers:
            self.asked[number] = name
            if not await call({"number": number, **self._more(number)}):
                return
            self.answered[number] = name

    def _more(self, number: int) -> dict[str, object]:
        return {"seconds": self._seconds[number]} if number in self._seconds else {}

    @asynccontextmanager
    async def _editor(self) -> AsyncIterator[Call]:
        program, *arguments = command("mcp")
        process = StdioServerParameters(
            command=program,
            args=arguments,
            env=self._machine.whole_environment(),
            cwd=self._machine.project,
        )
        info = Implementation(name=STDIO, version="1")
        async with Client(stdio_client(process), client_info=info) as client:
            yield partial(call_by_mcp, client)

    @asynccontextmanager
    async def _agent(self) -> AsyncIterator[Call]:
        info = Implementation(name=OVER_HTTP, version="1")
        async with Client(f"{self._gateway.url}/mcp", client_info=info) as client:
            yield partial(call_by_mcp, client)

    @asynccontextmanager
    async def _program(self) -> AsyncIterator[Call]:
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
            yield partial(call_by_http, client, self._gateway.url)


async def call_by_mcp(client: Client, arguments: dict[str, object]) -> bool:
    result = await client.call_tool("call_tool", {"tool": "noting__note", "arguments": arguments})
    return not result.is_error


async def call_by_http(client: httpx.AsyncClient, url: str, arguments: dict[str, object]) -> bool:
    answer = await client.post(f"{url}/tools/noting__note", json=arguments)
    return answer.status_code == 200


def logged(machine: Machine) -> list[dict[str, Any]]:
    """All calls in the log, page by page."""
    entries, cursor = list[dict[str, Any]](), ""
    while True:
        page = machine.json("activity", "--limit", "500", "--server", "noting", "--after", cursor)
        entries += page["results"]
        if not (cursor := page["next_cursor"] or ""):
            return entries


@pytest.mark.parametrize("count", [150, pytest.param(1_000, marks=pytest.mark.nightly)])
async def test_no_call_is_lost_made_twice_or_logged_twice_when_the_gateway_is_killed(
    machine: Machine, count: int
) -> None:
    notes = machine.folder / "notes"
    machine.configure({"noting": mcp_server("noting", str(notes))})
    machine = machine.also(TOOLSCRIPT_GATEWAY_ACTIVITY="arguments", TOOLSCRIPT_SEARCH_MODEL="none")
    with machine.gateway() as gateway:
        until(lambda: gateway.server("noting").get("status") == "ready", "the server")
        # The call in the middle is being made when the gateway is killed, and others wait behind it.
        middle = count // 2
        seconds = [*[SECONDS] * middle, FOREVER]
        clients = Clients(machine, gateway, range(count), seconds)
        working = asyncio.create_task(clients.run())
        while not (notes.exists() and str(middle) in notes.read_text("utf-8").split()):
            await asyncio.wait([working], timeout=0.005)
        gateway.process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(working, 60)
    answered_before = set(clients.answered)
    with machine.gateway() as again:
        until(lambda: again.server("noting").get("status") == "ready", "the server")
        rest = Clients(machine, again, range(len(clients.asked), count))
        await asyncio.wait_for(rest.run(), 60)
    entries = logged(machine.here())
    check(entries, notes, {**clients.asked, **rest.asked}, {**clients.answered, **rest.answered})
    unknown = [entry for entry in entries if entry["outcome"] == "unknown"]
    assert middle in [entry["arguments"]["number"] for entry in unknown]
    assert len(unknown) <= AT_ONCE * 3
    assert answered_before.isdisjoint(entry["arguments"]["number"] for entry in unknown)


def check(entries: list[dict[str, Any]], notes: Path, asked: dict[int, str], answered: dict[int, str]) -> None:
    times = Counter(entry["arguments"]["number"] for entry in entries)
    assert {number for number, count in times.items() if count > 1} == set(), "logged twice"
    by_number = {entry["arguments"]["number"]: entry for entry in entries}
    made = Counter(map(int, notes.read_text("utf-8").split()))
    assert {number for number, count in made.items() if count > 1} == set(), "made twice"
    assert made.keys() <= by_number.keys(), "made, and not logged"
    assert {by_number[number]["outcome"] for number in answered} == {"ok"}
    for number, entry in by_number.items():
        assert (entry["client"], entry["server"], entry["tool"]) == (asked[number], "noting", "note")
        assert entry["outcome"] in ("ok", "unknown"), json.dumps(entry)
