"""A gateway that is killed: clients go on with the next one, and no call is made twice."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.daemons import Home, a_home
from tests.e2e.gateway.machines import until
from tests.e2e.gateway.surfaces import Mcp, mcp_over_stdio
from toolscript import Gateway
from toolscript.core.errors import OutcomeUnknown

pytestmark = [pytest.mark.requirement("GW-001"), pytest.mark.slow]


@pytest.fixture
def home(tmp_path: Path, weights: Path) -> Iterator[Home]:
    with a_home(tmp_path / "machine", weights) as home:
        yield home


async def call(mcp: Mcp, call_id: str, seconds: float = 0) -> str:
    """Return the outcome of a call: done, unknown, or what else its client was told."""
    arguments = {"tool": "own__note", "arguments": {"id": call_id, "seconds": seconds}}
    result = await mcp.client.call_tool("call_tool", arguments)
    text = str(result.content[0].text)  # type: ignore[union-attr]
    if not result.is_error:
        return "done"
    return "unknown" if "its outcome is unknown" in text else text


async def test_a_client_goes_on_by_itself_after_the_gateway_was_killed(home: Home) -> None:
    async with mcp_over_stdio(home.machine) as mcp:
        assert await call(mcp, "1") == "done"
        killed = await asyncio.to_thread(home.kill)
        found = await mcp.client.call_tool("search_tools", {"query": "note that something was done"})
        assert "own__note" in str(found.content)
        assert await call(mcp, "2") == "done"
        assert home.daemon().pid != killed
    assert home.diary.calls() == {"1": 1, "2": 1}


def test_the_next_command_starts_another_gateway(home: Home) -> None:
    home.machine.run("call", "own__note", '{"id": "1"}')
    killed = home.kill()
    home.machine.run("call", "own__note", '{"id": "2"}')
    assert home.daemon().pid != killed
    assert home.diary.calls() == {"1": 1, "2": 1}


async def test_a_call_under_way_is_not_repeated_and_its_client_is_told(home: Home) -> None:
    async with mcp_over_stdio(home.machine) as mcp:
        assert await call(mcp, "before") == "done"
        under_way = asyncio.create_task(call(mcp, "during", 600))
        await asyncio.to_thread(until, lambda: home.diary.calls()["during"], "the call")
        await asyncio.to_thread(home.kill)
        assert await under_way == "unknown"
        assert await call(mcp, "after") == "done"
    assert home.diary.calls() == {"before": 1, "during": 1, "after": 1}
    until(lambda: len(home.diary.living()) == 1, "the end of the killed gateway's servers")


async def test_a_search_under_way_is_repeated(home: Home) -> None:
    async with mcp_over_stdio(home.machine) as mcp:
        assert await call(mcp, "1") == "done"
        killing = asyncio.create_task(asyncio.to_thread(home.kill))
        answers = list[object]()
        while not killing.done() or len(answers) < 20:
            answers.append(await mcp.client.call_tool("search_tools", {"query": "note something"}))
        await killing
    assert all("own__note" in str(answer) for answer in answers)


@pytest.mark.parametrize("calls", [20, pytest.param(333, marks=pytest.mark.nightly)])
async def test_three_clients_lose_no_call_without_being_told(home: Home, calls: int) -> None:
    outcomes: dict[str, str] = {}

    async def work(mcp: Mcp, client: int) -> None:
        for number in range(calls):
            name = f"{client}-{number}"
            outcomes[name] = await call(mcp, name, 0.02)

    async with (
        mcp_over_stdio(home.machine) as one,
        mcp_over_stdio(home.machine) as two,
        mcp_over_stdio(home.machine) as three,
    ):
        working = [asyncio.create_task(work(mcp, number)) for number, mcp in enumerate((one, two, three))]
        await asyncio.to_thread(until, lambda: home.diary.count("done") >= calls, "a third of the calls")
        await asyncio.to_thread(home.kill)
        await asyncio.gather(*working)
    made = home.diary.calls()
    assert max(made.values()) == 1
    assert set(outcomes.values()) <= {"done", "unknown"}, set(outcomes.values())
    assert {name for name, outcome in outcomes.items() if outcome == "done"} <= set(made)
    assert len(outcomes) == 3 * calls
    assert list(outcomes.values()).count("unknown") <= 3


async def test_a_program_goes_on_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.machine.whole_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.machine.project)
    async with Gateway.open() as gateway:
        assert [tool.name async for tool in gateway.tools()] == ["note"]
        under_way = asyncio.create_task(gateway.call("own__note", {"id": "during", "seconds": 600}))
        await asyncio.to_thread(until, lambda: home.diary.calls()["during"], "the call")
        await asyncio.to_thread(home.kill)
        with pytest.raises(OutcomeUnknown, match="its outcome is unknown"):
            await under_way
        called = await gateway.call("own__note", {"id": "after"})
        assert json.loads(called.content[0]["text"])["id"] == "after"
    assert home.diary.calls() == {"during": 1, "after": 1}
