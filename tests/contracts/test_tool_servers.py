"""Contract of ToolServers."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.contracts.builders import tool
from tests.doubles.tool_servers import MemoryToolServers
from tests.unit.core.mcp_client.builders import (
    QUICK,
    names_of,
    state_of,
    stdio,
    text,
    until,
    until_failed,
    until_ready,
)
from toolscript.core.errors import Forbidden, NotFound, ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, ServerStatus, ToolServers
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("DOC-003", "TS-010", "TS-011"), pytest.mark.slow]


class World(Protocol):
    """Servers whose tools a test controls."""

    @property
    def servers(self) -> ToolServers: ...

    def spec(self, name: str, **more: object) -> ServerSpec: ...
    async def put(self, name: str, *tools: str) -> None: ...
    async def fall(self, name: str) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.servers = MemoryToolServers()

    def spec(self, name: str, **more: object) -> ServerSpec:
        return stdio(name, "catalog", **more)

    async def put(self, name: str, *tools: str) -> None:
        self.servers.put(name, *(tool(item) for item in tools))

    async def fall(self, name: str) -> None:
        self.servers.fall(name)


class Real:
    """Each server reads its tools from a file; without the file it dies."""

    def __init__(self, folder: Path) -> None:
        self.servers = McpServers(QUICK)
        self._folder = folder

    def spec(self, name: str, **more: object) -> ServerSpec:
        return stdio(name, "catalog", str(self._folder / name), **more)

    async def put(self, name: str, *tools: str) -> None:
        lines = [json.dumps({"server": name, "name": item}) for item in tools]
        (self._folder / name).write_text("\n".join(lines))
        await self._signal(name, signal.SIGHUP)

    async def fall(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        await self._signal(name, signal.SIGKILL)

    async def _signal(self, name: str, number: int) -> None:
        if name in {offer.server for offer in self.servers.offers()}:
            os.kill(json.loads(text(await self.servers.call(name, "pid", {})))["pid"], number)


@pytest.fixture(params=["memory", "mcp"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    made: World = InMemory() if request.param == "memory" else Real(tmp_path)
    yield made
    await made.servers.close()


async def test_without_servers_there_is_nothing(world: World) -> None:
    assert (list(world.servers.states()), list(world.servers.offers())) == ([], [])
    with pytest.raises(NotFound):
        await world.servers.call("any", "tool", {})


async def test_servers_become_ready_and_are_listed_in_the_order_of_their_names(world: World) -> None:
    for name in ("b", "a", "c"):
        await world.put(name, f"tool_of_{name}")
    world.servers.use([world.spec(name) for name in ("b", "a", "c")])
    await until_ready(world.servers, "a", "b", "c")
    assert [state.name for state in world.servers.states()] == ["a", "b", "c"]
    assert [offer.server for offer in world.servers.offers()] == ["a", "b", "c"]
    assert [offer.items[0].name for offer in world.servers.offers()] == ["tool_of_a", "tool_of_b", "tool_of_c"]
    assert [state.tools for state in world.servers.states()] == [1, 1, 1]


async def test_a_call_is_answered(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    result = await world.servers.call("a", "work", {"n": 1, "text": "ü"})
    assert (result.structured_content, result.is_error) == ({"n": 1, "text": "ü"}, False)
    assert result.content[0]["type"] == "text"


async def test_a_check_comes_before_the_call_and_its_refusal_is_the_answer(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    checks = []

    async def check() -> None:
        checks.append(names_of(world.servers, "a"))
        if len(checks) > 1:
            raise Forbidden("not any more")

    assert not (await world.servers.call("a", "work", {}, check)).is_error
    with pytest.raises(Forbidden, match="not any more"):
        await world.servers.call("a", "work", {}, check)
    with pytest.raises(Forbidden, match="not any more"):
        await world.servers.request("a", "prompts/get", {"name": "any"}, check)
    assert checks == [{"work"}] * 3


async def test_only_selected_tools_are_offered_and_called(world: World) -> None:
    await world.put("a", "read_file", "read_folder", "write_file")
    world.servers.use([world.spec("a", include_tools=("read_*",), exclude_tools=("*folder",))])
    await until_ready(world.servers, "a")
    assert names_of(world.servers, "a") == {"read_file"}
    with pytest.raises(NotFound, match="write_file"):
        await world.servers.call("a", "write_file", {})


async def test_what_changes_is_offered_as_it_is_now(world: World) -> None:
    await world.put("a", "one")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    before = await world.servers.changed(0)
    await world.put("a", "one", "two")
    await until(world.servers, lambda: names_of(world.servers, "a") == {"one", "two"})
    assert await world.servers.changed(before) > before


async def test_a_crashed_server_is_removed_with_a_reason_and_affects_no_other(world: World) -> None:
    for name in ("a", "b"):
        await world.put(name, "work")
    world.servers.use([world.spec("a"), world.spec("b")])
    await until_ready(world.servers, "a", "b")
    await world.fall("a")
    assert (await until_failed(world.servers, "a")).error
    assert [offer.server for offer in world.servers.offers()] == ["b"]
    with pytest.raises(ServerUnavailable, match="a has failed"):
        await world.servers.call("a", "work", {})
    assert (await world.servers.call("b", "work", {})).is_error is False


async def test_a_crashed_server_restarts_by_itself(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    await world.fall("a")
    await until_failed(world.servers, "a")
    await world.put("a", "other_work")
    await until(world.servers, lambda: names_of(world.servers, "a") == {"other_work"})
    assert state_of(world.servers, "a").status is ServerStatus.READY


async def test_what_is_no_longer_used_is_gone_at_once(world: World) -> None:
    for name in ("a", "b"):
        await world.put(name, "work")
    world.servers.use([world.spec("a"), world.spec("b")])
    await until_ready(world.servers, "a", "b")
    world.servers.use([world.spec("b")])
    assert [state.name for state in world.servers.states()] == ["b"]
    assert [offer.server for offer in world.servers.offers()] == ["b"]
    with pytest.raises(NotFound, match="no server a"):
        await world.servers.call("a", "work", {})


async def test_the_same_servers_again_are_no_change(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    revision = await world.servers.changed(0)
    world.servers.use([world.spec("a")])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await world.servers.changed(revision)


async def test_a_waiting_caller_is_woken_by_a_change(world: World) -> None:
    waiting = [asyncio.create_task(world.servers.changed(0)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(item.done() for item in waiting)
    world.servers.use([world.spec("a")])
    assert min(await asyncio.gather(*waiting)) > 0


async def test_a_closed_world_is_stopped_and_may_be_closed_again(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    await world.servers.close()
    assert [state.status for state in world.servers.states()] == [ServerStatus.STOPPED]
    assert list(world.servers.offers()) == []
    with pytest.raises(ServerUnavailable):
        await world.servers.call("a", "work", {})


async def test_servers_may_be_used_again_after_a_close(world: World) -> None:
    await world.put("a", "work")
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
    await world.servers.close()
    world.servers.use([world.spec("a")])
    await until_ready(world.servers, "a")
