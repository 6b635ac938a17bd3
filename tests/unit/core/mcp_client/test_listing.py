"""Listing of servers: all items, and no invalid entries."""

from dataclasses import replace

import pytest

from tests.unit.core.mcp_client.builders import (
    QUICK,
    faulty,
    items_of,
    names_of,
    offer_of,
    plain,
    state_of,
    stdio,
    text,
    until,
    until_ready,
    with_sdk,
)
from toolscript.core.items import ItemKind
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


async def test_tools_prompts_resources_and_templates_become_items(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    items = items_of(servers, "plain")
    add, review = items["add"], items["review"]
    assert (add.kind, add.server, add.server_description) == (ItemKind.TOOL, "plain", "A server for tests")
    assert add.description == "Adds two numbers"
    assert add.input_schema is not None
    assert add.input_schema["required"] == ["a", "b"]
    assert add.output_schema == {"type": "object", "properties": {"sum": {"type": "number"}}}
    assert items["echo"].annotations == {"title": "Echo", "readOnlyHint": True}
    assert (review.kind, review.description) == (ItemKind.PROMPT, "Code review")
    assert review.input_schema == {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "what to review"}, "style": {"type": "string"}},
        "required": ["code"],
    }
    assert items["any file"].annotations == {"uriTemplate": "file:///{path}"}


