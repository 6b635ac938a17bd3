"""A newer version takes the place of an older gateway, under calls and without losing one."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.gateway.daemons import Home, a_home
from tests.e2e.gateway.machines import ROOT, is_alive, until
from tests.e2e.gateway.surfaces import mcp_over_stdio
from tests.e2e.gateway.test_killed_daemon import call
from toolscript.core.version import __version__
from toolscript.gateway.record import RunningGateway, is_older

pytestmark = [pytest.mark.requirement("GW-001"), pytest.mark.slow]


@pytest.fixture
def home(tmp_path: Path, weights: Path) -> Iterator[Home]:
    with a_home(tmp_path / "machine", weights) as home:
        yield home


@contextmanager
def gateway_of(home: Home, version: str) -> Iterator[RunningGateway]:
    """Run a gateway of another version."""
    program = [sys.executable, "-m", "tests.e2e.gateway.older_gateway", version, "gateway", "start"]
    with subprocess.Popen(
        program, env={**home.machine.whole_environment(), "PYTHONPATH": str(ROOT)}, cwd=home.machine.project
    ) as process:
        try:
            yield home.ready()
        finally:
            process.terminate()


def test_versions_are_compared_by_their_numbers() -> None:
    assert is_older("0.9.0", "0.10.0")
    assert not is_older("0.10.0", "0.9.0")
    assert not is_older("1.0.0", "1.0.0")


def test_a_newer_command_takes_the_place_of_an_older_gateway(home: Home) -> None:
    with gateway_of(home, "0.0.9") as old:
        done = home.machine.run("call", "own__note", '{"id": "1"}')
        assert "not used" not in done.stderr
        new = home.daemon()
        assert (new.version, new.url) == (__version__, old.url)
        assert new.pid != old.pid
        until(lambda: not is_alive(old.pid), "the end of the older one")
    home.machine.run("call", "own__note", '{"id": "2"}')
    assert home.daemon().pid == new.pid
    assert home.diary.calls() == {"1": 1, "2": 1}


def test_an_older_gateway_serves_on_while_a_newer_one_could_not_open(home: Home) -> None:
    with gateway_of(home, "0.0.9") as old:
        config = home.machine.home / ".toolscript.json"
        config.write_text('{"mcpServers": {', "utf-8")
        done = home.machine.run("call", "own__note", '{"id": "1"}')
        assert f"{config}" in done.stderr
        assert home.daemon().pid == old.pid
    assert home.diary.calls() == {"1": 1}


def test_an_older_command_joins_a_newer_gateway(home: Home) -> None:
    with gateway_of(home, "999.0.0") as newer:
        home.machine.run("call", "own__note", '{"id": "1"}')
        assert home.daemon().pid == newer.pid
    assert home.diary.calls() == {"1": 1}


@pytest.mark.parametrize("calls", [20, pytest.param(200, marks=pytest.mark.nightly)])
async def test_no_call_is_lost_while_a_gateway_is_replaced(home: Home, calls: int) -> None:
    outcomes: dict[str, str] = {}
    with gateway_of(home, "0.0.9") as old:

        async def over_http(client: int) -> None:
            """A client that knows nothing of gateways but an address."""
            headers = {"Authorization": f"Bearer {old.token}"}
            async with httpx.AsyncClient(trust_env=False, headers=headers, timeout=60) as http:
                for number in range(calls):
                    name = f"http-{client}-{number}"
                    body = {"id": name, "seconds": 0.02}
                    answer = await http.post(f"{old.url}/tools/own__note", json=body)
                    outcomes[name] = "done" if answer.status_code == 200 else answer.text

        async with mcp_over_stdio(home.machine.also(TOOLSCRIPT_GATEWAY_ON_DEMAND="false")) as mcp:

            async def over_mcp() -> None:
                for number in range(calls):
                    outcomes[f"mcp-{number}"] = await call(mcp, f"mcp-{number}", 0.02)

            slow = asyncio.create_task(call(mcp, "slow", 3))
            await asyncio.to_thread(until, lambda: home.diary.calls()["slow"], "the slow call")
            working = [asyncio.create_task(work) for work in (over_http(1), over_http(2), over_mcp())]
            await asyncio.to_thread(home.machine.run, "search", "note")
            new = home.daemon()
            assert new.version == __version__
            await asyncio.gather(*working)
            assert await slow == "done"
        await asyncio.to_thread(until, lambda: not is_alive(old.pid), "the end of the older one")
        assert home.daemon().pid == new.pid
    assert set(outcomes.values()) == {"done"}
    assert set(home.diary.calls().values()) == {1}
    assert len(home.diary.calls()) == 3 * calls + 1


async def test_no_request_on_a_kept_connection_is_lost_while_a_gateway_is_replaced(home: Home) -> None:
    """Requests that come at the moment in which a gateway would end a connection that is idle."""
    with gateway_of(home, "0.0.9") as old:
        replaced = asyncio.Event()

        async def ask_on(number: int) -> int:
            headers, answered, left = {"Authorization": f"Bearer {old.token}"}, 0, 20
            async with httpx.AsyncClient(trust_env=False, headers=headers, timeout=60) as http:
                while left:
                    assert (await http.get(f"{old.url}/health")).status_code == 200
                    answered, left = answered + 1, left - replaced.is_set()
                    await asyncio.sleep(number / 500)
            return answered

        asking = [asyncio.create_task(ask_on(number)) for number in range(10)]
        await asyncio.to_thread(home.machine.run, "search", "note")
        await asyncio.to_thread(until, lambda: not is_alive(old.pid), "the end of the older one")
        replaced.set()
        assert min(await asyncio.gather(*asking)) > 20
        assert home.daemon().pid != old.pid
