"""Names of tools as clients list them: unique, accepted by every model, and always the same."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolscript.core.items import Item, ItemKind, tool_id, why_misleading
from toolscript.gateway.listed_tools import MAX_LISTED_NAME, ListedTools, listed_name

ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def a_tool(server: str, name: str) -> Item:
    return Item(tool_id(server, name), ItemKind.TOOL, server, name)


texts = st.one_of(
    st.text("ab_-", min_size=1, max_size=6),
    st.text("ab_-0123456789abcdef", min_size=10, max_size=90),
    st.text(min_size=1, max_size=40),
    st.sampled_from(
        ["read_file", "search", "search_0123456789ab", "x" * 64, "x" * 65, "Ünïcode", "a b", "a.b", "a:b"]
    ),
)
# What a config file accepts as the name of a server.
servers = texts.filter(lambda name: not why_misleading(name))
hostile = st.lists(st.builds(a_tool, servers, texts), min_size=2, max_size=300, unique_by=lambda item: item.key)


@given(hostile)
def test_every_name_is_accepted_unique_and_leads_back_to_its_own_tool(tools: list[Item]) -> None:
    listed = ListedTools(tools)
    page = listed.page(limit=len(tools))
    names = [str(tool["name"]) for tool in page.tools]
    assert len(names) == len(set(names)) == len(listed) == len(tools)
    assert [name for name in names if not ACCEPTED.fullmatch(name)] == []
    assert {listed.find(listed_name(item.server, item.name)) for item in tools} == set(tools)


@given(hostile, st.data())
def test_a_name_stays_when_other_tools_come_and_go(tools: list[Item], data: st.DataObject) -> None:
    few = data.draw(st.lists(st.sampled_from(tools), min_size=1, unique_by=lambda item: item.key))
    before, after = ListedTools(few), ListedTools(tools)
    for item in few:
        name = listed_name(item.server, item.name)
        assert before.find(name) == after.find(name) == item


@given(servers, texts, servers, texts)
def test_no_tool_can_have_the_name_of_another(server: str, tool: str, other: str, other_tool: str) -> None:
    assume((server, tool) != (other, other_tool))
    assert listed_name(server, tool) != listed_name(other, other_tool)


def test_a_name_is_as_it_is_shown_elsewhere_where_models_accept_it() -> None:
    assert listed_name("github", "create_issue") == "github__create_issue"
    assert listed_name("s" * 20, "t" * 42) == f"{'s' * 20}__{'t' * 42}"


@pytest.mark.parametrize(
    ("server", "tool", "begin"),
    [
        ("Peekaboo MCP: Lightning-fast macOS Screenshots", "image", "Peekaboo_MCP_Lightni__image_"),
        ("files", "read/file", "files__read_file_"),
        ("azure", "n" * 70, f"azure__{'n' * 44}_"),
        ("files", "read_0123456789ab", "files__read_0123456789ab_"),
    ],
)
def test_another_name_shows_its_beginning_and_ends_with_a_hash(server: str, tool: str, begin: str) -> None:
    name = listed_name(server, tool)
    assert name.startswith(begin)
    assert re.fullmatch(r"[0-9a-f]{12}", name.removeprefix(begin))
    assert len(name) <= MAX_LISTED_NAME


def test_a_bare_name_is_found_while_only_one_server_has_it() -> None:
    one, two = a_tool("files", "read"), a_tool("notes", "read")
    assert ListedTools([one]).find("read") == one
    assert ListedTools([one, two]).find("read") is None


def test_a_tool_cannot_pose_as_that_of_a_server_that_is_not_there() -> None:
    assert ListedTools([a_tool("evil", "files__read")]).find("files__read") is None


def test_a_page_goes_on_after_the_last_name_when_others_came_and_went() -> None:
    tools = [a_tool("s", f"tool-{number:03}") for number in range(10)]
    first = ListedTools(tools).page(limit=4)
    assert first.following == "s__tool-003"
    changed = [a_tool("s", "tool-000a"), *tools[2:3], *tools[4:]]
    second = ListedTools(changed).page(first.following, limit=4)
    assert [tool["name"] for tool in second.tools] == [f"s__tool-{number:03}" for number in range(4, 8)]
    last = ListedTools(changed).page(second.following, limit=4)
    assert ([tool["name"] for tool in last.tools], last.following) == (["s__tool-008", "s__tool-009"], "")


def test_a_definition_is_what_the_server_sent_but_for_the_name_and_what_nobody_sees() -> None:
    sent = {
        "name": "draw",
        "title": "Draw",
        "description": "Draws\u202e a line.",
        "inputSchema": {"type": "object", "properties": {"at": {"default": None}}, "$defs": {}},
        "icons": [{"src": "data:image/png;base64,AA=="}],
        "_meta": {"com.example/group": 1},
    }
    item = replace(a_tool("paint", "draw"), definition=json.dumps(sent))
    [listed] = ListedTools([item]).page().tools
    assert listed == {**sent, "name": "paint__draw", "description": "Draws[U+202E] a line."}


def test_a_tool_that_does_not_say_what_it_takes_takes_an_object() -> None:
    item = replace(a_tool("old", "go"), definition='{"name": "go"}')
    assert ListedTools([item]).page().tools == ({"name": "old__go", "inputSchema": {"type": "object"}},)
