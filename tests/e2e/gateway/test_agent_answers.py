"""What an agent reads from `toolscript mcp`: large results, the first search, and advice that it can follow."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent, ToolListChangedNotification

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Machine, mcp_server
from tests.support.npm_servers_installed import entry_point
from toolscript.core.tokens import o200k_tokens

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.requirement("GW-004")]

SECONDS = 90
MAX_TOKENS = 5_000
FOR_A_PERSON = re.compile(r"toolscript [a-z]|--[a-z]|\.toolscript|TOOLSCRIPT_")


@asynccontextmanager
async def agent(machine: Machine, mode: str = "auto", **more: object) -> AsyncIterator[Client]:
    program, *arguments = command("mcp")
    process = StdioServerParameters(
        command=program, args=arguments, env=machine.whole_environment(), cwd=machine.project
    )
    with anyio.fail_after(SECONDS):
        async with Client(stdio_client(process), mode=mode, **more) as client:  # type: ignore[arg-type]
            yield client


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def read_all(client: Client, key: str) -> str:
    read, offset = "", 0
    while True:
        arguments = {"id": key, "offset": offset, "limit": 40_000}
        shown, _, note = text_of(await client.call_tool("read_result", arguments)).rpartition("\n[")
        read += shown
        following = re.search(r'"offset":(\d+)', note)
        if following is None:
            return read
        offset = int(following[1])


async def test_a_file_of_megabytes_costs_little_and_is_read_to_its_last_byte(machine: Machine) -> None:
    """With the real server from npm, whose result has the file twice; the id is good after a restart."""
    folder = machine.folder / "files"
    folder.mkdir()
    written = "\n".join(f"{number} line of a large file" for number in range(210_000))[:6_733_335]
    (folder / "big.txt").write_text(written)
    machine.configure({"filesystem": {"command": "node", "args": [entry_point("server-filesystem"), str(folder)]}})
    call = {"tool": "filesystem__read_text_file", "arguments": {"path": str(folder / "big.txt")}}
    async with agent(machine) as client:
        result = await client.call_tool("call_tool", call)
        shown = text_of(result)
        structured = "" if result.structured_content is None else json.dumps(result.structured_content)
        assert o200k_tokens()(shown + structured) <= MAX_TOKENS
        found = re.search(r'"id":"([\w-]{16})"', shown)
        assert found
        lines = text_of(await client.call_tool("read_result", {"id": found[1], "grep": "^209999 "}))
        assert "209999 line of a large file" in lines
    async with agent(machine) as client:
        assert await read_all(client, found[1]) == written


async def test_the_first_search_of_a_cold_client_waits_for_the_servers(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain")})
    async with agent(machine) as client:
        result = await client.call_tool("search_tools", {"query": "add two numbers"})
    assert not result.is_error
    assert text_of(result).startswith("plain__add(a, b) ")


async def until_started(client: Client) -> None:
    """Ask for what only a gateway that has started can answer."""
    await client.list_prompts()


async def test_without_servers_the_advice_is_right_and_immediate(machine: Machine) -> None:
    async with agent(machine) as client:
        await until_started(client)
        began = time.monotonic()
        result = await client.call_tool("search_tools", {"query": "add two numbers"})
        assert time.monotonic() - began < 10
    assert "ask the user to connect some" in text_of(result)
    assert not FOR_A_PERSON.search(text_of(result))


async def test_a_tool_that_the_config_excludes_is_said_to_be_off(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain", excludeTools=["ad*"])})
    off = "the user has turned add of plain off"
    async with agent(machine) as client:
        for name, arguments in (
            ("search_tools", {"query": "plain__add"}),
            ("describe_tool", {"tool": "plain__add"}),
            ("call_tool", {"tool": "plain__add"}),
        ):
            shown = text_of(await client.call_tool(name, arguments))
            assert off in shown, (name, shown)
            assert not FOR_A_PERSON.search(shown)
    done = machine.run("call", "plain__add", "{}", code=2)
    assert "the config file excludes add of plain" in done.stderr


async def test_a_name_without_its_server_is_enough_where_it_is_unique(machine: Machine) -> None:
    machine.configure({"one": mcp_server("plain"), "two": mcp_server("plain", excludeTools=["add"])})
    assert machine.json("call", "add", '{"a": 2, "b": 3}')["structuredContent"] == {"sum": 5}
    several = machine.run("call", "echo", "{}", code=2)
    assert "one__echo, two__echo" in several.stderr
    async with agent(machine) as client:
        described = await client.call_tool("describe_tool", {"tool": "add"})
        assert (described.structured_content or {})["tools"][0]["tool"] == "one__add"
        wrong = await client.call_tool("call_tool", {"tool": "add", "arguments": {"a": 2, "c": 3}})
    assert wrong.is_error
    assert "`b` is missing" in text_of(wrong)
    assert '"required":["a","b"]' in text_of(wrong)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_list_names_the_servers_and_clients_hear_when_they_change(machine: Machine, mode: str) -> None:
    machine.configure({"plain": mcp_server("plain")})
    heard = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with agent(machine, mode, message_handler=on_message) as client:
        await until_started(client)
        tools = (await client.list_tools()).tools
        assert "Servers: plain (1)." in (tools[0].description or "")
        again = (await client.list_tools(cache_mode="bypass")).tools
        assert again == tools
        machine.configure({"plain": mcp_server("plain"), "second": mcp_server("plain")})
        # What is heard first may be of the servers that have just started.
        while "Servers: plain, second (2)." not in (tools[0].description or ""):
            if mode == "legacy":
                await heard.wait()
                heard.clear()
            else:
                async with client.listen(tools_list_changed=True) as events:
                    await events.__anext__()
            tools = (await client.list_tools(cache_mode="bypass")).tools


def test_pictures_are_saved_and_their_paths_printed(machine: Machine, tmp_path: Path) -> None:
    machine.configure({"everything": {"command": "node", "args": [entry_point("server-everything")]}})
    for number in (1, 2):
        done = machine.run("call", "everything__get-tiny-image", "{}", "--save-to", str(tmp_path))
        saved = tmp_path / f"everything__get-tiny-image-{number}.png"
        assert str(saved) in done.stdout
        assert saved.read_bytes().startswith(b"\x89PNG")
    assert "iVBOR" not in done.stdout
    assert len([*tmp_path.glob("*.png")]) == 2
