"""Split calls: destructive tools have a meta-tool of their own, so that a client can allow the other one."""

import json
from dataclasses import replace

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.gateway_double import ITEMS
from tests.unit.gateway.mcp.ruled_gateway import RuledGateway
from toolscript.core.tokens import o200k_tokens
from toolscript.gateway.mcp.definitions import definitions_of_tools
from toolscript.gateway.mcp.tools import create_mcp_server
from toolscript.gateway.rules import CallRules, Risk, Rule

pytestmark = pytest.mark.requirement("TR-003")

WRITE = {"tool": "files__write_file", "arguments": {}}
MAX_TOKENS = 1_100


def client_of(gateway: RuledGateway, *, split: bool = True) -> Client:
    return Client(create_mcp_server(gateway, "1.2.3", split=split))


async def test_by_default_call_tool_calls_all_and_says_that_it_may_destroy() -> None:
    gateway = RuledGateway()
    async with client_of(gateway, split=False) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert not (await client.call_tool("call_tool", WRITE)).is_error
        with pytest.raises(MCPError, match="Unknown tool: call_destructive_tool"):
            await client.call_tool("call_destructive_tool", WRITE)
    assert [*tools] == ["search_tools", "describe_tool", "call_tool", "read_result", "get_prompt", "read_resource"]
    always_loaded = [name for name, tool in tools.items() if (tool.meta or {}).get("anthropic/alwaysLoad") is True]
    assert always_loaded == ["search_tools", "describe_tool", "call_tool", "read_result"]
    annotations = tools["call_tool"].annotations
    assert annotations is not None
    assert annotations.destructive_hint


async def test_call_tool_leaves_what_counts_as_destructive_to_the_other() -> None:
    gateway = RuledGateway()
    async with client_of(gateway) as client:
        refused = await client.call_tool("call_tool", WRITE)
        assert gateway.calls == []
        made = await client.call_tool("call_destructive_tool", WRITE)
        created = await client.call_tool("call_tool", {"tool": "create_issue"})
    expected = "files__write_file counts as destructive: call it with call_destructive_tool."
    assert (refused.is_error, text_of(refused)) == (True, expected)
    assert (made.is_error, created.is_error) == (False, False)


async def test_a_person_says_which_tool_that_claims_nothing_is_harmless() -> None:
    gateway = RuledGateway(rules=CallRules([Rule("files__*", states=Risk.WRITE)]))
    async with client_of(gateway) as client:
        assert not (await client.call_tool("call_tool", WRITE)).is_error


async def test_a_claim_that_is_not_approved_is_not_enough_for_call_tool() -> None:
    gateway = RuledGateway(rules=CallRules(is_approved=lambda _item: False))
    async with client_of(gateway) as client:
        result = await client.call_tool("call_tool", {"tool": "github__create_issue"})
    assert (result.is_error, gateway.calls) == (True, [])


async def test_results_say_what_a_tool_claims_and_nothing_where_it_claims_nothing() -> None:
    reads = replace(ITEMS[0], annotations={"readOnlyHint": True})
    gateway = RuledGateway(found=(reads, *ITEMS[1:]))
    async with client_of(gateway) as client:
        found = await client.call_tool("search_tools", {"query": "file", "limit": 5})
    lines = text_of(found).splitlines()
    assert any("files__read_file" in line and line.endswith("[claims read-only]") for line in lines)
    assert not any("files__write_file" in line and "claims" in line for line in lines)
    hits = {hit["tool"]: hit.get("risk") for hit in (found.structured_content or {})["results"]}
    assert hits == {"files__read_file": "claims read-only", "files__write_file": None}


@pytest.mark.parametrize("split", [False, True])
def test_the_definitions_stay_small(*, split: bool) -> None:
    shown = [
        {name: definition[name] for name in ("name", "description", "inputSchema")}
        for definition in definitions_of_tools(split=split)
    ]
    assert o200k_tokens()(json.dumps(shown)) <= MAX_TOKENS