async def test_resources_with_one_name_are_identified_by_their_address(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    items = [item for item in offer_of(servers, "plain").items if item.name == "a.txt"]
    assert len({item.key for item in items}) == 2
    assert [dict(item.annotations or {})["uri"] for item in items] == ["file:///a.txt", "file:///b/a.txt"]


async def test_a_state_has_the_protocol_the_version_and_the_counts(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    state = state_of(servers, "plain")
    assert (state.protocol, state.version) == ("2025-11-25", "1.2.3")
    assert (state.tools, state.prompts, state.resources) == (8, 1, 3)
    assert state.error == ""


@pytest.mark.parametrize("protocol", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_older_protocol_is_supported(servers: McpServers, protocol: str) -> None:
    servers.use([stdio("old", "plain", protocol)])
    await until_ready(servers, "old")
    assert state_of(servers, "old").protocol == protocol
    assert text(await servers.call("old", "echo", {"a": 1})) == '{"a": 1}'


async def test_the_newest_protocol_is_supported_with_its_change_notifications(servers: McpServers) -> None:
    servers.use([with_sdk()])
    await until_ready(servers, "modern")
    state = state_of(servers, "modern")
    assert (state.protocol, state.version, state.tools, state.prompts) == ("2026-07-28", "3.2.1", 5, 1)
    result = await servers.call("modern", "multiply", {"a": 6, "b": 7})
    assert (result.structured_content, result.is_error) == ({"result": 42}, False)
    await servers.call("modern", "grow", {"name": "grown"})
    await until(servers, lambda: "grown" in names_of(servers, "modern"))


async def test_a_tool_that_is_added_while_a_server_runs_appears(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    before = await servers.changed(0)
    await servers.call("plain", "grow", {"name": "grown"})
    await until(servers, lambda: "grown" in names_of(servers, "plain"))
    assert await servers.changed(0) > before
    assert state_of(servers, "plain").tools == 9


async def test_a_swarm_of_changes_is_gathered() -> None:
    servers = McpServers(replace(QUICK, debounce=0.2))
    servers.use([faulty("swarms")])
    await until_ready(servers, "swarms")
    await servers.call("swarms", "swarm", {})
    await until(servers, lambda: "over" in names_of(servers, "swarms"))
    listings = int(text(await servers.call("swarms", "count", {})))
    await servers.close()
    assert 2 <= listings <= 8


async def test_all_pages_are_read(servers: McpServers) -> None:
    servers.use([stdio("paged", "paged", "whole")])
    await until_ready(servers, "paged")
    assert names_of(servers, "paged") == {f"tool_{number:02}" for number in range(35)}


async def test_pages_that_lead_in_a_circle_end(servers: McpServers) -> None:
    servers.use([stdio("paged", "paged", "circle")])
    await until_ready(servers, "paged")
    assert names_of(servers, "paged") == {f"tool_{number:02}" for number in range(20)}
    # Three pages: the third is the first again, and its cursor is known.
    assert len(offer_of(servers, "paged").refused) <= 10


async def test_pages_before_a_broken_one_are_kept_and_the_error_is_reported(servers: McpServers) -> None:
    servers.use([stdio("paged", "paged", "broken")])
    await until_ready(servers, "paged")
    assert len(names_of(servers, "paged")) == 20
    assert offer_of(servers, "paged").refused == ("tools: page 3: tools/list: the third page is lost",)


async def test_ten_thousand_tools_are_listed(servers: McpServers) -> None:
    servers.use([faulty("ten_thousand_tools")])
    await until_ready(servers, "ten_thousand_tools")
    assert state_of(servers, "ten_thousand_tools").tools == 10_000


async def test_only_the_first_of_too_many_tools_are_taken_and_the_limit_is_reported(servers: McpServers) -> None:
    servers.use([faulty("too_many_tools")])
    await until_ready(servers, "too_many_tools")
    offer = offer_of(servers, "too_many_tools")
    assert len(offer.items) == 20_000
    assert "20000" in offer.refused[0]


async def test_a_description_of_five_megabytes_is_cut(servers: McpServers) -> None:
    servers.use([faulty("five_megabyte_description")])
    await until_ready(servers, "five_megabyte_description")
    items = items_of(servers, "five_megabyte_description")
    assert 90_000 < len(items["long"].description) <= 100_000
    assert items["short"].description == "a few words"


async def test_entries_that_are_no_items_are_refused_and_harm_no_others(servers: McpServers) -> None:
    servers.use([faulty("bad_entries")])
    await until_ready(servers, "bad_entries")
    items = items_of(servers, "bad_entries")
    assert set(items) == {"good", "also good"}
    assert items["good"].description == ""
    refused = offer_of(servers, "bad_entries").refused
    assert [reason.partition(":")[0] for reason in refused] == [f"tool {number}" for number in range(2, 9)]
    assert "name is missing" in refused[1]
    assert "deeper" in refused[4]
    assert "'good'" in refused[5]


async def test_a_tool_that_the_newest_protocol_forbids_is_refused(servers: McpServers) -> None:
    servers.use([faulty("impossible_headers")])
    await until_ready(servers, "impossible_headers")
    assert state_of(servers, "impossible_headers").protocol == "2026-07-28"
    assert names_of(servers, "impossible_headers") == {"work"}
    assert "'misled'" in offer_of(servers, "impossible_headers").refused[0]


async def test_a_schema_that_refers_to_itself_is_only_data(servers: McpServers) -> None:
    servers.use([faulty("reference_loop")])
    await until_ready(servers, "reference_loop")
    schema = items_of(servers, "reference_loop")["walk"].input_schema
    assert schema is not None
    assert "$defs" in schema


async def test_a_server_whose_prompts_fail_still_offers_its_tools(servers: McpServers) -> None:
    servers.use([faulty("prompts_fail")])
    await until_ready(servers, "prompts_fail")
    assert names_of(servers, "prompts_fail") == {"work"}
    assert offer_of(servers, "prompts_fail").refused == (
        "prompts: prompts/list: prompts are broken",
        "resources: resources/list: the answer has no list of resources",
    )


async def test_a_server_whose_prompts_hang_still_offers_its_tools(servers: McpServers) -> None:
    servers.use([faulty("prompts_hang", start_seconds=3.0)])
    await until_ready(servers, "prompts_hang")
    assert names_of(servers, "prompts_hang") == {"work"}
    assert "in time" in offer_of(servers, "prompts_hang").refused[0]


async def test_lines_that_are_no_messages_are_passed_over(servers: McpServers) -> None:
    servers.use([faulty("invalid_json")])
    await until_ready(servers, "invalid_json")
    assert names_of(servers, "invalid_json") == {"work"}


@pytest.mark.requirement("TS-001")
async def test_only_the_tools_that_the_config_wants_are_offered(servers: McpServers) -> None:
    servers.use([plain(include_tools=("e*", "add"), exclude_tools=("*dd",))])
    await until_ready(servers, "plain")
    tools = {item.name for item in offer_of(servers, "plain").items if item.kind is ItemKind.TOOL}
    assert tools == {"echo"}
    assert state_of(servers, "plain").prompts == 1
    assert offer_of(servers, "plain").refused == ()
