"""All tools themselves, over HTTP and stdio, of real servers: the same names whatever comes and goes."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.commands import command
from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Machine, new_machine
from toolscript.gateway.listed_tools import MAX_PAGE

pytestmark = pytest.mark.requirement("TS-010")

PUBLIC = Path(__file__).parents[4] / "shared" / "data" / "etom" / "tools.jsonl"
GROUPS, SECONDS = 25, 600.0
ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LONG = "list_everything_that_is_in_the_current_region_of_the_subscription_by_name"
FEW = [
    tool("files", "read", "Read the contents of a file from disk", path="which"),
    tool("azure", LONG, "List what there is"),
    tool("azure", "read/blob", "Read a blob"),
]
MORE = [*FEW, tool("notes", "read", "Read a note"), tool("blobs", "read/blob", "Read a part of a blob")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = new_machine(tmp_path / "machine", tmp_path).also(TOOLSCRIPT_SEARCH_MODEL="builtin")
    offer(machine, FEW)
    return machine


def offer(machine: Machine, tools: Sequence[dict[str, Any]]) -> None:
    file = write_catalog(machine.folder / "tools.jsonl", tools)
    machine.configure(catalog_servers(file, sorted({str(one["server"]) for one in tools})))


@asynccontextmanager
async def over_stdio(machine: Machine, *options: str, **more: Any) -> AsyncIterator[Client]:
    program, *arguments = command("mcp", "--direct", *options)
    process = StdioServerParameters(
        command=program, args=arguments, env=machine.whole_environment(), cwd=machine.project
    )
    async with Client(stdio_client(process), **more) as client:
        yield client


async def names(client: Client) -> list[str]:
    """Return the names of all pages."""
    found: list[str] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        assert len(page.tools) <= MAX_PAGE + 1
        found += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def until_listed(client: Client, count: int) -> list[str]:
    for pause in repeat(0.1):
        if len(found := await names(client)) == count:
            return found
        await anyio.sleep(pause)
    raise AssertionError


async def called(client: Client, name: str) -> str:
    result = await client.call_tool(name, {"path": "a"})
    return str(json.loads(result.content[0].text)["name"])  # type: ignore[union-attr]


async def test_http_and_stdio_list_the_same_tools_and_every_name_leads_to_its_tool(machine: Machine) -> None:
    with machine.gateway() as gateway:
        async with Client(f"{gateway.url}/mcp/all") as client, over_stdio(machine) as joined:
            listed = await names(client)
            assert listed == await names(joined)
            own = [name for name in listed if name != "read_result"]
            assert sorted([await called(client, name) for name in own]) == sorted(str(one["name"]) for one in FEW)
            assert await called(joined, "read") == "read"
    async with over_stdio(machine, "--alone") as alone:
        assert await names(alone) == listed
    assert all(map(ACCEPTED.fullmatch, listed))
    assert len({*listed}) == len(FEW) + 1


async def test_names_stay_when_servers_are_added_and_clients_hear_of_them(machine: Machine) -> None:
    changed_over_http, changed_over_stdio = anyio.Event(), anyio.Event()

    def hears(changed: anyio.Event) -> Any:
        async def heard(message: Any) -> None:
            if message.method == "notifications/tools/list_changed":
                changed.set()

        return heard

    with machine.gateway() as gateway:
        async with (
            Client(f"{gateway.url}/mcp/all", mode="legacy", message_handler=hears(changed_over_http)) as client,
            over_stdio(machine, mode="legacy", message_handler=hears(changed_over_stdio)) as joined,
        ):
            before = await names(client)
            for member in (client, joined):
                assert member.server_capabilities.tools is not None
                assert member.server_capabilities.tools.list_changed
            offer(machine, MORE)
            with anyio.fail_after(30):
                for told in (changed_over_http, changed_over_stdio):
                    await told.wait()
                after = await until_listed(client, len(MORE) + 1)
            assert {*before} < {*after}
    with machine.gateway() as gateway:
        async with Client(f"{gateway.url}/mcp/all") as client:
            assert await names(client) == after


async def test_a_catalog_of_thousands_is_listed_in_pages(machine: Machine) -> None:
    tools = [tool("files", f"tool {number} of many, whose name is a sentence", "") for number in range(600)]
    offer(machine, tools)
    with machine.gateway() as gateway:
        async with Client(f"{gateway.url}/mcp/all") as client:
            listed = await names(client)
    assert len({*listed}) == len(tools) + 1
    assert [name for name in listed if not ACCEPTED.fullmatch(name)] == []


@pytest.mark.nightly
async def test_a_public_catalog_is_listed_whole_and_the_same_after_a_restart_and_with_more_servers(
    tmp_path: Path,
) -> None:
    """Each process has the tools of some twenty public servers, called by server and tool."""
    if not PUBLIC.exists():
        pytest.skip("the judged sets are not beside this checkout")
    tools = _grouped([json.loads(line) for line in PUBLIC.read_text("utf-8").splitlines() if line])
    machine = new_machine(tmp_path / "machine", tmp_path).also(TOOLSCRIPT_SEARCH_MODEL="builtin")
    offer(machine, [one for one in tools if one["server"] != "group-0"])
    before = await _when_listed(machine, sum(one["server"] != "group-0" for one in tools))
    offer(machine, tools)
    after = await _when_listed(machine, len(tools))
    assert len({*after}) == len(after)
    assert {*before} < {*after}
    assert [name for name in after if not ACCEPTED.fullmatch(name)] == []


def _grouped(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    servers = sorted({str(one["server"]) for one in tools})
    group = {server: f"group-{number % GROUPS}" for number, server in enumerate(servers)}
    return [{**one, "server": group[one["server"]], "name": f"{one['server']}: {one['name']}"} for one in tools]


async def _when_listed(machine: Machine, count: int) -> list[str]:
    with machine.gateway() as gateway:
        async with Client(f"{gateway.url}/mcp/all") as client:
            with anyio.fail_after(SECONDS):
                return await until_listed(client, count + 1)
