"""LocalGateway beyond the port's contract: messages about missing servers."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, World, details_of, open_world, tool
from toolscript.core.errors import NotFound, ServerUnavailable
from toolscript.core.mcp_client.model import ServerState, ServerStatus, Transport
from toolscript.gateway.model import LocalQuery


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_world() as opened:
        opened.use("files", "mail")
        opened.servers.put("files", *FILES)
        opened.servers.put("mail", *MAIL)
        await opened.settled()
        yield opened


def failed(name: str, error: str) -> ServerState:
    return ServerState(name, Transport.STDIO, ServerStatus.FAILED, error)


@pytest.mark.requirement("TS-011")
async def test_a_search_names_the_servers_it_did_not_search(world: World) -> None:
    world.servers.fall("mail", "it fell " + "far " * 100)
    await world.settled()
    answer = await world.gateway.search(LocalQuery("read_file"))
    assert answer.hint.startswith("not searched: mail (it fell far")
    assert len(answer.hint) < 200


@pytest.mark.requirement("TS-011")
async def test_of_many_failed_servers_a_few_are_named_and_the_rest_counted(world: World) -> None:
    world.gateway.left_out = [failed(f"broken{number}", "why") for number in range(5)]
    hint = (await world.gateway.search(LocalQuery("read_file"))).hint
    assert hint == "not searched: broken0, broken1, broken2, and 2 more (why)"


async def test_excluded_servers_are_listed_with_the_others(world: World) -> None:
    world.gateway.left_out = [failed("m_broken", "no command")]
    assert [server.name for server in await world.gateway.servers()] == ["files", "m_broken", "mail"]
    with pytest.raises(ServerUnavailable, match="m_broken has failed: no command"):
        await world.gateway.call("m_broken__anything", {})


async def test_every_answer_contains_the_note(world: World) -> None:
    world.gateway.note = "tools as they were a moment ago"
    assert (await world.gateway.search(LocalQuery("read_file"))).hint == "tools as they were a moment ago"


@pytest.mark.requirement("TS-010")
async def test_a_call_waits_for_a_server_that_is_starting(world: World) -> None:
    world.use("files", "mail", "late")
    calling = asyncio.create_task(world.gateway.call("late__hello", {"a": 1}))
    await world.indexing._servers.changed(-1)
    assert not calling.done()
    world.servers.put("late", tool("late", "hello"))
    assert (await asyncio.wait_for(calling, 10)).structured_content == {"a": 1}


@pytest.mark.requirement("TS-010")
async def test_a_call_of_a_server_that_fails_to_start_reports_it(world: World) -> None:
    world.use("files", "mail", "late")
    calling = asyncio.create_task(world.gateway.call("late__hello", {}))
    world.servers.fall("late", "exit code 1")
    with pytest.raises(ServerUnavailable, match="late has failed: exit code 1") as refused:
        await asyncio.wait_for(calling, 10)
    assert details_of(refused) == {"server": "late"}


async def test_an_unknown_tool_gets_the_nearest_names(world: World) -> None:
    with pytest.raises(NotFound, match="no tool files__read_fil") as refused:
        await world.gateway.call("files__read_fil", {})
    nearest = details_of(refused)["nearest"]
    assert isinstance(nearest, list)
    assert nearest[0] == "files__read_file"
    assert refused.value.hint.startswith("did you mean files__read_file")


async def test_a_prompt_cannot_be_called_and_has_no_type(world: World) -> None:
    world.servers.put("files", *FILES, tool("files", "sum_up", "Sum up", type="prompt"))
    await world.settled()
    assert "sum_up" in world.found
    with pytest.raises(NotFound):
        await world.gateway.call("files__sum_up", {})
    with pytest.raises(NotFound):
        await world.gateway.typescript(("files__sum_up",))


async def test_health_reports_items_servers_and_search_mode(world: World) -> None:
    health = await world.gateway.health()
    assert (health.ready, health.semantic, health.items, health.model, health.note) == (True, True, 3, "hash", "")
    assert [(server.name, server.tools) for server in health.servers] == [("files", 2), ("mail", 1)]
