"""Schemas made to take for ever: other servers' searches and calls go on beside them, and the gateway stops."""

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, new_machine, until
from tests.unit.core.test_schema_budget import KEPT, MANY, generated

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.alone]

ASKED = 60
CALLERS = 4


def hostile_tools() -> list[dict[str, Any]]:
    schemas = [*[MANY] * 8, *[KEPT] * 2, *generated()]
    return [
        {"server": "bomb", "name": f"t{number}", "description": "Does nothing", "input_schema": schema}
        for number, schema in enumerate(schemas)
    ]


@pytest.fixture
def machine(tmp_path: Path, weights: Path) -> Machine:
    machine = new_machine(tmp_path / "machine", weights).also(TOOLSCRIPT_SEARCH_MODEL="builtin")
    catalog = tmp_path / "bomb.jsonl"
    catalog.write_text("".join(json.dumps(tool) + "\n" for tool in hostile_tools()), "utf-8")
    notes = tmp_path / "notes.jsonl"
    note = {
        "server": "notes",
        "name": "read_note",
        "description": "Read a note",
        "input_schema": {"type": "object"},
    }
    notes.write_text(json.dumps(note), "utf-8")
    machine.configure({"bomb": mcp_server("catalog", str(catalog)), "notes": mcp_server("catalog", str(notes))})
    return machine


def slow_share(ask: Callable[[], object]) -> float:
    """Return the 95th percentile of the seconds that a request takes."""
    seconds = []
    for _ in range(ASKED):
        began = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - began)
    return statistics.quantiles(seconds, n=20)[-1]


def memory_of(gateway: Gateway) -> int:
    status = Path(f"/proc/{gateway.process.pid}/status").read_text("utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def bombing(gateway: Gateway, names: list[str], ended: threading.Event) -> Iterator[None]:
    """Call hostile tools from many clients, each of which goes away after half a second, until told to end."""

    def call(first: int) -> None:
        number = first
        while not ended.is_set():
            number += CALLERS
            try:
                arguments = {"x": "word" * 50}
                httpx.post(f"{gateway.url}/tools/{names[number % len(names)]}", json=arguments, timeout=0.5)
            except httpx.TimeoutException:
                continue

    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [pool.submit(call, first) for first in range(CALLERS)]
        yield
        ended.set()
        for caller in callers:
            caller.result()


def test_hostile_schemas_delay_no_other_server_keep_no_memory_and_end_with_the_gateway(machine: Machine) -> None:
    with machine.gateway() as gateway:
        count = len(hostile_tools()) + 1
        until(lambda: gateway.health()["items"] == count, f"all tools: {gateway.health()}")
        bombs = [name for name in gateway.tool_names() if name.startswith("bomb__")]
        asked = {
            "search": lambda: gateway.search("read a note"),
            "call": lambda: gateway.call("notes__read_note").raise_for_status(),
        }

        before = {name: slow_share(ask) for name, ask in asked.items()}
        # The same clients, with the same number of calls of a harmless tool: that machines are busy is no fault.
        with_harmless = _beside(gateway, ["notes__read_note"], asked)
        memory = memory_of(gateway)
        with_hostile = _beside(gateway, bombs, asked)
        grown = memory_of(gateway) - memory
        measured = f"{before} {with_harmless} {with_hostile}; {grown} KB more"
        for name, seconds in with_hostile.items():
            assert seconds <= 2 * max(with_harmless[name], 0.02), f"{name}: {measured}"
        assert grown < 50 * 1024, measured
        began = time.monotonic()
        assert "stopped" in machine.run("gateway", "stop").stdout
        assert time.monotonic() - began < 15


def _beside(gateway: Gateway, names: list[str], asked: dict[str, Callable[[], object]]) -> dict[str, float]:
    ended = threading.Event()
    around = bombing(gateway, names, ended)
    next(around)
    try:
        return {name: slow_share(ask) for name, ask in asked.items()}
    finally:
        next(around, None)
